"""Pages of many things leave nothing out: what does not fit is on further pages, or is counted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from html import unescape
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from tests.support.api.dashboards import LAKE, Operated, token, written
from tests.support.servers.coordinators import PLAIN, running
from tests.support.servers.databases import on_database
from windrow_service.settings import Settings
from windrow_service.store import schema
from windrow_service.store.database import Database, embedded_url
from windrow_service.store.tokens import SqlTokenStore
from windrow_service.usecases.access.grants import compiled
from windrow_service.usecases.access.ports import Token

NOW = datetime(2026, 11, 30, tzinfo=timezone.utc)
DAYS = ["ds=2026-11-02", "ds=2026-11-03"]


class Site:
    """A coordinator, and the browser of somebody who may do everything."""

    def __init__(self, url: str, settings: Settings, http: httpx.Client) -> None:
        self.url = url
        self.settings = settings
        self.operated = Operated(url, token(settings, "operator", "admin"))
        self.http = http
        sent = {"token": token(settings, "operator", "admin")}
        assert http.post("/dashboard/sign-in", data=sent).status_code == 303

    def change(self, statement: sa.Insert, rows: list[dict[str, object]]) -> None:
        """Add many rows to the database at once."""

        async def work(database: Database) -> None:
            async with database.writing() as connection:
                await connection.execute(statement, rows)

        on_database(embedded_url(self.settings.state_dir), work)

    def pages(self, path: str) -> Iterator[str]:
        """Yield a page, and those that its links to the next ones lead to."""
        while True:
            text = self.http.get(path).raise_for_status().text
            yield text
            link = re.search(r'<a rel="next" href="([^"]+)"', text)
            if link is None:
                return
            path = path.partition("?")[0] + unescape(link[1])


@contextmanager
def site_of(folder: Path) -> Iterator[Site]:
    settings = Settings(state_dir=folder, allowed_locations=(LAKE,), require_tokens=True)
    with running(settings) as url, httpx.Client(verify=PLAIN, base_url=url, timeout=60) as http:
        site = Site(url, settings, http)
        yield site
        site.operated.http.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site_of(tmp_path_factory.mktemp("many")) as site:
        yield site


def token_row(at: int, name: str, grants: str = "", scopes: str = "") -> dict[str, object]:
    return {
        "token_id": f"{at:016x}",
        "name": name,
        "digest": f"{at:064x}",
        "scopes": scopes,
        "grants": grants,
        "created_at": NOW,
        "expires_at": None,
        "revoked_at": None,
    }


def work_rows(table: str, state: str, count: int, **changed: object) -> list[dict[str, object]]:
    """Return receipts of a table in one state, each of a partition of its own."""
    prediction = dict.fromkeys(("partitions", "files", "becomes", "size_bytes"), 1)
    prediction |= {"cost_seconds": 2, "gain_seconds": 1, "reads_per_day": 1, "saved_seconds": 1}
    prediction |= {"score": 1}
    outcome = {"files_before": 3, "files_after": 1, "core_seconds": 2.0, "bytes_before": 10}
    rows = []
    for at in range(count):
        body: dict[str, object] = {"text": f"{table} {state} {at:03d}"}
        if state != "left_alone":
            body |= {"folders": [f"id={at}"], "folder_bytes": [1], "target_file_size": 1}
            body |= {"min_files": 2, "readers_may_see_both": False, "prediction": prediction}
            body |= {"outcome": outcome if state == "done" else None}
        moment = datetime.now(timezone.utc) - timedelta(minutes=count - at)
        row = {"table_name": table, "state": state, "reason": state, "times": 1}
        row |= {"first_at": moment, "last_at": moment, "body": json.dumps(body)}
        rows.append(row | changed)
    return rows


def texts_of(pages: Iterable[str], table: str) -> list[str]:
    """Return the texts of all receipts of a table on some pages, in order."""
    matches = (re.findall(rf'<td class="text">{table} (\w+ \d+)', page) for page in pages)
    return [text for texts in matches for text in texts]


def test_all_work_of_a_table_is_shown_by_state_however_much_there_is(site: Site) -> None:
    for name in ("busy.t", "busy.other"):
        site.operated.register(name)
        site.operated.publish(name, written(DAYS, 3, 1_000, day=1))
    table = sa.insert(schema.receipts)
    for state, count in {"waiting": 130, "done": 260, "failed": 7, "left_alone": 230}.items():
        site.change(table, work_rows("busy.t", state, count))
        site.change(table, work_rows("busy.other", state, 30))
    site.change(table, work_rows("busy.t", "waiting", 1, reason="requested"))

    shown = site.http.get("/dashboard/tables/busy.t/maintenance").text
    everywhere = site.http.get("/dashboard/maintenance").text
    overview = site.http.get("/dashboard/overview").text

    # Each list has its first receipts, however many of other states came later. What somebody asked
    # for came last, and is the first to be done.
    in_order = ["waiting 000", *(f"waiting {at:03d}" for at in range(130))]
    newest = [f"failed {at:03d}" for at in reversed(range(7))]
    newest += [f"done {at:03d}" for at in reversed(range(260))]
    alone = [f"left_alone {at:03d}" for at in reversed(range(230))]
    assert texts_of([shown], "busy.t") == in_order[:3] + alone[:3] + newest[:3]
    for number, of in ((131, "waiting"), (267, "ended"), (230, "left_alone")):
        path = f"/dashboard/receipts?of={of}&table=busy.t"
        assert f'{path.replace("&", "&amp;")}">All {number}<' in shown
        pages = list(site.pages(path))
        assert texts_of(pages, "busy.t") == {"waiting": in_order, "ended": newest}.get(of, alone)
        assert texts_of(pages, "busy.other") == []
        assert len(pages) == -(-number // 50)
    # A week of work is that of the whole week, and so is a day.
    assert re.search(r"Work done in 7 days</a></dt><dd>260<", shown)
    assert re.search(r"Core time in 7 days</a></dt><dd>9 min<", shown)
    assert re.search(r"Work done</a></dt><dd>290<", everywhere)
    # What all tables have is complete as well.
    assert "All work that waits (161)" in overview
    assert texts_of(site.pages("/dashboard/receipts?of=waiting"), "busy.other")[-1] == "waiting 029"
    next_work = overview.partition('aria-label="Next work"')[2].partition("</table>")[0]
    assert re.findall(r"busy.t waiting (\d+)", next_work) == ["000", "000", "001", "002", "003"]


def test_receipts_of_hidden_tables_are_on_no_page(site: Site) -> None:
    site.operated.register("hidden.t")
    site.change(sa.insert(schema.receipts), work_rows("hidden.t", "done", 3))
    sent = {"token": token(site.settings, "reader", "read:shown.*")}
    with httpx.Client(verify=PLAIN, base_url=site.url, timeout=60) as http:
        assert http.post("/dashboard/sign-in", data=sent).status_code == 303
        for query in ("", "?table=hidden.t"):
            page = http.get(f"/dashboard/receipts{query}").raise_for_status().text
            assert "Done (0)" in page
            assert texts_of([page], "hidden.t") == []
    assert len(texts_of(site.pages("/dashboard/receipts?table=hidden.t"), "hidden.t")) == 3


def test_all_tokens_that_reach_a_table_are_on_its_pages_however_many_others_there_are(
    site: Site,
) -> None:
    site.operated.register("reached.by.some")
    rows = [
        token_row(at, f"other-{at:04d}", "read:elsewhere.* write:reached") for at in range(1_200)
    ]
    # By name, these come last.
    rows += [token_row(2_000 + at, f"some-{at:04d}", "write:reached.*") for at in range(120)]
    site.change(sa.insert(schema.tokens), rows)

    pages = list(site.pages("/dashboard/tables/reached.by.some/access"))

    shown = [name for page in pages for name in re.findall(r'<th scope="row">([^<]+)<', page)]
    assert shown == ["operator", "operator", *(f"some-{at:04d}" for at in range(120))]
    assert len(pages) == 3
    assert "read and write" in pages[-1]


def test_tokens_that_reach_a_table_are_the_valid_ones_with_a_grant_on_it(
    database_url: sa.URL,
) -> None:
    grants = {
        "all": "read",
        "everything": "worker admin",
        "exact": "read:a.b.c",
        "below": "read:x.y write:a.*",
        "below-both": "admin:a.b.*",
        "other-case": "read:A.b.c",
        "other": "read:a.b read:a.b.cd read:b.* write:a.b.c.*",
        "worker": "worker:a.b.c",
        "underscore": "read:a_b.*",
        "revoked": "read:a.b.c",
        "expired": "read:a.b.c",
        "ends-later": "read:a.b.c",
    }
    ends = {"expired": NOW, "ends-later": NOW + timedelta(seconds=1)}

    async def work(database: Database) -> list[str]:
        store = SqlTokenStore(database)
        for at, (name, texts) in enumerate(grants.items()):
            one = Token(
                token_id=f"{at:016x}",
                name=name,
                scopes=tuple(text for text in texts.split() if ":" not in text),
                grants=tuple(text for text in texts.split() if ":" in text),
                created_at=NOW - timedelta(days=1),
                expires_at=ends.get(name),
            )
            await store.add(one, f"{at:064x}")
            if name == "revoked":
                await store.revoke(one.token_id, NOW)
        reaching, after = [], ""
        while page := await store.reaching("a.b.c", NOW, after, 2):
            reaching += page
            after = f"{page[-1].name} {page[-1].token_id}"
            assert page.more == (len(page) == 2 and len(reaching) < 6)
        assert all("a.b.c" in compiled(one.scopes + one.grants).of("read") for one in reaching)
        return [one.name for one in reaching]

    assert on_database(database_url, work) == [
        "all",
        "below",
        "below-both",
        "ends-later",
        "everything",
        "exact",
    ]
