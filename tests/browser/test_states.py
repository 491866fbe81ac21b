"""Pages in every state: empty, huge, broken, forbidden; each is accessible and cut off nowhere.

If WINDROW_STATES names a folder, pictures of each are taken for somebody to look at: at three widths,
light and dark.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
import sqlalchemy as sa
from playwright.sync_api import Browser, Page, expect
from pydantic import SecretStr

from tests.support.api.accessibility import violations
from tests.support.api.browsing import PHONE, WIDE, fits, opened, sign_in
from tests.support.api.dashboards import (
    LAKE,
    Operated,
    abandon_writes,
    begin_refresh,
    fill,
    multiply,
    past_hours,
    token,
    written,
)
from tests.support.faults.proxies import proxy
from tests.support.laws import in_turn
from tests.support.servers.coordinators import running
from tests.support.servers.databases import address_of, on_database, through
from tests.support.tables.many_files import publish_days
from windrow_service.settings import Settings
from windrow_service.store.database import embedded_url

pytestmark = pytest.mark.browser
expect.set_options(timeout=5_000)

_PICTURES = os.environ.get("WINDROW_STATES")
_DESK = {"width": 1440, "height": 900}
_SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
PAGES = ("overview", "tables", "work", "maintenance", "policies", "plans", "cache", "access")


def look_at(page: Page, state: str, url: str, names: Sequence[str]) -> dict[str, list[str]]:
    """Return what is wrong with pages, by page and window, and take pictures if asked to."""
    wrong = {}
    for name in names:
        page.goto(f"{url}/dashboard/{name}")
        for size, scheme in ((WIDE, "light"), (PHONE, "dark")):
            page.set_viewport_size(size)
            page.emulate_media(color_scheme=scheme)
            cut = [] if fits(page) else ["it is wider than its window"]
            wrong[f"{name}, {size['width']} px, {scheme}"] = violations(page) + cut
        if _PICTURES:
            take_pictures(page, Path(_PICTURES), f"{state}-{name.replace('/', '-')}")
    return {name: what for name, what in wrong.items() if what}


def take_pictures(page: Page, folder: Path, name: str) -> None:
    """Take pictures of a page at three widths, light and dark."""
    for size in (_DESK, WIDE, PHONE):
        page.set_viewport_size(size)
        for scheme in _SCHEMES:
            page.emulate_media(color_scheme=scheme)
            path = folder / f"{name}-{size['width']}-{scheme}.png"
            page.screenshot(path=path, full_page=True)


@contextmanager
def coordinator(folder: Path, *, tokens: bool = False) -> Iterator[tuple[str, Settings]]:
    settings = Settings(state_dir=folder, allowed_locations=(LAKE,), require_tokens=tokens)
    with running(settings) as url:
        yield url, settings


def test_pages_without_any_table(browser: Browser, tmp_path: Path) -> None:
    with coordinator(tmp_path) as (url, _), opened(browser, url) as page:
        assert look_at(page, "empty", url, in_turn(PAGES, 2, 3)) == {}


# tests/browser/test_dashboard.py lists ten thousand tables every day.
@pytest.mark.nightly
def test_pages_of_ten_thousand_tables_and_twenty_thousand_partitions(
    browser: Browser, tmp_path: Path
) -> None:
    with coordinator(tmp_path) as (url, _), opened(browser, url) as page:
        operated = Operated(url)
        for name, files in (("some.a", 40), ("some.b", 20)):
            operated.register(name)
            operated.publish(name, written(["ds=2026-11-02"], files, 1_000, day=1))
        multiply(tmp_path, 9_999)
        operated.register("big.one")
        operated.http.close()
        on_database(
            embedded_url(tmp_path), lambda database: publish_days(database, "big.one", 20_000, 3)
        )
        past_hours(tmp_path, 2_000)
        names = ("overview", "tables", "tables/big.one", "maintenance")
        names += ("tables/big.one/partitions", "tables/big.one/maintenance")

        assert look_at(page, "huge", url, names) == {}
        page.goto(f"{url}/dashboard/tables/big.one/partitions")
        worst = page.get_by_role("region", name="Excess files by partition")
        expect(worst).to_contain_text("The worst 20 of 20,000 partitions")


# tests/browser/test_acting.py shows the overview of what went wrong every day.
@pytest.mark.nightly
def test_pages_of_what_is_broken(browser: Browser, tmp_path: Path) -> None:
    with coordinator(tmp_path) as (url, _), opened(browser, url) as page:
        operated = Operated(url)
        fill(operated)
        beat = {"host": "host-9", "capacity_bytes": 10 * 2**30, "used_bytes": 0, "ttl_seconds": 1}
        operated.http.put("/workers/host-9", json=beat).raise_for_status()
        eager = {"min_age_seconds": 0, "min_gain": 0.0, "reads_per_day": 100.0}
        operated.http.put("/policies/*", json=eager).raise_for_status()
        operated.http.post("/maintenance/rounds").raise_for_status()
        body = {"worker": "spark-1:4711", "pattern": "*"}
        item = operated.http.post("/maintenance/claims", json=body).raise_for_status().json()
        report = {"state": "failed", "text": "`ds=2026-11-02/part-00001.parquet` cannot be read"}
        path = f"/maintenance/claims/{item['claim_id']}"
        operated.http.put(path, json=report).raise_for_status()
        plan = {"table": "sales.events", "filter": "nothing = 1"}
        operated.http.post("/plans", json=plan)
        operated.http.close()
        begin_refresh(tmp_path, "sales.orders")
        abandon_writes(tmp_path)
        time.sleep(1.1)
        names = ("overview", "tables", "tables/sales.clicks", "work", "maintenance", "cache")
        failed = ("tables/sales.clicks/maintenance", "plans", "tables/no.such", "plans/" + "0" * 32)

        assert look_at(page, "broken", url, names + failed) == {}
        page.goto(f"{url}/dashboard/overview")
        for name in ("Failed refreshes", "Abandoned writes", "Workers gone", "Failed maintenance"):
            expect(page.get_by_role("region", name=name)).to_be_visible()
        worst = page.get_by_role("region", name="Failed maintenance").get_by_role("columnheader")
        expect(worst).to_have_text(["Table", "Why", "When"])


def test_pages_while_the_database_is_away(
    browser: Browser, tmp_path: Path, upgraded_postgresql_url: sa.URL
) -> None:
    with proxy(address_of(upgraded_postgresql_url)) as between:
        secret = SecretStr(through(between.port, upgraded_postgresql_url))
        settings = Settings(state_dir=tmp_path, allowed_locations=(LAKE,), database_url=secret)
        with running(settings) as url, opened(browser, url) as page:
            page.goto(f"{url}/dashboard/overview")
            between.judge = lambda _: "cut before"

            assert look_at(page, "away", url, in_turn(PAGES, 1, 3)) == {}
            between.judge = lambda _: "pass"


def test_pages_that_are_forbidden(browser: Browser, tmp_path: Path) -> None:
    with coordinator(tmp_path, tokens=True) as (url, settings):
        admin = token(settings, "operator", "admin")
        operated = Operated(url, admin)
        fill(operated)
        operated.http.close()
        with opened(browser, url) as page:
            assert look_at(page, "no-token", url, ("sign-in", "overview")) == {}
        callers = {
            "read-only": token(settings, "analyst", "read:sales.*"),
            "no-grant": token(settings, "nobody", "read:nothing.*"),
        }
        pages = (*PAGES, "tables/sales.events", "tables/sales.events/maintenance", "you")
        for turn, (state, secret) in enumerate(callers.items()):
            with opened(browser, url) as page:
                sign_in(page, url, secret, "overview")
                assert look_at(page, state, url, in_turn(pages, 2 * turn, 3)) == {}
        with opened(browser, url) as page:
            page.goto(f"{url}/dashboard/sign-in")
            page.get_by_label("Token").fill(token(settings, "host-3", "worker:host-3"))
            page.get_by_role("button", name="Sign in").click()
            expect(page.get_by_role("alert")).to_contain_text("does not have the scope")
            assert violations(page) == []
