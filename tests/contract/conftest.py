"""A coordinator for all contract tests, a table folder for each test, and databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

import windrow
from tests.support.servers import embedded
from tests.support.servers.coordinators import PLAIN, running
from tests.support.tables import hive
from windrow_service.settings import Settings
from windrow_service.store.database import server_url


@pytest.fixture(scope="session")
def tables_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The only folder in which tables are allowed."""
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="session")
def url(tables_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = Settings(
        state_dir=tmp_path_factory.mktemp("state"), allowed_locations=(str(tables_folder),)
    )
    with running(settings) as url:
        yield url


@pytest.fixture
def http(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=60, verify=PLAIN) as client:
        yield client


@pytest.fixture
def client(url: str) -> Iterator[windrow.Client]:
    with windrow.connect(url) as client:
        yield client


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A table name that no other test uses."""
    return "t_" + f"{abs(hash(request.node.nodeid)):x}"


@pytest.fixture
def location(tables_folder: Path, name: str) -> Path:
    """A location for this test's table that does not exist yet."""
    return tables_folder / name


@pytest.fixture
def events(http: httpx.Client, name: str, location: Path) -> str:
    """The name of a registered and refreshed table of three days, two files each."""
    hive.write_events(location)
    http.put(f"/tables/{name}", json={"location": str(location)}).raise_for_status()
    http.post(f"/tables/{name}/refresh").raise_for_status()
    return name


@pytest.fixture
def make_plan(http: httpx.Client) -> Callable[..., dict[str, Any]]:
    """Request a plan, which must succeed, and return it."""

    def post(table: str, **fields: Any) -> dict[str, Any]:
        answer = http.post("/plans", json={"table": table, **fields})
        assert answer.status_code == 200, answer.text
        plan: dict[str, Any] = answer.json()
        return plan

    return post


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> sa.URL:
    """An empty database of either kind."""
    if request.param == "sqlite":
        return embedded.upgraded(tmp_path)
    return server_url(request.getfixturevalue("upgraded_postgresql_url"))
