"""The figures of all pages: each says what it counts, and is the same on every database."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from tests.support.api.dashboards import LAKE, Operated, fill
from tests.support.servers.coordinators import running, wait_until
from tests.support.servers.databases import on_database
from tests.support.tables import hive
from tests.support.tables.packs import unpublished_pack
from windrow_service.api.dashboard.table import TABS
from windrow_service.api.html.explanations import EXPLANATIONS
from windrow_service.settings import Settings
from windrow_service.store.database import Database, embedded_url, server_url
from windrow_service.store.overview import SqlOverview

_TABLES = ("sales.events", "sales.clicks", "sales.orders", "sales.new", "hr.salaries", "lake.real")
_PAGES = (
    "overview",
    *(
        f"tables?sort={order}&down={down}"
        for order in ("excess", "name", "mean")
        for down in (0, 1)
    ),
    "tables?health=poor",
    *(f"tables/{name}" for name in _TABLES),
    *(f"tables/{name}/{tab}" for name in _TABLES for tab in TABS if tab),
    "maintenance",
    "plans",
    "plans?table=sales.events&state=completed",
    "cache",
    "work",
    "access",
    "policies",
    "policies/*",
    "you",
)
# What differs from one run to the next: moments, how long ago they were, what was measured, random
# ids, and how much room databases take.
_VARYING = (
    (r"<time [^>]*>[^<]*</time>", "TIME"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?( UTC)?", "TIME"),
    (r"(less than )?[\d.,]+ (ms|s|min|h)\b", "DURATION"),
    (r"http://127\.0\.0\.1:\d+", "URL"),
    (r"\b([0-9a-f]{32}|[0-9a-f]{16}|[0-9a-f]{8})\b", "ID"),
    (r'name="(form|key)" value="[^"]*"', "FORM"),
    (r"(Database on disk.*?<dd>)[^<]*", r"\1SIZE"),
    # The coordinator also records the current hour, whenever its turn comes.
    (r'aria-label="Figures by the hour".*?</table>', "HOURS"),
    # Charts over time, and bars of measured times.
    (r"<svg.*?</svg>", "CHART"),
)


def pages(settings: Settings, database_url: sa.URL, lake: Path) -> dict[str, str]:
    """Return all pages of a coordinator that has something to show on each."""
    settings = settings.model_copy(update={"allowed_locations": (LAKE, str(lake))})
    with running(settings) as url:
        operated = Operated(url)
        http = operated.http
        beat = {"host": "host-9", "capacity_bytes": 2**30, "used_bytes": 0, "ttl_seconds": 1}
        http.put("/workers/host-9", json=beat).raise_for_status()
        fill(operated)
        operated.register("lake.real", location=str(lake), columns=None)
        http.post("/tables/lake.real/refresh").raise_for_status()
        pack = unpublished_pack(http, "lake.real")
        http.post("/tables/lake.real/packs", json=pack).raise_for_status()
        eager = {"min_age_seconds": 0, "min_gain": 0.0, "reads_per_day": 100.0}
        http.put("/policies/*", json=eager).raise_for_status()
        http.post("/maintenance/rounds").raise_for_status()
        claim = {"worker": "spark-1:4711", "pattern": "*"}
        item = http.post("/maintenance/claims", json=claim).raise_for_status().json()
        outcome = {"files_before": 6, "files_after": 2, "core_seconds": 1.5, "bytes_before": 10}
        report = {"state": "done", "text": "6 files became 2", "outcome": outcome}
        http.put(f"/maintenance/claims/{item['claim_id']}", json=report).raise_for_status()
        body = {"table": "sales.events", "filter": "ds >= '2026-11-10'", "columns": ["id"]}
        plan = http.post("/plans", json=body).raise_for_status().json()["plan_id"]
        scan = {"plan_id": plan, "seconds": 9, "planning_seconds": 0.1}
        scan |= {"groups": {"files": 248, "seconds": 100}}
        http.post("/scan-reports", json={"scans": [scan]}).raise_for_status()
        http.post("/plans", json={"table": "hr.salaries", "filter": "nothing = 1"})
        on_database(database_url, _record_hours)
        wait_until(lambda: "Gone: workers" in http.get("/dashboard/cache").text)
        answers = {
            path: http.get(f"/dashboard/{path}", follow_redirects=True)
            for path in (*_PAGES, f"plans/{plan}")
        }
        http.close()
    assert {path: one.status_code for path, one in answers.items() if one.status_code != 200} == {}
    return {path.replace(plan, "ID"): one.text for path, one in answers.items()}


async def _record_hours(database: Database) -> None:
    overview, now = SqlOverview(database), datetime.now(timezone.utc)
    for hours in (3, 2, 1):
        await overview.record(now - timedelta(hours=hours))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = hive.write_events(tmp_path_factory.mktemp("lake") / "real")
    for file in lake.rglob("*.parquet"):
        # Files that somebody still writes are in no pack.
        os.utime(file, (1, 1))
    return lake


@pytest.fixture(scope="module")
def embedded(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    folder = tmp_path_factory.mktemp("figures")
    return pages(Settings(state_dir=folder), embedded_url(folder), lake)


def test_the_label_of_every_figure_says_what_it_counts(embedded: Mapping[str, str]) -> None:
    silent = {
        path: headings
        for path, page in embedded.items()
        if (headings := [one for one in figure_headings(page) if " title=" not in one])
    }
    anchors = {
        anchor
        for page in embedded.values()
        for anchor in re.findall(r'href="(?:\.\./)+guide/reference/figures\.html#([^"]+)"', page)
    }

    assert silent == {}
    assert anchors == EXPLANATIONS.keys()


# Stores give the same on both databases every day, and pages are shown on SQLite.
@pytest.mark.nightly
@pytest.mark.slow
def test_pages_on_postgresql_show_the_figures_that_they_show_on_sqlite(
    embedded: Mapping[str, str], lake: Path, upgraded_postgresql_url: str, tmp_path: Path
) -> None:
    url = SecretStr(upgraded_postgresql_url)
    settings = Settings(state_dir=tmp_path, database_url=url)

    on_server = pages(settings, server_url(upgraded_postgresql_url), lake)

    assert on_server.keys() == embedded.keys()
    for path, page in on_server.items():
        assert without_varying(page) == without_varying(embedded[path]), path
        assert 'role="alert"' not in page or 'role="alert"' in embedded[path]


def figure_headings(page: str) -> Iterator[str]:
    """Yield what heads the figures of a page: terms, columns, or the heading of a whole table."""
    for terms in re.findall(r'<dl class="figures"[^>]*>(.*?)</dl>', page, re.S):
        yield from re.findall(r"<dt>.*?</dt>", terms, re.S)
    for before, table in re.findall(r"(<h[23].*?)<table>(.*?)</table>", page, re.S):
        columns = re.findall(r'<th scope="col" class="n".*?</th>', table, re.S)
        if columns:
            yield from columns
        elif '<td class="n"' in table:
            yield re.findall(r"<h[23].*?</h[23]>", before, re.S)[-1]


def without_varying(page: str) -> str:
    """Return the text of a page without what differs from run to run."""
    for pattern, name in _VARYING:
        page = re.sub(pattern, name, page, flags=re.S)
    return page
