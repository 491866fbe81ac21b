"""A database that is full, read-only or closed to the coordinator: 503 with the reason, never 500."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import sqlalchemy as sa

from tests.contract.test_failures_logged import lines_of
from tests.support.api.problems import problem_of
from tests.support.faults.disks import failing_disk, nearly_full, small_disk
from tests.support.servers.coordinators import PLAIN, serving, wait_until
from tests.support.tables import hive
from windrow_service.bootstrap import build_app
from windrow_service.logs import logging_to
from windrow_service.settings import Settings

PASSWORD = "open-sesame"
# A definition that does not fit into what is left of a page.
COLUMNS = [{"name": f"c{number}", "type": "bigint"} for number in range(10_000)]


@dataclass(frozen=True, slots=True)
class Setup:
    """A coordinator on a database, with a table that has been refreshed and has a new file."""

    http: httpx.Client
    log: Any
    location: Path

    def calls(self) -> dict[str, httpx.Response]:
        """Make calls that change the database; return their answers."""
        put, post = self.http.put, self.http.post
        location = str(self.location)
        return {
            "register": put("/tables/new", json={"location": location, "columns": COLUMNS}),
            "refresh": post("/tables/events/refresh"),
            "plan": post("/plans", json={"table": "events"}),
            "fresh plan": post("/plans", json={"table": "events", "max_staleness": 0}),
            "rule": put("/tables/events/cache-rules/r", json={"filter": "ds IS NOT NULL"}),
        }

    def refused_requests(self) -> list[dict[str, Any]]:
        """Return the lines of the log about answers of 500 and more."""
        return [line for line in lines_of(self.log, "request") if line["status"] >= 500]


@contextmanager
def coordinator(location: Path, state: Path, url: str | None = None) -> Iterator[Setup]:
    """Serve a coordinator whose log is kept."""
    import io

    log = io.StringIO()
    app = build_app(
        Settings(state_dir=state, database_url=url, allowed_locations=(str(location.parent),))
    )
    with (
        logging_to(log, level="info", for_people=False, secrets=[PASSWORD]),
        serving(app) as base,
        httpx.Client(verify=PLAIN, base_url=base, timeout=60) as http,
    ):
        hive.write_events(location)
        http.put("/tables/events", json={"location": str(location)}).raise_for_status()
        http.post("/tables/events/refresh").raise_for_status()
        hive.write_file(location / "ds=2026-11-09" / "new.parquet", range(5))
        yield Setup(http, log, location)


def require_refused(setup: Setup, reason: str, *, all_of_them: bool = True) -> None:
    """Assert that changes are refused with this reason, which the log has too."""
    setup.log.seek(0)
    setup.log.truncate()
    answers = setup.calls()
    refused = {name: answer for name, answer in answers.items() if not answer.is_success}

    assert {"register", "refresh"} <= refused.keys()
    assert not all_of_them or refused.keys() == answers.keys()
    for answer in refused.values():
        detail = problem_of(answer, 503, "store-unavailable")["detail"]
        assert reason in detail
        assert "make sure" in detail
        assert PASSWORD not in answer.text
        assert int(answer.headers["Retry-After"]) >= 1
    # The line of a request follows its answer.
    wait_until(lambda: len(setup.refused_requests()) == len(refused))
    lines = setup.refused_requests()
    assert {line["problem"] for line in lines} == {"store-unavailable"}
    assert all(reason in line["reason"] for line in lines)
    failed = lines_of(setup.log, "a refresh failed")
    assert failed, setup.log.getvalue()
    assert {line["table"] for line in failed} == {"events"}
    assert all(reason in line["reason"] for line in failed)
    assert PASSWORD not in setup.log.getvalue()
    assert setup.http.get("/tables/events").is_success
    assert setup.http.get("/health/live").is_success


def require_mended(setup: Setup) -> None:
    """Assert that everything works again, without a restart."""
    answers = setup.calls()
    assert {name: one.text for name, one in answers.items() if not one.is_success} == {}
    snapshot = setup.http.get("/tables/events").json()["current_snapshot"]
    assert snapshot["row_count"] == 65


def statement(url: str, *texts: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for text in texts:
            connection.execute(text)


def end_connections(url: str, http: httpx.Client) -> None:
    """End all connections to a database, and wait until the coordinator has others.

    Only new connections get the database's settings.
    """
    name = sa.make_url(url).database
    others = "datname = %s AND pid <> pg_backend_pid()"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}", [name]
        )
    wait_until(lambda: http.get("/tables/events").is_success)


@pytest.fixture
def upgraded_on_a_small_disk(
    postgresql_server: str, _newest_database: str
) -> Iterator[tuple[str, Path]]:
    """URL of a database whose tables, but not its log, lie on a small disk; and that disk."""
    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        (shown,) = connection.execute("SHOW data_directory").fetchone() or ("",)
    if not Path(shown).exists():
        pytest.skip("the PostgreSQL server runs elsewhere")
    # Not in pytest's folders, which the server cannot enter.
    folder = Path(tempfile.mkdtemp(prefix="windrow-full-"))
    folder.chmod(0o755)
    owner = Path(shown).stat()
    name = "windrow_test_full"
    url = sa.make_url(postgresql_server).set(database=name).render_as_string(hide_password=False)
    try:
        with small_disk(folder / "disk", 64 * 2**20) as disk:
            os.chown(disk, owner.st_uid, owner.st_gid)
            statement(
                postgresql_server,
                f"CREATE TABLESPACE windrow_test_small LOCATION '{disk}'",
                f'CREATE DATABASE {name} TEMPLATE "{_newest_database}" '
                "TABLESPACE windrow_test_small",
            )
            try:
                yield url, disk
            finally:
                statement(
                    postgresql_server,
                    f"DROP DATABASE {name} WITH (FORCE)",
                    "DROP TABLESPACE windrow_test_small",
                )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_postgresql_without_room_on_its_disk_is_named(
    tmp_path: Path, upgraded_on_a_small_disk: tuple[str, Path]
) -> None:
    url, disk = upgraded_on_a_small_disk
    with coordinator(tmp_path / "tables" / "events", tmp_path / "state", url) as setup:
        with nearly_full(disk, 0):
            require_refused(setup, "No space left on device", all_of_them=False)
        require_mended(setup)


def test_a_read_only_postgresql_is_named(tmp_path: Path, upgraded_postgresql_url: str) -> None:
    url = upgraded_postgresql_url
    name = sa.make_url(url).database
    with coordinator(tmp_path / "tables" / "events", tmp_path / "state", url) as setup:
        statement(url, f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        end_connections(url, setup.http)
        require_refused(setup, "read-only transaction")
        statement(
            url,
            "SET default_transaction_read_only = off",
            f'ALTER DATABASE "{name}" RESET default_transaction_read_only',
        )
        end_connections(url, setup.http)
        require_mended(setup)


def test_rights_that_the_coordinators_user_lacks_are_named(
    tmp_path: Path, upgraded_postgresql_url: str
) -> None:
    url = upgraded_postgresql_url
    role = "windrow_test_reader"
    statement(
        url,
        f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}",
    )
    named = sa.make_url(url).set(username=role, password=PASSWORD)
    try:
        with coordinator(
            tmp_path / "tables" / "events",
            tmp_path / "state",
            named.render_as_string(hide_password=False),
        ) as setup:
            statement(url, f"REVOKE INSERT, UPDATE ON ALL TABLES IN SCHEMA public FROM {role}")
            require_refused(setup, "permission denied for table")
            statement(url, f"GRANT INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO {role}")
            require_mended(setup)
    finally:
        statement(url, f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_an_embedded_database_without_room_on_its_disk_is_named(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", 8 * 2**20) as disk,
        coordinator(tmp_path / "tables" / "events", disk) as setup,
    ):
        with nearly_full(disk, 0):
            require_refused(setup, "database or disk is full", all_of_them=False)
        require_mended(setup)


def test_an_embedded_database_on_a_disk_that_became_read_only_is_named(tmp_path: Path) -> None:
    state = tmp_path / "disk"
    with (
        failing_disk(state, 32 * 2**20) as fail,
        coordinator(tmp_path / "tables" / "events", state) as setup,
    ):
        fail()
        require_refused(setup, "disk I/O error")
