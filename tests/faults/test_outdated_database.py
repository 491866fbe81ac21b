"""A database of another version is refused when the coordinator starts, and stays as it is."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from windrow_service.store.engine import OutdatedDatabaseError, open_sqlite


def opened(path: Path) -> None:
    async def open_and_close() -> None:
        await (await open_sqlite(path)).dispose()

    # In a thread: a browser that other tests keep open has a running loop in this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(open_and_close())).result()


def tables(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return sorted(name for (name,) in database.execute("SELECT name FROM sqlite_master"))


def test_a_database_with_other_columns_is_named_with_the_remedy_and_not_touched(
    tmp_path: Path,
) -> None:
    path = tmp_path / "windrow.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE snapshots (table_id INTEGER, snapshot_id INTEGER)")

    with pytest.raises(OutdatedDatabaseError, match=r"'snapshots'.*move it away") as caught:
        opened(path)

    assert str(path) in str(caught.value)
    assert tables(path) == ["snapshots"]


def test_a_database_that_was_made_here_opens_again(tmp_path: Path) -> None:
    path = tmp_path / "windrow.db"
    opened(path)
    made = tables(path)

    opened(path)

    assert "snapshots" in made
    assert tables(path) == made
