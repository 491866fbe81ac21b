"""Pages of lists are limited in bytes, and together they have all entries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx
import pyarrow as pa
import pytest
import sqlalchemy as sa

from tests.contract.test_stores import EVENTS, EVERY, START, Stores, next_snapshot
from tests.support.api.problems import problem_of
from tests.support.servers.databases import on_database
from windrow_core.models import (
    CacheRuleDefinition,
    Column,
    RefreshStatus,
    WriteUpdate,
)
from windrow_service.store.cache_rules import SqlCacheRuleStore
from windrow_service.store.pages import MAX_PAGE_CHARACTERS, ParsedTexts
from windrow_service.store.refreshes import SqlRefreshStore
from windrow_service.store.table_lists import SqlTableLists
from windrow_service.store.tokens import SqlTokenStore
from windrow_service.store.writes import SqlWriteStore
from windrow_service.usecases.access.ports import Token
from windrow_service.usecases.caches.errors import CacheRulesTooLongError
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import Page
from windrow_service.usecases.tables.lists import TableConditions

MIB = 2**20
NEWEST = 2**31 - 1
# So many entries of a mebibyte are more than a page.
COUNT = 7
WIDE = EVENTS.model_copy(
    update={
        "columns": [Column(name=f"c{at}", type=f"struct<{'x' * 65_000}:int>") for at in range(16)]
    }
)
REPORT = {
    "scheme": "exact",
    "basis": "size",
    "target_file_bytes": 1,
    "tasks": 1,
    "rows": 1,
    "files": 3,
    "small_files": 1,
    "bytes": 1,
    "largest_file_bytes": 1,
    "row_hash": "0",
    "unhashed_columns": ["x" * MIB],
    "count_seconds": 0,
    "write_seconds": 0,
    "check_seconds": 0,
    "commit_seconds": 0,
}


@pytest.fixture
def run(database_url: sa.URL) -> Callable[[Callable[[Stores], Awaitable[Any]]], Any]:
    """Run a test's body with stores."""
    return lambda body: on_database(database_url, lambda database: body(Stores(database)))


async def walked(page_after: Callable[[Any], Awaitable[Page[Any]]], after: Any) -> list[list[Any]]:
    """Return all pages of a list."""
    pages = []
    more = True
    while more:
        page = await page_after(after)
        pages.append(list(page))
        more = page.more
        after = page[-1] if page else after
    return pages


def test_a_page_ends_where_its_entries_get_too_long(run: Any) -> None:
    async def body(stores: Stores) -> None:
        names = [f"t{number}" for number in range(COUNT)]
        for name in names:
            await stores.tables.put(name, WIDE, None)
        writes = SqlWriteStore(stores.database, lambda: stores.now)
        tokens = SqlTokenStore(stores.database)
        for number in range(COUNT):
            table = await stores.tables.get("t0")
            # PostgreSQL reads no field of a document with a null character.
            odd = pa.schema([("\0", pa.string())])
            sent = replace(next_snapshot(1), valid_write_ids="x" * MIB, data_schema=odd)
            await stores.snapshots.publish(table, sent, None)
            update = {"mode": "append", "state": "staging", "host": "h", "process": 1}
            made = WriteUpdate.model_validate(update | {"report": REPORT})
            await writes.put("t0", f"{number:032x}", made)
            await tokens.add(
                Token(
                    token_id=f"{number:016x}",
                    name="n",
                    scopes=(),
                    grants=("x" * MIB,),
                    created_at=START,
                    expires_at=None,
                    revoked_at=None,
                ),
                f"{number}",
            )

        async def tables_after(last: Any) -> Page[Any]:
            return await stores.tables.page(last.info.name if last else "", 100, EVERY)

        async def snapshots_before(last: Any) -> Page[Any]:
            return await stores.snapshots.page("t0", last.snapshot_id if last else NEWEST, 100)

        async def writes_before(last: Any) -> Page[Any]:
            return await writes.page("t0", last.number if last else NEWEST, 100, open_only=False)

        async def tokens_after(last: Any) -> Page[Any]:
            return await tokens.page(f"{last.name} {last.token_id}" if last else "", 100)

        for page_after in (tables_after, snapshots_before, writes_before, tokens_after):
            pages = await walked(page_after, None)
            assert len(pages) > 1
            assert max(map(len, pages)) <= MAX_PAGE_CHARACTERS // MIB
            assert sum(map(len, pages)) == COUNT
        assert [one.info.name for page in await walked(tables_after, None) for one in page] == names
        null = EVENTS.model_copy(update={"columns": [Column(name="\0", type="int")]})
        await stores.tables.put("z", null, None)
        assert EVENTS.location in await stores.tables.locations(Names())
        await stores.tables.delete("z", None)
        first = await stores.tables.page("", 2, EVERY)
        assert ([one.info.name for one in first], first.more) == (names[:2], True)
        assert not (await stores.tables.page(names[-2], 1, EVERY)).more

        # Pages for people show none of these texts.
        lists = SqlTableLists(stores.database, lambda: stores.now)
        _, worst = await lists.page(TableConditions(), 0, 9, EVERY)
        assert [one.name for one in worst] == names
        assert worst[0].current_snapshot is not None
        newest = await stores.snapshots.newest("t0", 3)
        assert newest[0] == worst[0].current_snapshot
        assert [one.snapshot_id for one in newest] == [7, 6, 5]
        assert (newest[0].file_count, newest[0].valid_write_ids) == (1, None)
        recent = await writes.recent(9, EVERY)
        assert len(recent) == COUNT
        assert recent[0].report is not None
        assert (recent[0].report.files, recent[0].report.unhashed_columns) == (3, [])

    run(body)


