"""Pages that act, in a real browser: six questions about maintenance, and what buttons do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.support.api.accessibility import LOOKS
from tests.support.api.browsing import PHONE, Clicks, asking, fits, opened, sign_in
from tests.support.api.dashboards import (
    LAKE,
    Operated,
    abandon_writes,
    begin_refresh,
    fill,
    past_hours,
    picture,
    token,
)
from tests.support.laws import in_turn
from tests.support.servers.coordinators import running
from windrow_service.settings import Settings

pytestmark = pytest.mark.browser
expect.set_options(timeout=5_000)

# Pages look again every three seconds.
LIVE_MS = 20_000
EAGER = {"min_age_seconds": 0, "min_gain": 0.0, "reads_per_day": 100.0}


class Site:
    """A coordinator whose tables were maintained last night."""

    def __init__(self, url: str, settings: Settings) -> None:
        self.url = url
        self.state_dir = settings.state_dir
        self.admin = token(settings, "operator", "admin")
        self.reader = token(settings, "analyst", "read:sales.*")
        self.operated = Operated(url, self.admin)
        self.http = self.operated.http
        fill(self.operated)
        self.http.put("/policies/sales.*", json=EAGER).raise_for_status()
        self.http.put("/policies/sales.orders", json={"enabled": False}).raise_for_status()
        self.decide()
        item = self.claim("sales.*")
        assert item["table"] == "sales.clicks"
        outcome = {"partitions": 3, "files_before": 72, "files_after": 3, "core_seconds": 31.5}
        outcome |= {"bytes_before": 7 * 2**20, "bytes_after": 6 * 2**20}
        self.report(item, state="done", text="72 files (7 MB) became 3 (6 MB)", outcome=outcome)
        self.decide()
        abandon_writes(self.state_dir)
        past_hours(self.state_dir, 400)

    def decide(self) -> None:
        self.http.post("/maintenance/rounds").raise_for_status()

    def claim(self, pattern: str) -> dict[str, Any]:
        body = {"worker": "spark-1:4711", "pattern": pattern}
        item = self.http.post("/maintenance/claims", json=body).raise_for_status().json()
        return dict(item)

    def report(self, item: dict[str, Any], **body: Any) -> None:
        path = f"/maintenance/claims/{item['claim_id']}"
        self.http.put(path, json=body).raise_for_status()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    state_dir = tmp_path_factory.mktemp("acting")
    settings = Settings(state_dir=state_dir, allowed_locations=(LAKE,), require_tokens=True)
    with running(settings) as url:
        site = Site(url, settings)
        yield site
        site.http.close()


def test_six_questions_about_maintenance_take_three_clicks_at_most(
    browser: Browser, site: Site
) -> None:
    # What did it do last night, what did that save, and what does it cost?
    with asking(browser, site.url, site.admin, "overview") as (page, click):
        click(page.get_by_role("link", name="Maintenance", exact=True))
        figures = page.locator("dl.figures")
        expect(figures).to_contain_text(re.compile(r"merged\s*(72 → 3|792 → 15)"))
        expect(figures).to_contain_text("One read of each saves")
        expect(figures).to_contain_text(re.compile(r"Cost, one core\s*31.5 s"))
        expect(page.locator("#live")).to_contain_text("the last 24 hours used")
        done = page.get_by_role("region", name="Done").get_by_role("row")
        done = done.filter(has_text="72 files (7 MB) became 3 (6 MB)")
        expect(done).to_contain_text("about 6.74 ms")
        expect(done).to_contain_text(re.compile(r"1\.\d+ s\s*31\.5 s"))
        picture(page, "maintenance")
    # Why was this table left alone?
    with asking(browser, site.url, site.reader, "overview") as (page, click):
        click(page.get_by_role("link", name="Maintenance", exact=True))
        page.get_by_label("Table").fill("sales.orders")
        click(page.get_by_role("button", name="Show maintenance"))
        why = page.get_by_role("region", name="Left alone")
        expect(why).to_contain_text("its policy is off")
        expect(page.get_by_role("button", name="Compact now")).to_have_count(0)
        expect(page.locator("main")).to_contain_text("write:sales.orders")
    # What will it do next?
    with asking(browser, site.url, site.reader, "overview") as (page, click):
        click(page.get_by_role("link", name="Maintenance", exact=True))
        coming = page.get_by_role("region", name="Next").get_by_role("row")
        expect(coming.nth(1)).to_contain_text("sales.")
        expect(coming.nth(1)).to_contain_text("would become")
    # How do I stop it?
    with asking(browser, site.url, site.admin, "overview") as (page, click):
        click(page.get_by_role("link", name="Maintenance", exact=True))
        click(page.get_by_role("button", name="Pause everything"))
        expect(page.get_by_role("status")).to_contain_text("All maintenance is paused")
        click(page.get_by_role("button", name="Resume maintenance"))
        expect(page.get_by_role("button", name="Pause everything")).to_be_visible()


def test_an_operator_starts_a_compaction_and_watches_it_end(browser: Browser, site: Site) -> None:
    click = Clicks()
    with opened(browser, site.url) as page:
        sign_in(page, site.url, site.admin, "overview")
        first = page.get_by_role("region", name="What to do first").get_by_role("row").nth(1)
        expect(first).to_contain_text("sales.events")
        click(first.get_by_role("link", name="compact sales.events"))
        expect(page.locator("main")).to_contain_text("720 small files")
        command = f"windrow compact sales.events --url {site.url}"
        expect(page.locator("code.secret")).to_have_text(command)
        picture(page, "table-maintenance")
        click(page.get_by_role("button", name="Compact now"))
        expect(page.get_by_role("status")).to_contain_text("1 piece of work waits now")
        expect(page.get_by_role("region", name="Next")).to_contain_text("operator asked for it")

        # Nobody clicks from here on.
        item = site.claim("*")
        assert item["table"] == "sales.events"
        at_work = page.get_by_role("region", name="Running")
        expect(at_work).to_contain_text("spark-1:4711", timeout=LIVE_MS)
        outcome = {"files_before": 720, "files_after": 12}
        site.report(item, state="done", text="720 files became 12", outcome=outcome)
        done = page.get_by_role("region", name="Done")
        expect(done).to_contain_text("720 files became 12", timeout=LIVE_MS)
        expect(page.locator("time").first).to_have_attribute("title", re.compile(r" UTC, here \d"))
    assert click.count <= 3


def test_the_overview_says_what_to_do_first_and_what_went_wrong(
    browser: Browser, site: Site
) -> None:
    with opened(browser, site.url) as page:
        sign_in(page, site.url, site.admin, "overview")
        expect(page.get_by_role("region", name="Failed refreshes")).to_contain_text(
            "does not exist"
        )
        expect(page.get_by_role("region", name="Abandoned writes")).to_contain_text("driver-2")
        expect(page.get_by_role("img", name="Excess files")).to_be_visible()
        expect(page.get_by_role("img", name="Time of planning")).to_be_visible()
        expect(page.locator("dl.figures").first).to_contain_text("Database on disk")
        picture(page, "overview")
        page.get_by_role("button", name="Refresh sales.clicks again").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Work")
        expect(page.get_by_role("region", name="Refreshes")).to_contain_text("sales.clicks")
    with opened(browser, site.url) as page:
        sign_in(page, site.url, site.reader, "overview")
        expect(page.get_by_role("region", name="What to do first")).not_to_contain_text("hr.")
        expect(page.get_by_role("button", name="Refresh sales.clicks again")).to_have_count(0)
        expect(page.locator("main")).not_to_contain_text("Database on disk")


def test_a_running_refresh_is_followed_without_a_click(browser: Browser, site: Site) -> None:
    with opened(browser, site.url) as page:
        begin_refresh(site.state_dir, "sales.new", footers=31_000)
        sign_in(page, site.url, site.reader, "work")
        row = page.get_by_role("region", name="Refreshes").get_by_role("row").nth(1)
        expect(row).to_contain_text("31,000 of 86,400 footers")

        begin_refresh(site.state_dir, "sales.new", footers=62_000)

        expect(row).to_contain_text("62,000 of 86,400 footers", timeout=LIVE_MS)


def test_a_policy_is_changed_in_its_form_which_says_what_is_wrong_beside_the_field(
    browser: Browser, site: Site
) -> None:
    with opened(browser, site.url) as page:
        sign_in(page, site.url, site.admin, "maintenance")
        page.get_by_role("link", name="Add a policy").click()
        page.get_by_label("Tables").fill("hr.*")
        page.get_by_label("Target", exact=True).fill("huge")
        page.get_by_role("button", name="Add policy").click()
        expect(page.get_by_role("alert")).to_contain_text("or text such as '64MB'")
        expect(page.get_by_label("Tables")).to_have_value("hr.*")
        page.get_by_label("Target", exact=True).fill("256MB")
        page.get_by_label("Window", exact=True).fill("22:00-06:00")
        picture(page, "policy")
        page.get_by_role("button", name="Add policy").click()

        policies = page.get_by_role("region", name="Policies").get_by_role("row")
        added = policies.filter(has_text="hr.*")
        expect(added).to_contain_text("target 256 MB, window 22:00-06:00 UTC")
        added.get_by_role("link").click()
        page.get_by_role("button", name="Remove policy").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Remove the policy of hr.*?")
        page.get_by_role("button", name="Remove the policy of hr.*").click()
        expect(policies.filter(has_text="hr.*")).to_have_count(0)


def test_pages_that_act_are_accessible_and_fit_a_phone(browser: Browser, site: Site) -> None:
    with opened(browser, site.url) as page:
        sign_in(page, site.url, site.admin)
        problems = {}
        names = ("overview", "maintenance", "tables/sales.orders/maintenance", "policies/sales.*")
        for turn, name in enumerate(names):
            for look in in_turn(LOOKS, turn, 1):
                url = f"{site.url}/dashboard/{name}"
                problems[f"{name}, {look.name}"] = look.problems(page, url)
            page.set_viewport_size(PHONE)
            assert fits(page), name

    assert {name: what for name, what in problems.items() if what} == {}
