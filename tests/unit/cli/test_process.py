"""The command line as a process: `windrow serve`, signals and pipes."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from tests.support.processes.forks import Forked, fork_module, run_forked
from tests.support.servers.coordinators import PLAIN

pytestmark = pytest.mark.slow


def _finished(
    *arguments: str, cwd: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return run_forked(cwd, "windrow_cli", *arguments, **(environment or {}))


def _one_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("windrow: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


class _Serving(NamedTuple):
    url: str
    log: Path
    process: Forked | subprocess.Popen[bytes]


def _forked(log: Path, *arguments: str) -> Forked:
    return fork_module("windrow_cli", *arguments, output=log, cwd=log.parent)


def _started(log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "windrow_cli", *arguments]
    with log.open("wb") as output:
        return subprocess.Popen(command, cwd=log.parent, stdout=output, stderr=subprocess.STDOUT)


@contextmanager
def _serving(
    cwd: Path,
    *options: str,
    start: Callable[..., Forked | subprocess.Popen[bytes]] = _forked,
) -> Iterator[_Serving]:
    """Run `windrow serve` until the end of the block, and then stop it by Ctrl-C."""
    log = cwd / "log"
    log.unlink(missing_ok=True)
    process = start(log, "serve", "--port", "0", *options)
    try:
        give_up_at = time.monotonic() + 60
        while (found := re.search(r"http://\S+:\d+", log.read_text())) is None:
            assert time.monotonic() < give_up_at
            assert process.poll() is None
            time.sleep(0.05)
        while not _answers(found[0]):
            assert time.monotonic() < give_up_at
            time.sleep(0.05)
        yield _Serving(found[0], log, process)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def test_serve_says_where_it_listens_and_stops_without_a_traceback(tmp_path: Path) -> None:
    with _serving(tmp_path, start=_started) as serving:
        docs = httpx.get(f"{serving.url}/docs", verify=PLAIN)
        config = httpx.get(f"{serving.url}/config", verify=PLAIN).json()

    assert docs.is_success
    assert config["allowed_locations"] == [str(tmp_path)]
    assert (tmp_path / ".windrow").is_dir()
    said = serving.log.read_text()
    assert f"{serving.url}/docs" in said
    assert "Traceback" not in said
    assert said.splitlines()[-1] == "windrow: stopped"
    assert serving.process.wait() == 130


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/ready", verify=PLAIN).is_success
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("module", ["windrow_cli.app", "pydantic", "httpx"])
def test_ctrl_c_during_imports_exits_without_a_traceback(tmp_path: Path, module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.programs.interrupted_import", module, "table", "list"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "windrow: stopped\n")


@pytest.mark.parametrize(("no_color", "begins"), [("", b"\x1b[31m"), ("1", b"windrow: ")])
def test_errors_are_red_on_terminals_unless_these_want_no_colours(
    no_color: str, begins: bytes
) -> None:
    terminal, stderr = os.openpty()
    environment = {**os.environ, "NO_COLOR": no_color}

    command = [sys.executable, "-m", "windrow_cli", "nothing"]
    subprocess.run(command, stderr=stderr, env=environment, timeout=60, check=False)

    os.close(stderr)
    said = os.read(terminal, 4_096)
    os.close(terminal)
    assert said.startswith(begins)
    assert b"No such command" in said


def test_creating_a_token_imports_nothing_that_only_plans_and_reads_need(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.programs.token_imports", str(tmp_path)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


def test_serve_on_a_taken_port_is_refused_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        done = _finished("serve", "--port", str(port), cwd=tmp_path)

    assert f"port {port}" in _one_line(done)


def test_a_state_folder_is_served_by_one_process_at_a_time(tmp_path: Path) -> None:
    with _serving(tmp_path) as serving:
        second = _one_line(_finished("serve", "--port", "0", cwd=tmp_path))
        assert f"process {serving.process.pid} already serves from state folder .windrow" in second

    with _serving(tmp_path) as serving:
        assert _answers(serving.url)


def test_serve_names_a_missing_allowed_folder(tmp_path: Path) -> None:
    done = _finished("serve", "--port", "0", "--allow", "dta", cwd=tmp_path)

    assert f"no folder {tmp_path / 'dta'}" in _one_line(done)
    assert list(tmp_path.iterdir()) == []


def test_serve_with_tokens_explains_how_to_make_the_first_and_accepts_it(
    tmp_path: Path,
) -> None:
    with _serving(tmp_path, "--require-tokens") as serving:
        made = _finished("token", "create", "me", "--scope", "read", cwd=tmp_path)
        listed = ("table", "list", "--url", serving.url)
        refused = _finished(*listed, cwd=tmp_path, environment={"WINDROW_TOKEN": ""})
        taken = _finished(*listed, cwd=tmp_path, environment={"WINDROW_TOKEN": made.stdout})
        said = serving.log.read_text()

    assert "windrow token create" in said
    assert made.stdout.strip() not in said
    assert "WINDROW_TOKEN" in _one_line(refused)
    assert (taken.returncode, taken.stderr) == (0, "")


def test_serve_names_an_invalid_setting(tmp_path: Path) -> None:
    done = _finished("serve", cwd=tmp_path, environment={"WINDROW_PORT": "many"})

    assert "port" in _one_line(done)


def test_serve_names_a_state_folder_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    done = _finished("serve", "--port", "0", "--state-dir", "file/state", cwd=tmp_path)

    assert "file/state" in _one_line(done)


@pytest.mark.parametrize("java", ["", "exit 1", "echo 'openjdk version \"11.0.2\"' >&2"])
def test_the_demo_without_a_suitable_java_says_how_to_get_one(tmp_path: Path, java: str) -> None:
    folder = tmp_path / "home" / "bin"
    folder.mkdir(parents=True)
    if java:
        program = folder / "java"
        program.write_text(f"#!/bin/sh\n{java}\n")
        program.chmod(0o755)

    done = run_forked(tmp_path, "windrow_demo", JAVA_HOME=str(tmp_path / "home"))

    assert "Spark needs Java 17 or newer" in _one_line(done)
    assert not (tmp_path / "data").exists()
