"""Ten questions of operators, each answered from the overview by clicking at most three times.

The last one takes a worker with Spark; `test_acting.py` asks it of one without, by day.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.api.browsing import asking, tab_of
from tests.support.api.dashboards import (
    LAKE,
    Operated,
    abandon_writes,
    begin_refresh,
    fill,
    past_hours,
    token,
)
from tests.support.processes.forks import fork_module
from tests.support.servers.coordinators import running, wait_until
from tests.support.tables import hive
from windrow_service.settings import Settings

pytestmark = pytest.mark.browser
expect.set_options(timeout=5_000)

# A worker starts its session of Spark once there is work.
WORKER_MS = 180_000
REAL = "lake.small"


class Site:
    """A coordinator with tables of all kinds, one of which has files that can be rewritten."""

    def __init__(self, url: str, settings: Settings, root: Path) -> None:
        self.url = url
        self.admin = token(settings, "operator", "admin")
        self.operated = Operated(url, self.admin)
        self.http = self.operated.http
        fill(self.operated)
        self.location = hive.write_events(root / "small", files_per_day=4)
        self.operated.register(REAL, location=str(self.location), columns=None)
        self.http.post(f"/tables/{REAL}/refresh").raise_for_status()
        self.operated.register("sales.orders", plan_options={"strategy": "spark"})
        body = {"table": "sales.events", "columns": ["id"], "options": {"parallelism": 16}}
        self.slow = self.http.post("/plans", json=body).raise_for_status().json()["plan_id"]
        scan = {"plan_id": self.slow, "seconds": 9, "planning_seconds": 0.1}
        scan |= {"groups": {"files": 744, "seconds": 100}}
        self.http.post("/scan-reports", json={"scans": [scan]}).raise_for_status()
        begin_refresh(settings.state_dir, "sales.new")
        abandon_writes(settings.state_dir)
        past_hours(settings.state_dir, 400)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    state_dir, root = (tmp_path_factory.mktemp(name) for name in ("questions", "lake"))
    settings = Settings(
        state_dir=state_dir, allowed_locations=(LAKE, str(root)), require_tokens=True
    )
    with running(settings) as url:
        site = Site(url, settings, root)
        yield site
        site.http.close()


def test_which_table_comes_first_and_why(browser: Browser, site: Site) -> None:
    with asking(browser, site.url, site.admin, "overview") as (page, click):
        first = page.get_by_role("region", name="What to do first").get_by_role("row").nth(1)
        expect(first).to_contain_text("sales.events")
        expect(first).to_contain_text("720 of 744")
        click(first.get_by_role("link", name="sales.events", exact=True))
        click(tab_of(page, "Writes"))
        expect(page.locator("main")).to_contain_text("60 tasks x 12 partitions made 720 files")


def test_what_failed_last_night_and_why(browser: Browser, site: Site) -> None:
    with asking(browser, site.url, site.admin, "overview") as (page, click):
        failed = page.get_by_role("region", name="Failed refreshes").get_by_role("row").nth(1)
        expect(failed).to_contain_text("sales.clicks")
        expect(failed).to_contain_text("does not exist")
        expect(page.get_by_role("region", name="Abandoned writes")).to_contain_text("driver-2")
        click(failed.get_by_role("link"))
        expect(page.get_by_role("alert")).to_contain_text("does not exist")


def test_why_a_query_was_slow(browser: Browser, site: Site) -> None:
    with asking(browser, site.url, site.admin, "overview") as (page, click):
        # A column of the trends has this name too, once that part of the page is there.
        menu = page.get_by_role("navigation", name="Pages")
        click(menu.get_by_role("link", name="Plans", exact=True))
        plans = page.get_by_role("region", name="Plans").get_by_role("row")
        click(plans.filter(has_text="9 s").get_by_role("link").first)
        expect(page.get_by_role("heading", level=2).first).to_contain_text(
            "Why the read took 9.1 s"
        )
        expect(page.locator(".causes li").first).to_contain_text("no condition that a plan can use")


def test_what_compaction_would_gain_over_all_tables(browser: Browser, site: Site) -> None:
    with asking(browser, site.url, site.admin, "overview") as (page, _):
        figures = page.locator("#gain + dl")
        expect(figures).to_contain_text(re.compile(r"Tables with excess files\s*4"))
        expect(figures).to_contain_text(re.compile(r"now → then\s*834 → 32"))
        expect(figures).to_contain_text(re.compile(r"Saved in 7 days\s*[0-9.]+ ms"))


def test_whether_the_cache_of_a_host_is_worth_its_disk(browser: Browser, site: Site) -> None:
    with asking(browser, site.url, site.admin, "overview") as (page, click):
        click(page.get_by_role("link", name="Cache", exact=True))
        hosts = page.get_by_role("region", name="Workers").get_by_role("row")
        expect(hosts.filter(has_text="host-3")).to_contain_text("no: tasks here read only files")
        expect(hosts.filter(has_text="host-1")).to_contain_text("yes: 9,310 of 9,712 reads")


def test_who_changed_a_table_from_what_to_what(browser: Browser, site: Site) -> None:
    with asking(browser, site.url, site.admin, "overview") as (page, click):
        page.get_by_placeholder("Find a table").fill("sales.orders")
        click(page.get_by_role("button", name="Find"))
        click(tab_of(page, "History"))
        change = page.get_by_role("region", name="Latest changes").get_by_role("row").nth(1)
        expect(change).to_contain_text("operator")
        expect(change).to_contain_text("table changed")
        expect(change).to_contain_text("strategy: not set → spark")


def test_which_partitions_are_worst(browser: Browser, site: Site) -> None:
    with asking(browser, site.url, site.admin, "overview") as (page, click):
        first = page.get_by_role("region", name="What to do first").get_by_role("row").nth(1)
        click(first.get_by_role("link", name="sales.events", exact=True))
        click(tab_of(page, "Partitions"))
        worst = page.get_by_role("region", name="Excess files by partition").get_by_role("row")
        expect(worst.nth(1)).to_contain_text("ds=2026-11-")
        expect(worst.nth(1)).to_contain_text("8.3 %")


def test_whether_the_coordinator_falls_behind(browser: Browser, site: Site) -> None:
    with asking(browser, site.url, site.admin, "overview") as (page, click):
        expect(page.get_by_role("img", name="Time of planning")).to_be_visible()
        hours = page.get_by_role("region", name="Figures by the hour").get_by_role("row")
        expect(hours.nth(1)).to_contain_text("ms")
        click(page.get_by_role("link", name="Work", exact=True))
        running_now = page.get_by_role("region", name="Refreshes").get_by_role("row").nth(1)
        expect(running_now).to_contain_text("31,000 of 86,400 footers")
        expect(page.locator("main")).to_contain_text("has renewed its lease in the last 5 s")


def test_how_maintenance_is_stopped(browser: Browser, site: Site) -> None:
    with asking(browser, site.url, site.admin, "overview") as (page, click):
        click(page.get_by_role("link", name="Maintenance", exact=True))
        click(page.get_by_role("button", name="Pause everything"))
        expect(page.get_by_role("status")).to_contain_text("All maintenance is paused")
        click(page.get_by_role("button", name="Resume maintenance"))
        expect(page.get_by_role("button", name="Pause everything")).to_be_visible()


@pytest.mark.nightly
def test_a_compaction_is_started_and_watched_until_a_real_worker_has_ended_it(
    browser: Browser, site: Site, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    worker = fork_module(
        *("windrow_cli", "maintain", "--tables", "lake.*", "--url", site.url),
        output=log,
        environment=os.environ | {"WINDROW_TOKEN": site.admin},
    )
    try:
        with asking(browser, site.url, site.admin, "overview") as (page, click):
            click(page.get_by_role("link", name=f"compact {REAL}"))
            expect(page.locator("main")).to_contain_text("12 small files")
            # The button is there once a worker has asked for work on such tables.
            button = page.get_by_role("button", name="Compact now")
            wait_until(lambda: page.reload() is not None and button.is_visible())
            click(button)
            expect(page.get_by_role("status")).to_contain_text("1 piece of work waits now")
            # Nobody clicks from here on.
            done = page.get_by_role("region", name="Done")
            expect(done).to_contain_text("12 files", timeout=WORKER_MS)
    finally:
        worker.kill()
        worker.wait()

    assert len(hive.data_files(site.location)) == 3, log.read_text()
