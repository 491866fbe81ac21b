"""Real coordinators for tests, in a thread of this process or in a separate process."""

from __future__ import annotations

import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import uvicorn
from fastapi import FastAPI

from tests.support.processes.forks import TIMEOUT_S, Forked, fork
from tests.support.servers import embedded
from windrow_service import __main__ as served
from windrow_service.bootstrap import build_app
from windrow_service.serving import server_config
from windrow_service.settings import Settings
from windrow_service.store.clock import machine_clock
from windrow_service.usecases.ports import Clock

# For `verify=` of clients: coordinators of tests encrypt nothing, and loading the CA certificates
# for each client takes longer than most requests.
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@contextmanager
def running(settings: Settings, port: int = 0, *, machine: Clock = machine_clock) -> Iterator[str]:
    """Serve a coordinator in a thread; yield its URL.

    Args:
        settings: Its settings.
        port: A loopback port; by default a free one.
        machine: The clock of its machine.
    """
    if settings.database_url is None:
        embedded.upgraded(settings.state_dir)
    with serving(build_app(settings, machine=machine), settings, port) as url:
        yield url


@contextmanager
def serving(app: FastAPI, settings: Settings | None = None, port: int = 0) -> Iterator[str]:
    """Serve an application in a thread on a loopback port, by default a free one; yield its URL."""
    with socket.socket(proto=socket.IPPROTO_TCP) as listening:
        # `free_port` still holds the ports that it has found.
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
    process: Forked | subprocess.Popen[bytes]
    log: Path

    def kill(self) -> None:
        """Kill the process, without a chance to clean up, as in a crash."""
        self.process.kill()
        self.process.wait(TIMEOUT_S)

    def stop(self) -> int:
        """Ask the process to end, as an operator would, and return its exit code."""
        self.process.terminate()
        return self.process.wait(TIMEOUT_S)

    def has_ended(self) -> bool:
        """Return whether the process has ended, for whatever reason."""
        return self.process.poll() is not None


def peak_bytes(coordinator: CoordinatorProcess) -> int:
    """Return the most memory that a coordinator has taken so far."""
    status = Path(f"/proc/{coordinator.process.pid}/status").read_text()
    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert match is not None
    return int(match[1]) * 1024


@contextmanager
def coordinator_process(
    state_dir: Path,
    allowed: Path | str,
    *,
    prefix: tuple[str, ...] = (),
    executable: str | Path = sys.executable,
    port: int | None = None,
    **environment: str,
) -> Iterator[CoordinatorProcess]:
    """Start a coordinator process and wait until it is ready; kill it at the end.

    Args:
        state_dir: Folder of its database; the log is next to it.
        allowed: Folder that may hold tables, or its URI.
        prefix: Command to run it with, such as `("prlimit", "--fsize=1000000")`.
        executable: Python interpreter that runs it.
        port: Its port; a free one by default.
        **environment: Further settings, such as `WINDROW_PLANNER_THREADS="1"`.
    """
    port = port or free_port()
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
    process: Forked | subprocess.Popen[bytes] = (
        fork(served.main, output=log, environment=variables | environment)
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
    """Wait until a condition holds; fail if it takes too long."""
    deadline = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline, "the condition did not hold in time"
        time.sleep(0.05)


def _is_ready(http: httpx.Client) -> bool:
    try:
        return http.get("/health/ready").is_success
    except httpx.TransportError:
        return False
