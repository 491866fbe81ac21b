"""What pages promise: thirty answers within two clicks, one screen that matters, and no long pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.api.browsing import opened, sign_in
from tests.support.api.dashboards import (
    LAKE,
    Operated,
    abandon_writes,
    begin_refresh,
    fill,
    multiply,
    multiply_plans,
    multiply_receipts,
    past_hours,
    token,
    written,
)
from tests.support.servers.coordinators import running
from windrow_core.version import __version__
from windrow_service.api.dashboard.table import TABS
from windrow_service.settings import Settings

pytestmark = pytest.mark.browser
expect.set_options(timeout=5_000)

DESK, TALLEST = {"width": 1440, "height": 900}, 2_500
EAGER = {"min_age_seconds": 0, "min_gain": 0.0, "reads_per_day": 100.0}
# Each question of an operator, what is clicked on from the overview, and where the answer is: a
# region, or the whole page. `T` is the row of sales.events, which is the first one.
QUESTIONS: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    ("Which table comes first?", (), "What to do first", "sales.events"),
    ("How many of its files are too many?", (), "What to do first", "723 of 747"),
    ("What do readers lose a day?", (), "", r"Readers lose a day\s*[0-9.]+ ms"),
    ("How many files are there?", (), "", r"Files\s*8\d\d"),
    ("What would compacting everything save?", (), "", r"Files, now → then\s*\d+ → \d+"),
    ("Which refresh failed, and why?", (), "Failed refreshes", "sales.clicks.*does not exist"),
    ("Which write was abandoned, on which host?", (), "Abandoned writes", "driver-2"),
    ("What does maintenance do next?", (), "Next work", "would become"),
    ("Which replicas live, on which version?", (), "Replicas", re.escape(__version__)),
    ("Does planning get slower?", (), "Figures by the hour", r"\d+ ms"),
    ("Is a refresh running, how far is it?", ("Work",), "Refreshes", "31,000 of 86,400 footers"),
    ("Which tables were never refreshed?", ("Tables",), "Tables", "sales.new.*Not refreshed yet"),
    ("Which table is largest?", ("Tables", "Size"), "Tables", "Table.*sales.orders"),
    ("How are tables of a name found?", ("Tables",), "", "Name contains"),
    ("What did maintenance do last night?", ("Maintenance",), "Done", "became 3"),
    ("What did it cost?", ("Maintenance",), "", r"Cost, one core\s*31.5 s"),
    ("Which table is left alone, and why?", ("Maintenance",), "Left alone", "policy is off"),
    ("Which workers do maintenance?", ("Maintenance",), "Workers", "spark-1:4711"),
    ("Which query took long?", ("Plans",), "Plans", r"9 s"),
    ("Is the cache of host-3 worth its disk?", ("Cache",), "Workers", "host-3.*no:"),
    ("Who has which token?", ("Access",), "Tokens", "operator"),
    ("Who changed what last?", ("Access",), "Changes", "policy created"),
    ("How can this table be read, what helps?", ("T",), "", "Opening 7\\d\\d excess files"),
    ("Which partitions got late data today?", ("T",), "", "3 files came late today"),
    (
        "Which ones are these?",
        ("T", "Partitions"),
        "Late data",
        r"ds=2026-11-02\s+20\d\d-",
    ),
    ("Which partition is worst?", ("T", "Partitions"), "Excess files by partition", "8.3 %"),
    ("How large are its files?", ("T", "Files"), "Sizes of files", "256 KB to 512 KB"),
    ("Which write made them?", ("T", "Writes"), "", "60 tasks x 12 partitions made 720 files"),
    ("Who reads it, how long does that take?", ("T", "Reads"), "Latest plans", "operator"),
    ("What does its maintenance cost a week?", ("T",), "", r"Maintenance in 7 days\s*12.5 s"),
    ("Who may write to it?", ("T", "Access"), "Tokens", "operator.*do everything"),
    ("Who changed it, from what to what?", ("T", "History"), "Latest changes", "24 → 744"),
)


class Site:
    """A coordinator whose tables were read, maintained, and written to late."""

    def __init__(self, url: str, settings: Settings) -> None:
        self.url = url
        self.admin = token(settings, "operator", "admin")
        operated = Operated(url, self.admin)
        self.http = http = operated.http
        fill(operated)
        late = written(["ds=2026-11-02"], 3, 1_000, day=77)
        now_ns = int(datetime.now(timezone.utc).timestamp()) * 10**9
        operated.publish("sales.events", [one | {"mtime_ns": now_ns} for one in late])
        http.put("/policies/sales.*", json=EAGER).raise_for_status()
        http.put("/policies/sales.orders", json={"enabled": False}).raise_for_status()
        for pattern, seconds in (("sales.clicks", 31.5 - 12.5), ("sales.events", 12.5)):
            http.post("/maintenance/rounds").raise_for_status()
            body = {"worker": "spark-1:4711", "pattern": pattern}
            item = http.post("/maintenance/claims", json=body).raise_for_status().json()
            outcome = {"files_before": 72, "files_after": 3, "core_seconds": seconds}
            outcome |= {"bytes_before": 7 * 2**20, "bytes_after": 6 * 2**20}
            done = {"state": "done", "text": "72 files became 3", "outcome": outcome}
            http.put(f"/maintenance/claims/{item['claim_id']}", json=done).raise_for_status()
        http.post("/maintenance/rounds").raise_for_status()
        body = {"table": "sales.events", "columns": ["id"], "options": {"parallelism": 16}}
        plan = http.post("/plans", json=body).raise_for_status().json()["plan_id"]
        scan = {
            "plan_id": plan,
            "seconds": 9,
            "planning_seconds": 0.1,
            "groups": {"files": 744, "seconds": 100},
        }
        http.post("/scan-reports", json={"scans": [scan]}).raise_for_status()
        begin_refresh(settings.state_dir, "sales.new")
        abandon_writes(settings.state_dir)
        past_hours(settings.state_dir, 400)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    state_dir: Path = tmp_path_factory.mktemp("console")
    settings = Settings(state_dir=state_dir, allowed_locations=(LAKE,), require_tokens=True)
    with running(settings) as url:
        site = Site(url, settings)
        yield site
        site.http.close()


def link_of(page: Page, name: str) -> Locator:
    """Return a link of a page; `T` is the first table of what to do first."""
    if name == "T":
        first = page.get_by_role("region", name="What to do first", exact=True)
        return first.get_by_role("link", name="sales.events", exact=True)
    # Labels of figures may have the same names as pages; tabs come after the menu.
    links = page.locator("nav a, a.sort").get_by_text(name, exact=True)
    return links.last


def test_thirty_questions_are_answered_within_two_clicks(browser: Browser, site: Site) -> None:
    unanswered = []
    with opened(browser, site.url) as page:
        sign_in(page, site.url, site.admin, "overview")
        for question, clicks, where, answer in QUESTIONS:
            page.goto(f"{site.url}/dashboard/overview")
            for name in clicks:
                link_of(page, name).click()
            page.wait_for_load_state()
            there = (
                page.get_by_role("region", name=where, exact=True)
                if where
                else page.locator("main")
            )
            text = there.first.inner_text() if there.count() else ""
            if len(clicks) > 2 or not re.search(answer, text, re.DOTALL):
                unanswered.append((question, text[:300]))

    assert len(QUESTIONS) >= 30
    assert unanswered == []


def test_the_first_screen_of_a_table_has_its_health_one_thing_to_do_and_a_picture(
    browser: Browser, site: Site
) -> None:
    with opened(browser, site.url, viewport=DESK) as page:
        sign_in(page, site.url, site.admin, "tables/sales.events")
        page.wait_for_load_state()
        parts = (page.locator(".verdict"), page.locator(".todo"), page.locator("svg.chart").first)
        for part in parts:
            box = part.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= DESK["height"]


def too_tall(browser: Browser, site: Site) -> dict[str, int]:
    """Return the heights of those pages that are too tall."""
    names = ("overview", "tables", "work", "maintenance", "plans", "cache", "access", "policies")
    names += ("receipts", "receipts?of=waiting", "receipts?of=left_alone")
    tabs = [f"tables/sales.events/{tab}".rstrip("/") for tab in TABS]
    heights = {}
    with opened(browser, site.url, viewport=DESK) as page:
        sign_in(page, site.url, site.admin)
        for name in (*names, *tabs):
            page.goto(f"{site.url}/dashboard/{name}")
            page.wait_for_load_state()
            heights[name] = page.evaluate("document.documentElement.scrollHeight")
    return {name: height for name, height in heights.items() if height > TALLEST}


def test_no_page_is_taller_than_some_screens(browser: Browser, site: Site) -> None:
    assert too_tall(browser, site) == {}


def test_no_page_is_taller_however_much_there_is(browser: Browser, tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path, allowed_locations=(LAKE,), require_tokens=True)
    with running(settings) as url:
        site = Site(url, settings)
        for at in range(60):
            token(settings, f"caller-{at}", "read:sales.*")
            policy = {"enabled": False}
            site.http.put(f"/policies/sales.t{at}", json=policy).raise_for_status()
        multiply(tmp_path, 300)
        multiply_plans(tmp_path, 300)
        multiply_receipts(tmp_path, 60)
        assert too_tall(browser, site) == {}
        site.http.close()


def test_a_label_explains_itself_to_the_pointer_and_to_the_keyboard(
    browser: Browser, site: Site
) -> None:
    with opened(browser, site.url) as page:
        sign_in(page, site.url, site.admin, "tables/sales.events")
        # The script runs once the whole page is there.
        page.wait_for_load_state()
        label, tip = page.get_by_role("link", name="Excess files"), page.get_by_role("tooltip")
        expect(tip).to_be_hidden()
        label.hover()
        expect(tip).to_contain_text("Files beyond those that a table needs")
        page.keyboard.press("Escape")
        expect(tip).to_be_hidden()
        label.focus()
        expect(label).to_have_attribute("aria-describedby", "tip")
        expect(tip).to_be_visible()


def test_old_links_lead_to_where_things_are_now(browser: Browser, site: Site) -> None:
    with opened(browser, site.url) as page:
        sign_in(page, site.url, site.admin)
        page.goto(f"{site.url}/dashboard/maintenance/sales.events#now")
        assert page.url.endswith("/dashboard/tables/sales.events/maintenance#now")
        expect(page.locator("#now")).to_be_visible()
        for anchor in ("refresh", "cache", "packs"):
            page.goto(f"{site.url}/dashboard/tables/sales.events#{anchor}")
            expect(page.locator(f"#{anchor}")).to_be_visible()
