"""A database that says nothing at all holds neither calls nor probes, and is used again later."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa
import yaml

from tests.support.api.problems import problem_of
from tests.support.faults.proxies import Proxy, proxy
from tests.support.laws import a_few
from tests.support.servers.coordinators import PLAIN, CoordinatorProcess, coordinator_process
from tests.support.servers.databases import (
    PostgreSQL,
    address_of,
    on_database,
    postgresql,
    through,
)
from tests.support.tables import hive
from windrow_service import bootstrap
from windrow_service.settings import Settings
from windrow_service.store.database import Database, server_url

CHART = Path(__file__).parents[2] / "helm/windrow/templates/deployment.yaml"
# Callers give up after so long; most of them wait for longer.
PATIENCE_S = 45.0


@dataclass(frozen=True, slots=True)
class Silent:
    """A coordinator whose database can fall silent."""

    http: httpx.Client
    probe: httpx.Client
    coordinator: CoordinatorProcess
    server: PostgreSQL
    proxy: Proxy

    def silence(self, kind: str) -> AbstractContextManager[None]:
        """Let the database fall silent in a block."""
        return self.server.frozen() if kind == "frozen" else self._held()

    @contextmanager
    def _held(self) -> Iterator[None]:
        self.proxy.speaks.clear()
        try:
            yield
        finally:
            self.proxy.speaks.set()


def probe_timeout_s() -> float:
    """Return how long a probe of the chart waits."""
    text = CHART.read_text().partition("readinessProbe:")[2].partition("lifecycle:")[0]
    return float(yaml.safe_load(text)["timeoutSeconds"])


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[Silent]:
    location = hive.write_events(tmp_path / "events")
    with postgresql() as server, proxy(address_of(server.url)) as between:
        bootstrap.upgrade(Settings.model_validate({"database_url": server.url}))
        url = through(between.port, server.url)
        with (
            coordinator_process(tmp_path / "state", tmp_path, WINDROW_DATABASE_URL=url) as process,
            httpx.Client(verify=PLAIN, base_url=process.url, timeout=PATIENCE_S) as http,
            httpx.Client(verify=PLAIN, base_url=process.url, timeout=probe_timeout_s()) as probe,
        ):
            table = {"location": str(location), "columns": [{"name": "id", "type": "bigint"}]}
            http.put("/tables/t", json=table).raise_for_status()
            http.post("/tables/t/refresh").raise_for_status()
            yield Silent(http, probe, process, server, between)


@pytest.mark.parametrize("kind", a_few(["held back", "frozen"], 2))
def test_a_silent_database_holds_neither_calls_nor_probes(silent: Silent, kind: str) -> None:
    http, probe = silent.http, silent.probe
    assert probe.get("/health/ready").is_success

    with silent.silence(kind):
        for _ in range(3):
            problem_of(probe.get("/health/ready"), 503, "store-unavailable")
            assert probe.get("/health/live").is_success
        plan = http.post("/plans", json={"table": "t"})
        assert plan.status_code in (503, 504), plan.text
        problem_of(http.get("/tables/t"), 503, "store-unavailable")
        problem_of(probe.get("/health/ready"), 503, "store-unavailable")

    # Nobody restarts anything.
    deadline = time.monotonic() + PATIENCE_S
    while not http.get("/health/ready").is_success:
        assert time.monotonic() < deadline
    assert http.post("/plans", json={"table": "t"}).is_success
    assert "Traceback" not in silent.coordinator.log.read_text()


def test_a_statement_that_takes_long_is_answered_while_its_server_lives(
    upgraded_postgresql_url: str,
) -> None:
    async def work(database: Database) -> int:
        async with database.reading() as connection:
            query = sa.select(sa.literal(7), sa.func.pg_sleep(11))
            return int((await connection.execute(query)).one()[0])

    assert on_database(server_url(upgraded_postgresql_url), work) == 7


def test_a_statement_of_a_server_that_falls_silent_ends_its_connection(
    upgraded_postgresql_url: str,
) -> None:
    async def work(database: Database) -> str:
        async with database.reading() as connection:
            between.speaks.clear()
            with pytest.raises(sa.exc.OperationalError) as caught:
                await asyncio.wait_for(connection.execute(sa.text("SELECT 1")), PATIENCE_S)
            assert connection.invalidated
        return str(caught.value)

    with proxy(address_of(upgraded_postgresql_url)) as between:
        url = through(between.port, upgraded_postgresql_url)
        assert "closed the connection" in on_database(server_url(url), work)


@pytest.mark.parametrize(
    ("query", "seconds"), [("", 10), ("&tcp_user_timeout=3000&keepalives_idle=2", 3)]
)
def test_the_kernel_gives_up_lost_packets_after_seconds(
    upgraded_postgresql_url: str, query: str, seconds: int
) -> None:
    async def work(database: Database) -> int:
        async with database.reading() as connection:
            raw = await connection.get_raw_connection()
            assert raw.driver_connection is not None
            with socket.socket(fileno=raw.driver_connection.fileno()) as one:
                limit_ms = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
                assert one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
                assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) <= 5
                one.detach()
            return limit_ms

    with proxy(address_of(upgraded_postgresql_url)) as between:
        url = through(between.port, upgraded_postgresql_url) + query
        assert on_database(server_url(url), work) == seconds * 1000
