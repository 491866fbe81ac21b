"""Real coordinators for tests, in a thread of this process or in a separate process."""

from __future__ import annotations

import multiprocessing
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.process import BaseProcess
from pathlib import Path
from subprocess import CompletedProcess

import httpx
import uvicorn
from fastapi import FastAPI

from tests.support import embedded
from windrow_service import __main__ as served
from windrow_service.bootstrap import build_app
from windrow_service.serving import server_config
from windrow_service.settings import Settings

_START_TIMEOUT_S = 60.0

# For `verify=` of clients: coordinators of tests encrypt nothing, and loading the CA certificates
# for each client takes longer than most requests.
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

# One process imports what coordinators need, and each coordinator is forked from it: still a
# separate process, but without seconds of imports.
_forking = multiprocessing.get_context("forkserver")
_imported_late = (
    "aiosqlite",
    "anyio._backends._asyncio",
    "httptools",
    "tests.support.loaded_pages",
    "uvloop",
)
_forking.set_forkserver_preload(["__main__", __name__, *_imported_late])


@contextmanager
def running(settings: Settings, port: int = 0) -> Iterator[str]:
    """Serve a coordinator in a thread on a loopback port, by default a free one; yield its URL."""
    if settings.database_url is None:
        embedded.upgraded(settings.state_dir)
    with serving(build_app(settings), settings, port) as url:
        yield url


@contextmanager
def serving(app: FastAPI, settings: Settings | None = None, port: int = 0) -> Iterator[str]:
    """Serve an application in a thread on a loopback port, by default a free one; yield its URL."""
    with socket.socket(proto=socket.IPPROTO_TCP) as listening:
        # A free port that was found before is still held.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen()
        # A test that keeps a connection open must not keep the server running.
        config = server_config(settings or Settings(), app, stop_timeout_s=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            wait_until(lambda: server.started or not thread.is_alive())
            assert server.started, "the coordinator did not start: see the captured log"
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@dataclass(frozen=True, slots=True)
class CoordinatorProcess:
    """A coordinator in a separate process, equivalent to `python -m windrow_service`."""

    url: str
    process: BaseProcess | subprocess.Popen[bytes]
    log: Path

    def kill(self) -> None:
        """Kill the process, without a chance to clean up, as in a crash."""
        self.process.kill()
        self._ended()

    def stop(self) -> int:
        """Ask the process to end, as an operator would, and return its exit code."""
        self.process.terminate()
        return self._ended()

    def has_ended(self) -> bool:
        """Return whether the process has ended, for whatever reason."""
        if isinstance(self.process, BaseProcess):
            return not self.process.is_alive()
        return self.process.poll() is not None

    def _ended(self) -> int:
        if not isinstance(self.process, BaseProcess):
            return self.process.wait(_START_TIMEOUT_S)
        self.process.join(_START_TIMEOUT_S)
        assert self.process.exitcode is not None, "the coordinator did not end in time"
        return self.process.exitcode


@contextmanager
def coordinator_process(
    state_dir: Path,
    allowed: Path,
    *,
    prefix: tuple[str, ...] = (),
    executable: str | Path = sys.executable,
    **environment: str,
) -> Iterator[CoordinatorProcess]:
    """Start a coordinator process and wait until it is ready; kill it at the end.

    Args:
        state_dir: Folder of its database; the log is next to it.
        allowed: Folder that may hold tables.
        prefix: Command to run it with, such as `("prlimit", "--fsize=1000000")`.
        executable: Python interpreter that runs it.
        **environment: Further settings, such as `WINDROW_PLANNER_THREADS="1"`.
    """
    port = free_port()
    log = state_dir.with_name(f"{state_dir.name}-{port}.log")
    variables = {name: value for name, value in os.environ.items() if "WINDROW" not in name}
    variables |= {
        "WINDROW_PORT": str(port),
        "WINDROW_STATE_DIR": str(state_dir),
        "WINDROW_ALLOWED_LOCATIONS": str(allowed),
    }
    command = [*prefix, str(executable), "-m", "windrow_service"]
    as_usual = not prefix and executable == sys.executable
    if as_usual and "WINDROW_DATABASE_URL" not in environment:
        embedded.upgraded(state_dir)
    process: BaseProcess | subprocess.Popen[bytes] = (
        _forked(log, variables | environment)
        if as_usual
        else _started(command, log, variables | environment)
    )
    started = CoordinatorProcess(f"http://127.0.0.1:{port}", process, log)
    try:
        with httpx.Client(verify=PLAIN, base_url=started.url) as http:
            wait_until(lambda: started.has_ended() or _is_ready(http))
        assert not started.has_ended(), f"the coordinator did not start: {log.read_text()}"
        yield started
    finally:
        started.kill()


def _started(command: list[str], log: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)


def _forked(log: Path, environment: dict[str, str]) -> BaseProcess:
    process = _forking.Process(target=_serve, args=(log, environment))
    process.start()
    return process


def _serve(log: Path, environment: dict[str, str]) -> None:
    with log.open("wb") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.environ.clear()
    os.environ.update(environment)
    served.main()


def run_forked(
    cwd: Path, module: str, *arguments: str, **environment: str
) -> CompletedProcess[str]:
    """Run the equivalent of `python -m module …` until it ends by itself, without its imports."""
    said, complained = cwd / "stdout", cwd / "stderr"
    asked = (cwd, (said, complained), module, arguments, os.environ | environment)
    process = _forking.Process(target=_run_module, args=asked)
    process.start()
    process.join(_START_TIMEOUT_S)
    try:
        assert process.exitcode is not None, f"it did not end in time: {complained.read_text()}"
    finally:
        process.kill()
    return CompletedProcess(
        [module, *arguments], process.exitcode, said.read_text(), complained.read_text()
    )


def _run_module(
    cwd: Path,
    outputs: tuple[Path, Path],
    module: str,
    arguments: tuple[str, ...],
    environment: dict[str, str],
) -> None:
    for number, file in enumerate(outputs, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [module, *arguments]
    import_module(f"{module}.__main__").main()


def free_port() -> int:
    """Return a free loopback port that nobody else will get."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
        # Held open until the tests end: a server can listen on it, but no other program gets it.
        probe.detach()
    return port


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; fail if it takes too long."""
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


def _is_ready(http: httpx.Client) -> bool:
    try:
        return http.get("/health/ready").is_success
    except httpx.TransportError:
        return False
