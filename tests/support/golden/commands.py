"""The help of each command, and what it prints for wrong arguments or without a coordinator."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from typing import Any
from unittest.mock import patch

from typer.main import get_command

from windrow_cli.app import app, run

# The port of a service that no machine has any more.
_NOBODY = "http://127.0.0.1:9"
_WIDTH = 100
_ENVIRONMENT = {"COLUMNS": str(_WIDTH), "LINES": "50", "TERM": "dumb", "NO_COLOR": "1"}
# These start Spark, or a service, before they look at their other arguments, or tell of the machine.
_NOT_RUN = {("serve",), ("doctor",), ("table", "sync"), ("worker", "run"), ("db", "upgrade")}
# These may have any value, or start Spark, or name a folder that would be made.
_NOT_WRONG = {
    *("--url", "--state-dir", "--host", "--allow", "--cache-dir", "--picture", "--data", "--id"),
    *("--master", "--metastore", "--hive", "--conf"),
}
_WRONG = "?"
_UNREACHABLE = "no answer from the coordinator"


def text() -> str:
    """Return each command line with its exit code, standard output and standard error."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    # Calls are repeated after a pause until the coordinator is given up.
    with patch.dict(os.environ, environment | _ENVIRONMENT, clear=True), patch("time.sleep"):
        root: Any = get_command(app)
        blocks = [one for path, command in _commands((), root) for one in _all_said(path, command)]
    return "\n".join(blocks)


def _all_said(path: tuple[str, ...], command: Any) -> Iterator[str]:
    yield _said(*path, "--help")
    yield _said(*path, "--no-such-option")
    if hasattr(command, "commands"):
        yield _said(*path, "no-such-command")
        return
    parameters = [one for one in command.params if one.required]
    if parameters:
        yield _said(*path)
    words = list(path)
    for one in parameters:
        words += [*(one.opts[:1] if one.param_type_name == "option" else ()), "given"]
    if not any(one.nargs == -1 for one in command.params):
        yield _said(*words, *["more"] * 3)
    options = [one for one in command.params if one.param_type_name == "option"]
    option_names = {name for one in options for name in one.opts}
    if "--url" in option_names:
        words += ["--url", _NOBODY]
    if path not in _NOT_RUN:
        yield _said(*words)
    for one in options:
        name, type_ = one.opts[0], one.type_descriptor.annotation
        if one.is_flag or name in _NOT_WRONG or (path in _NOT_RUN and type_ is str):
            continue
        output = _said(*words, name, _WRONG)
        if _UNREACHABLE not in output:
            yield output


def _commands(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands((*path, name), inner)


def _said(*arguments: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(arguments)
    lines = [f"$ windrow {' '.join(arguments)}", *out.getvalue().splitlines()]
    lines += [f"stderr: {line}" for line in err.getvalue().splitlines()]
    return "\n".join([*lines, f"exit code {code}", ""])
