"""`/dashboard` in a real browser: what operators find in every state, without other hosts.

If WINDROW_PICTURES names a folder, the pictures for docs/how-to/dashboard.md are also drawn there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect
from pydantic import SecretStr

from tests.support.api.accessibility import LOOKS, violations
from tests.support.api.browsing import PHONE, asking, fits, opened, sign_in, tab_of
from tests.support.api.dashboards import (
    LAKE,
    Operated,
    begin_refresh,
    fill,
    forget_sizes,
    let_time_pass,
    multiply,
    picture,
    token,
    written,
)
from tests.support.faults.proxies import proxy
from tests.support.laws import in_turn, is_nightly
from tests.support.servers.coordinators import PLAIN, running
from tests.support.servers.databases import address_of, on_database, through
from tests.support.tables.many_files import publish_days
from windrow_service.api.dashboard.table import TABS
from windrow_service.settings import Settings
from windrow_service.store.database import embedded_url

pytestmark = pytest.mark.browser
expect.set_options(timeout=5_000)


class Site:
    """A coordinator that needs tokens, filled once for all tests of this file."""

    def __init__(self, url: str, settings: Settings) -> None:
        self.url = url
        self.state_dir = settings.state_dir
        self.admin = token(settings, "operator", "admin")
        self.reader = token(settings, "analyst", "read:sales.*")
        self.worker = token(settings, "host-3", "worker:host-3")
        self.operated = Operated(url, self.admin)
        fill(self.operated)
        begin_refresh(settings.state_dir, "sales.orders")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    state_dir = tmp_path_factory.mktemp("dashboard")
    settings = Settings(state_dir=state_dir, allowed_locations=(LAKE,), require_tokens=True)
    with running(settings) as url:
        site = Site(url, settings)
        yield site
        site.operated.http.close()


def test_an_operator_finds_the_worst_table_its_cause_and_the_remedy(
    browser: Browser, site: Site
) -> None:
    with asking(browser, site.url, site.admin) as (page, click):
        rows = page.get_by_role("table").get_by_role("row")
        expect(rows).to_have_count(6)
        expect(rows.nth(1)).to_contain_text("sales.events")
        expect(page.get_by_role("row").filter(has_text="sales.new")).to_contain_text(
            "Not refreshed yet"
        )
        picture(page, "tables")

        click(rows.nth(1).get_by_role("link"))

        expect(page.get_by_role("heading", level=1)).to_have_text("sales.events")
        expect(page.get_by_role("region", name="Compact this table")).to_contain_text("720 excess")
        expect(page.get_by_role("img", name="Files by size")).to_be_visible()
        expect(page.get_by_role("img", name="Files by partition and the day")).to_be_visible()
        picture(page, "table")
        tab_of(page, "Files").click()
        expect(page.get_by_role("img", name="Files over time")).to_be_visible()
        sizes = page.get_by_role("table").first
        expect(sizes.get_by_role("row").filter(has_text="256 KB to 512 KB")).to_contain_text("588")
        tab_of(page, "Partitions").click()
        folders = page.get_by_role("region", name="Excess files by partition").get_by_role("row")
        expect(folders).to_have_count(13)
        picture(page, "table-partitions")
        tab_of(page, "Writes").click()
        expect(page.locator("main")).to_contain_text("60 tasks x 12 partitions made 720 files")


def test_an_operator_sees_what_failed_and_why(browser: Browser, site: Site) -> None:
    with asking(browser, site.url, site.reader) as (page, click):
        click(page.get_by_role("link", name="Health", exact=True))
        rows = page.get_by_role("table").get_by_role("row")
        expect(rows.nth(1)).to_contain_text("Last refresh failed")

        click(rows.nth(1).get_by_role("link"))

        expect(page.get_by_role("heading", level=1)).to_have_text("sales.clicks")
        expect(page.locator(".verdict")).to_contain_text("Last refresh failed")
        expect(page.get_by_role("alert")).to_contain_text("/lake/sales.clicks")
        expect(page.get_by_role("alert")).to_contain_text("does not exist")


def test_an_operator_sees_how_well_a_table_can_be_read_and_what_happened_to_it(
    browser: Browser, site: Site
) -> None:
    with asking(browser, site.url, site.admin) as (page, click):
        click(page.get_by_role("link", name="sales.events"))

        expect(page.locator(".verdict")).to_contain_text("Costs each full read 70.3 ms")
        expect(page.locator(".todo")).to_contain_text("Opening 720 excess files takes")
        expect(page.locator("main")).to_contain_text("ds date")
        expect(page.get_by_role("region", name="Columns")).to_contain_text("amount")
        click(tab_of(page, "History"))
        changes = page.get_by_role("region", name="Latest changes").get_by_role("row")
        expect(changes.nth(1)).to_contain_text("operator")
        expect(changes.nth(2)).to_contain_text("snapshot created")
    with opened(browser, site.url) as page:
        sign_in(page, site.url, site.reader, "tables/sales.orders")
        expect(page.locator(".verdict")).to_contain_text("Nothing worth doing")
        expect(page.locator(".todo")).to_contain_text("no more files than its folders need")
        tab_of(page, "Writes").click()
        expect(page.get_by_role("region", name="Latest writes")).to_contain_text("staging")
        tab_of(page, "History").click()
        # Only `admin` may see who changed what.
        expect(page.get_by_role("region", name="Latest changes")).to_have_count(0)


def test_pages_fit_a_phone_in_the_dark_and_can_be_used_by_keyboard(
    browser: Browser, site: Site
) -> None:
    with opened(browser, site.url, viewport=PHONE, color_scheme="dark") as page:
        page.goto(f"{site.url}/dashboard/tables/sales.events")
        expect(page.get_by_label("Token")).to_be_focused()
        page.keyboard.type(site.reader)
        page.keyboard.press("Enter")

        expect(page.get_by_role("heading", level=1)).to_have_text("sales.events")
        assert fits(page)
        picture(page, "table-phone")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        for name in ("overview", "tables", "work", "maintenance", "plans", "cache"):
            page.goto(f"{site.url}/dashboard/{name}")
            expect(page.get_by_role("heading", level=1)).to_have_text(name.capitalize())
            assert fits(page), name


def test_every_page_is_accessible(browser: Browser, site: Site) -> None:
    asked = {"table": "sales.events", "filter": "ds < '2026-11-10'"}
    plan_id = site.operated.http.post("/plans", json=asked).raise_for_status().json()["plan_id"]
    http = site.operated.http
    http.put("/policies/sales.events", json={"reads_per_day": 100.0}).raise_for_status()
    http.post("/maintenance/rounds").raise_for_status()
    with opened(browser, site.url) as page:
        found = {}
        names = (
            "sign-in",
            "overview",
            "tables",
            "tables?find=nothing",
            "tables/sales.events",
            *(f"tables/sales.events/{tab}" for tab in TABS if tab),
            "tables/sales.new",
            "tables/no.such",
            "work",
            "maintenance",
            "receipts",
            "plans",
            f"plans/{plan_id}",
            "cache",
            "access",
            "you",
        )
        for turn, name in enumerate(names):
            if name == "overview":
                sign_in(page, site.url, site.admin)
            for look in in_turn(LOOKS, turn, 1):
                found[f"{name}, {look.name}"] = look.problems(page, f"{site.url}/dashboard/{name}")

    assert {name: what for name, what in found.items() if what} == {}


def test_a_page_shows_only_what_its_caller_may_see(browser: Browser, site: Site) -> None:
    with opened(browser, site.url) as page:
        sign_in(page, site.url, site.reader)
        expect(page.get_by_role("row")).to_have_count(5)
        expect(page.locator("body")).not_to_contain_text("hr.salaries")

        answer = page.goto(f"{site.url}/dashboard/tables/hr.salaries")

        assert answer is not None
        assert answer.status == 404
        expect(page.get_by_role("heading", level=1)).to_have_text("Table not found")


def test_a_caller_without_the_scope_is_told_so(browser: Browser, site: Site) -> None:
    with opened(browser, site.url) as page:
        page.goto(f"{site.url}/dashboard/tables")
        page.get_by_label("Token").fill(site.worker)
        page.get_by_role("button", name="Sign in").click()

        expect(page.get_by_role("alert")).to_contain_text("does not have the scope 'read'")


def test_signing_in_needs_a_valid_token_and_signing_out_forgets_it(
    browser: Browser, site: Site
) -> None:
    with opened(browser, site.url) as page:
        page.goto(f"{site.url}/dashboard")
        page.get_by_label("Token").fill("wdr_wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("not valid")

        sign_in(page, site.url, site.admin)
        (cookie,) = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        page.get_by_role("button", name="Sign out").click()

        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
        page.goto(f"{site.url}/dashboard/tables")
        expect(page.get_by_label("Token")).to_be_visible()


def test_an_operator_sees_whether_a_refresh_is_stuck_and_cancels_it(
    browser: Browser, site: Site
) -> None:
    with asking(browser, site.url, site.reader) as (page, click):
        click(page.get_by_role("link", name="Work"))
        refreshes = page.get_by_role("region", name="Refreshes").get_by_role("row")
        expect(refreshes.nth(1)).to_contain_text("31,000 of 86,400 footers")
        expect(refreshes.nth(2)).to_contain_text("failed")
        expect(page.locator("main")).to_contain_text(
            "a coordinator has renewed its lease in the last 5 s"
        )
        click(page.get_by_role("link", name="Look again"))
        expect(refreshes.nth(1)).to_contain_text("running")
        expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    with opened(browser, site.url) as page:
        sign_in(page, site.url, site.admin, "work")
        writes = page.get_by_role("region", name="Commits and compactions")
        expect(writes.get_by_role("row").filter(has_text="compaction")).to_contain_text(
            "committing"
        )
        picture(page, "work")

        page.get_by_role("button", name="Cancel the refresh of sales.orders").click()

        expect(page.get_by_role("heading", level=1)).to_have_text("Work")
        page.get_by_role("link", name="Access").click()
        expect(
            page.get_by_role("row").filter(has_text="refresh cancelled").filter(has_text="operator")
        ).to_contain_text("sales.orders")


def test_an_operator_sees_who_deleted_a_table(browser: Browser, site: Site) -> None:
    with asking(browser, site.url, site.admin) as (page, click):
        click(page.get_by_role("link", name="Access"))
        page.get_by_label("Table").fill("sales.old")
        click(page.get_by_role("button", name="Search"))

        changes = page.get_by_role("region", name="Changes").get_by_role("row")
        expect(changes).to_have_count(3)
        expect(changes.nth(1)).to_contain_text("table deleted")
        expect(changes.nth(1)).to_contain_text("operator")
        tokens = page.get_by_role("region", name="Tokens")
        expect(tokens.get_by_role("row").filter(has_text="analyst")).to_contain_text("read:sales.*")
        picture(page, "access")


def test_an_operator_sees_whether_the_cache_of_a_host_is_used(browser: Browser, site: Site) -> None:
    with asking(browser, site.url, site.reader) as (page, click):
        click(page.get_by_role("link", name="Cache"))
        hosts = page.get_by_role("region", name="Workers").get_by_role("row")
        expect(hosts.filter(has_text="host-1")).to_contain_text("96 %")
        expect(hosts.filter(has_text="host-1")).to_contain_text("yes: 9,310 of 9,712 reads")
        expect(hosts.filter(has_text="host-3")).to_contain_text("no: tasks here read only files")
        picture(page, "cache")

        click(page.get_by_role("region", name="Rules").get_by_role("link", name="sales.events"))

        held = page.get_by_role("region", name="Rules").get_by_role("row")
        expect(held.filter(has_text="latest")).to_contain_text("248")


def test_an_operator_sees_why_a_read_was_slow(browser: Browser, site: Site) -> None:
    asked = {"table": "sales.events", "filter": "ds < '2026-11-10'"}
    plan_id = site.operated.http.post("/plans", json=asked).raise_for_status().json()["plan_id"]
    with opened(browser, site.url) as page:
        sign_in(page, site.url, site.admin, "plans")
        plans = page.get_by_role("region", name="Plans").locator("tbody")
        plans.get_by_role("link").first.click()

        expect(page.locator("main")).to_contain_text(plan_id)
        left_out = page.get_by_role("region", name="Pruning").get_by_role("row")
        expect(left_out.filter(has_text="partition values")).to_contain_text("240")
        expect(left_out.filter(has_text="planned")).to_contain_text("496")
        expect(page.get_by_role("img", name="Groups by how full they are")).to_be_visible()
        strategies = page.get_by_role("region", name="Comparison of strategies").get_by_role("row")
        expect(strategies.nth(1)).to_contain_text("balanced")
        expect(strategies).to_have_count(6)
        picture(page, "plan")


def test_an_operator_sees_why_last_nights_read_was_slow(browser: Browser, site: Site) -> None:
    http = site.operated.http
    options = {"parallelism": 16, "cached_splits": "separate"}
    body = {"table": "sales.events", "columns": ["id"], "options": options}
    last_night = http.post("/plans", json=body).raise_for_status().json()["plan_id"]
    http.post("/plans", json={"table": "sales.orders"}).raise_for_status()
    scan = {"plan_id": last_night, "seconds": 9, "planning_seconds": 0.1}
    scan |= {"groups": {"files": 744, "seconds": 100}}
    http.post("/scan-reports", json={"scans": [scan]}).raise_for_status()
    at = let_time_pass(site.state_dir, last_night, hours=10)
    hour = timedelta(hours=1)
    with asking(browser, site.url, site.admin) as (page, click):
        click(page.get_by_role("link", name="Plans"))
        picture(page, "plans")
        page.get_by_label("Table").fill("sales.events")
        page.get_by_label("From").fill(f"{at - hour:%Y-%m-%dT%H:%M}")
        page.get_by_label("until").fill(f"{at + hour:%Y-%m-%dT%H:%M}")
        click(page.get_by_role("button", name="Search"))
        plans = page.get_by_role("region", name="Plans").get_by_role("row")
        expect(plans).to_have_count(2)
        expect(plans.nth(1)).to_contain_text("expired")

        click(plans.nth(1).get_by_role("link").first)

        expect(page.locator("main")).to_contain_text("This plan has expired")
        expect(page.get_by_role("heading", level=2).first).to_contain_text(
            "Why the read took 9.1 s"
        )
        causes = page.locator(".causes li")
        expect(causes).to_have_count(4)
        expect(causes.first).to_contain_text("no condition that a plan can use")
        expect(causes.last).to_contain_text("groups hold one file each")
        real = page.get_by_role("region", name="Predicted and real").get_by_role("row")
        expect(real.filter(has_text="In groups: 744 files")).to_contain_text("100 s")
        expect(page.locator("main")).to_contain_text("no filter: every file is read")
        expect(page.locator("main")).to_contain_text("parallelism=16 by the request")
        phases = page.get_by_role("region", name="Time of planning").get_by_role("row")
        expect(phases.filter(has_text="Packing splits into groups")).to_have_count(1)
        reading = page.get_by_role("region", name="Time of reading")
        expect(reading).to_contain_text("The last of 16 slots ends after")
        left_out = page.get_by_role("region", name="Pruning").get_by_role("row")
        expect(left_out.filter(has_text="planned")).to_contain_text("744")
        expect(page.get_by_role("region", name="Comparison of strategies")).to_have_count(0)
        assert fits(page)
        assert violations(page) == []
        picture(page, "plan-expired")


def test_ten_thousand_tables_are_listed_in_parts(browser: Browser, tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path, allowed_locations=(LAKE,))
    with running(settings) as url, opened(browser, url) as page:
        page.goto(f"{url}/dashboard/tables")
        expect(page.locator("main")).to_contain_text("You cannot read any table yet")
        operated = Operated(url)
        for name, files in (("some.a", 640), ("some.b", 20)):
            operated.register(name)
            operated.publish(name, written(["ds=2026-11-02"], files, 1_000, day=1))
        operated.http.close()
        multiply(settings.state_dir, 10_000)

        page.goto(f"{url}/dashboard/tables")
        expect(page.locator("main")).to_contain_text("10,000 tables")
        rows = page.get_by_role("row")
        expect(rows).to_have_count(51)
        expect(rows.nth(1)).to_contain_text("many.t00004")
        expect(rows.nth(50)).to_contain_text("many.t00102")
        page.get_by_role("link", name="Next").click()
        expect(rows.nth(1)).to_contain_text("many.t00104")
        page.get_by_role("link", name="Page 200", exact=True).click()
        expect(rows.nth(50)).to_contain_text("some.b")
        page.get_by_role("link", name="Table", exact=True).click()
        expect(rows.nth(1)).to_contain_text("some.b")
        expect(page.get_by_role("columnheader", name="Table")).to_have_attribute(
            "aria-sort", "descending"
        )
        page.get_by_label("Namespace").select_option("some")
        page.get_by_role("button", name="Search").click()
        expect(rows).to_have_count(3)
        page.get_by_label("Namespace").select_option("all")
        page.get_by_label("Health", exact=True).select_option("good")
        page.get_by_role("button", name="Search").click()
        expect(page.locator("main")).to_contain_text("5,000 tables")
        page.get_by_placeholder("Find a table").fill("T00011")
        page.get_by_role("button", name="Find").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("many.t00011")
        page.get_by_role("link", name="Tables", exact=True).first.click()
        page.get_by_label("Name contains").fill("T0001")
        page.get_by_role("button", name="Search").click()
        expect(rows).to_have_count(11)
        page.get_by_role("link", name="many.t00011").click()
        tab_of(page, "Partitions").click()
        expect(page.get_by_role("region", name="Excess files by partition")).to_contain_text("19")
        forget_sizes(settings.state_dir, "many.t00011")
        tab_of(page, "Files").click()
        expect(page.locator("main")).to_contain_text("did not count sizes")


def test_a_table_of_millions_of_files_is_not_looked_at_file_by_file(
    browser: Browser, tmp_path: Path
) -> None:
    # Pages look at each file of a table with up to a million.
    days, files_per_day = 200, 50_000 if is_nightly() else 6_000
    count = f"{days * files_per_day:,}"
    settings = Settings(state_dir=tmp_path, allowed_locations=(LAKE,))
    with running(settings) as url, opened(browser, url) as page:
        operated = Operated(url)
        operated.register("big.one")
        on_database(
            embedded_url(tmp_path),
            lambda database: publish_days(database, "big.one", days, files_per_day),
        )
        asked = {"table": "big.one", "filter": "ds < '2000-01-01'"}
        plan_id = operated.http.post("/plans", json=asked).raise_for_status().json()["plan_id"]
        operated.http.close()

        page.goto(f"{url}/dashboard/tables")
        expect(page.get_by_role("row").nth(1)).to_contain_text(count)
        page.get_by_role("link", name="big.one").click()
        tab_of(page, "Files").click()

        sizes = page.get_by_role("table").first.get_by_role("row")
        expect(sizes.filter(has_text="1 MB to 2 MB")).to_contain_text(count)
        tab_of(page, "Partitions").click()
        expect(page.locator("main")).to_contain_text("too many for a page")
        page.goto(f"{url}/dashboard/plans/{plan_id}")
        left_out = page.get_by_role("region", name="Pruning").get_by_role("row")
        expect(left_out.filter(has_text="ranges of manifests")).to_contain_text(count)
        expect(page.locator("main")).to_contain_text("too many for a page to plan again")


def test_a_page_says_that_the_database_is_away_and_works_once_it_is_back(
    browser: Browser, tmp_path: Path, upgraded_postgresql_url: str
) -> None:
    with proxy(address_of(upgraded_postgresql_url)) as between:
        through_it = SecretStr(through(between.port, upgraded_postgresql_url))
        settings = Settings(state_dir=tmp_path, allowed_locations=(LAKE,), database_url=through_it)
        with running(settings) as url, opened(browser, url) as page:
            operated = Operated(url)
            operated.register("sales.events")
            operated.http.close()
            page.goto(f"{url}/dashboard/tables")
            expect(page.get_by_role("link", name="sales.events")).to_be_visible()

            between.judge = lambda _: "cut before"
            for name in ("tables", "tables/sales.events", "work", "plans", "cache", "access"):
                answer = page.goto(f"{url}/dashboard/{name}")
                assert answer is not None
                assert answer.status == 503, name
                expect(page.get_by_role("alert")).to_contain_text("database")
            picture(page, "broken")

            between.judge = lambda _: "pass"
            page.get_by_role("link", name="All tables").click()
            expect(page.get_by_role("link", name="sales.events")).to_be_visible()


def test_pages_run_only_scripts_of_this_host_and_cannot_be_framed(site: Site) -> None:
    with httpx.Client(verify=PLAIN, base_url=site.url) as http:
        page = http.get("/dashboard/sign-in")

    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert re.findall("<script[^>]*>", page.text) == [
        '<script src="../dashboard/static/dashboard.js" type="module">'
    ]
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["Cache-Control"] == "no-store"