def test_lists_of_refreshes_leave_out_what_takes_much_room(run: Any) -> None:
    async def body(stores: Stores) -> None:
        table = await stores.register()
        table = await stores.publish(table, 1)
        status = RefreshStatus.model_validate(
            {
                "refresh_id": "1",
                "table": "t",
                "status": "done",
                "valid_write_ids": "x" * MIB,
                "started_at": START,
                "seconds": 1,
                "progress": {"phase": "done", "files_found": 5},
                "problem": {"detail": "a column has the name \0"},
                "snapshot": table.info.current_snapshot,
            }
        )
        refreshes = SqlRefreshStore(stores.database)
        await refreshes.begin(status, full=False, now=START, lease_until=START)

        (recent,) = await refreshes.recent(9, EVERY)

        assert (recent.status.snapshot, recent.status.valid_write_ids) == (None, None)
        assert recent.status.progress.files_found == 5
        assert (await refreshes.get("t")).status == status

    run(body)


def test_the_cache_rules_of_a_table_are_limited_together(run: Any) -> None:
    async def body(stores: Stores) -> None:
        await stores.register()
        rules = SqlCacheRuleStore(stores.database, lambda: stores.now)
        long = CacheRuleDefinition(filter=f"a = '{'x' * MIB}'"[:MIB])
        for number in range(3):
            await rules.put("t", f"r{number}", long, None)

        with pytest.raises(CacheRulesTooLongError, match="shorten their filters"):
            await rules.put("t", "r3", long, None)
        short = CacheRuleDefinition(filter="a = 1")
        await rules.put("t", "r3", short, None)
        with pytest.raises(CacheRulesTooLongError):
            await rules.put("t", "r3", long, None)
        # One that is replaced by itself does not count twice.
        await rules.put("t", "r2", long.model_copy(update={"max_bytes": 1}), None)

        everywhere = await rules.everywhere(stores.now, 9, EVERY)
        assert [one.info.rule for one in everywhere] == ["r0", "r1", "r2", "r3"]
        assert ["too long" in str(one.info.filter) for one in everywhere] == [True] * 3 + [False]
        assert (await rules.get("t", "r0")).info.filter == long.filter

    run(body)


def test_parsed_texts_are_kept_within_bounds() -> None:
    parsed: list[str] = []

    @ParsedTexts
    def parse(text: str) -> int:
        parsed.append(text[:1])
        return len(text)

    for text in ("a" * MIB, "a" * MIB, *(f"{number}" * MIB for number in range(9)), "a" * MIB):
        assert parse(text) == MIB
    assert "".join(parsed) == "a012345678a"


def test_a_list_of_tables_with_many_columns_has_short_pages(
    http: httpx.Client, name: str, location: Any
) -> None:
    columns = [{"name": f"column_{at:05}", "type": "decimal(38,10)"} for at in range(10_000)]
    names = [f"{name}.t{number:02}" for number in range(12)]
    body = {"location": str(location), "columns": columns}
    for each in names:
        http.put(f"/tables/{each}", json=body).raise_for_status()
    try:
        listed: list[str] = []
        params: dict[str, Any] = {"page_size": 1_000}
        while True:
            answer = http.get("/tables", params=params).raise_for_status()
            assert len(answer.content) < MAX_PAGE_CHARACTERS + MIB
            page = answer.json()
            listed += [table["name"] for table in page["tables"]]
            if page["next_page_token"] is None:
                break
            params["page_token"] = page["next_page_token"]
    finally:
        for each in names:
            http.delete(f"/tables/{each}")

    assert [each for each in listed if each.startswith(name)] == names
    assert len(listed) == len(set(listed))


def test_pages_of_partitions_are_limited_in_bytes(
    http: httpx.Client, name: str, location: Any
) -> None:
    columns = [{"name": f"p{at}", "type": "string"} for at in range(10)]
    http.put(f"/tables/{name}", json={"location": str(location), "partition_columns": columns})
    sent = [
        {
            "values": ["x" * 3_990 + f"{at:010}", *["y" * 4_000] * 9],
            "location": f"{location}/{at:03}",
        }
        for at in range(250)
    ]
    answer = http.put(f"/tables/{name}/partitions", json={"partitions": sent})
    assert answer.status_code == 200, answer.text

    found: list[str] = []
    params: dict[str, Any] = {"page_size": 1_000}
    while True:
        answer = http.get(f"/tables/{name}/partitions", params=params)
        assert len(answer.content) < MAX_PAGE_CHARACTERS + MIB
        found += [one["location"] for one in answer.json()["partitions"]]
        params["page_token"] = answer.json()["next_page_token"]
        if params["page_token"] is None:
            break

    assert found == [one["location"] for one in sent]
    problem_of(http.get(f"/tables/{name}/partitions?page_token=x"), 404, "page-not-found")
