"""`/health`, `/config` and the HTML pages."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.support.api.problems import problem_of
from tests.support.faults.disks import nearly_full, small_disk
from tests.support.servers.coordinators import PLAIN, running
from windrow_service.settings import Settings


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "windrow.db"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[httpx.Client]:
    """A coordinator with its own database, which a test may damage."""
    settings = Settings(state_dir=tmp_path, allowed_locations=(str(tmp_path),))
    with running(settings) as url, httpx.Client(verify=PLAIN, base_url=url) as http:
        yield http


def test_a_working_coordinator_is_live_and_ready(own: httpx.Client) -> None:
    assert own.get("/health/live").json() == {"status": "ok", "checks": {}}
    assert own.get("/health/ready").json() == {
        "status": "ok",
        "checks": {"database": "ok", "cache": "ok", "clock": "ok"},
    }


def test_a_coordinator_without_its_database_is_live_but_not_ready(
    own: httpx.Client, database: Path
) -> None:
    with closing(sqlite3.connect(database)) as other:
        # Fetch names first: a change during an open read fails if the coordinator writes then.
        for (table,) in other.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        ).fetchall():
            other.execute(f"ALTER TABLE {table} RENAME TO gone_{table}")

    live, ready = own.get("/health/live"), own.get("/health/ready")

    assert live.status_code == 200
    problem_of(ready, 503, "store-unavailable")
    assert int(ready.headers["Retry-After"]) >= 1
    problem_of(own.get("/tables"), 503, "store-unavailable")


def test_a_database_that_comes_back_makes_the_coordinator_ready_again(
    own: httpx.Client, database: Path
) -> None:
    with closing(sqlite3.connect(database)) as other:
        other.execute("ALTER TABLE secrets RENAME TO gone")
        problem_of(own.get("/health/ready"), 503, "store-unavailable")
        other.execute("ALTER TABLE gone RENAME TO secrets")

    assert own.get("/health/ready").is_success


def test_a_coordinator_with_a_full_disk_is_degraded_but_still_answers(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", 8 * 2**20) as disk,
        running(Settings(state_dir=disk, allowed_locations=(str(tmp_path),))) as url,
        httpx.Client(verify=PLAIN, base_url=url, timeout=60) as http,
    ):
        table = {"location": str(tmp_path), "columns": [{"name": "id", "type": "bigint"}]}
        http.put("/tables/t", json=table).raise_for_status()
        with nearly_full(disk, 2):
            full = http.get("/health/ready")
            told = http.get("/tables/t")
        free = http.get("/health/ready")

    assert full.status_code == 200
    assert (full.json()["status"], full.json()["checks"]["database"]) == ("degraded", "full")
    assert told.is_success
    assert free.json()["status"] == "ok"


def test_the_database_is_readable_only_by_its_owner(own: httpx.Client, database: Path) -> None:
    assert own.get("/health/ready").is_success
    assert {
        path.name: path.stat().st_mode & 0o077 for path in database.parent.glob("windrow.db*")
    } == dict.fromkeys((path.name for path in database.parent.glob("windrow.db*")), 0)


def test_the_front_page_leads_to_the_documentation(own: httpx.Client) -> None:
    answer = own.get("/")

    assert (answer.status_code, answer.headers["Location"]) == (307, "/docs")
    page = own.get("/docs")
    assert page.is_success
    assert "https://" not in page.text


def test_pages_have_protective_headers(own: httpx.Client) -> None:
    page, style = own.get("/docs"), own.get("/static-offline-docs/swagger-ui.css")

    policy = page.headers["Content-Security-Policy"].split("; ")
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    (scripts,) = (part for part in policy if part.startswith("script-src"))
    assert "unsafe" not in scripts
    assert page.headers["X-Frame-Options"] == "DENY"
    answers = [page, style, own.get("/config"), own.get("/nowhere"), own.get("/openapi.json")]
    assert {answer.headers["X-Content-Type-Options"] for answer in answers} == {"nosniff"}
