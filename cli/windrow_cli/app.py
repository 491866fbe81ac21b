"""The `windrow` command: subcommands, and errors shown as one line with an exit code."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from pydantic import ValidationError

from windrow_calls.errors import ProblemError
from windrow_cli.lazy_commands import Commands
from windrow_cli.remedies import in_commands
from windrow_core.errors import StatedError

_FAILED, _USAGE, _INTERRUPTED = 1, 2, 130
# typer brings its own copy of click, or uses click itself, depending on its version.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__bases__[0]

# What typer and pydantic say of arguments, and what people would say.
_PLAIN_WORDS = (
    (r" \(Possible options?: (.*)\)", r". Did you mean \1?"),
    (r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", r"Not expected here: \1"),
    (r"Value error, ", ""),
    (r"Input should be a valid integer\b.*", "it must be a whole number"),
    (r"Input should be a valid number\b.*", "it must be a number"),
    (r"Input should be greater than or equal to", "it must be at least"),
    (r"Input should be less than or equal to", "it must be at most"),
    (r"Input should be", "it must be"),
)

app = typer.Typer(
    name="windrow",
    cls=Commands,
    help="Plan how Spark reads and writes tables of many small files.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(value: bool) -> None:
    if value:
        from windrow import __version__

        typer.echo(f"windrow {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: Sequence[str], commands: typer.Typer = app, program: str = "windrow") -> int:
    """Run one command; return its exit code: 0, 1 (failed), 2 (usage) or 130 (interrupted)."""
    try:
        code = commands(list(arguments), prog_name=program, standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("stopped", _INTERRUPTED)
    except _USAGE_ERROR as error:
        return _fail(_usage_message(error), _USAGE)
    except ValidationError as error:
        return _fail(_validation_message(error), _FAILED)
    except ProblemError as error:
        return _fail(in_commands(error), _FAILED)
    except StatedError as error:
        # Some commands run use cases of the coordinator, whose errors say as much.
        return _fail(str(error), _FAILED)
    except BrokenPipeError:
        # The reader of the output has closed it, as in `windrow table list | head -1`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _FAILED
    if code == _INTERRUPTED:
        # Typer returns this code on Ctrl-C.
        return _fail("stopped", code)
    return code if isinstance(code, int) else 0


def main(commands: typer.Typer = app, program: str = "windrow") -> None:
    """Run the command given in `sys.argv`, and exit."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # Terminals without Unicode show '?' where a bar would be.
                stream.reconfigure(errors="replace")
        code = run(sys.argv[1:], commands, program)
    except KeyboardInterrupt:
        code = _fail("stopped", _INTERRUPTED)
    sys.exit(code)


def _fail(message: str, code: int) -> int:
    # Only terminals get colours, unless NO_COLOR (https://no-color.org) is set.
    program = typer.style("windrow:", fg=typer.colors.RED, bold=True)
    typer.echo(
        f"{program} {message}", err=True, color=False if os.environ.get("NO_COLOR") else None
    )
    return code


def _usage_message(error: Exception) -> str:
    message = _plain(str(getattr(error, "format_message", error.__str__)()))
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "windrow"
    message = " ".join(message.split()).rstrip(".").removeprefix("Invalid value: ")
    return f"{message} (see `{command} --help`)"


def _validation_message(error: ValidationError) -> str:
    issues = [
        ": ".join(filter(None, [".".join(map(str, issue["loc"])), _plain(issue["msg"])]))
        for issue in error.errors()
    ]
    return "; ".join(issues).replace("\n", " ")


def _plain(message: str) -> str:
    for pattern, words in _PLAIN_WORDS:
        message = re.sub(pattern, words, message)
    return message
