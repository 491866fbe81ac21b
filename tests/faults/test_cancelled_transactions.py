"""A caller that is cancelled amid a transaction leaves nothing for others to wait for."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from contextlib import closing
from pathlib import Path

from windrow_service.store import schema
from windrow_service.store.database import (
    Database,
    database_path,
    embedded_url,
    insert_missing,
    open_database,
)

TRIES = 200


async def insert(database: Database, name: str) -> None:
    async with database.writing() as connection:
        await insert_missing(connection, schema.secrets, {"name": name, "value": ""})


def may_write(state_dir: Path) -> bool:
    """Return whether another process could write now."""
    with closing(sqlite3.connect(database_path(state_dir), timeout=0.5)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
    return True


def test_others_may_write_after_a_caller_was_cancelled_at_any_time(tmp_path: Path) -> None:
    async def cancel_often() -> None:
        database = await open_database(embedded_url(tmp_path))
        try:
            for number in range(TRIES):
                task = asyncio.create_task(insert(database, str(number)))
                # A transaction takes a few milliseconds.
                await asyncio.sleep(number * 4e-3 / TRIES)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                assert await asyncio.to_thread(may_write, tmp_path), number
        finally:
            await database.aclose()

    # It would end transactions that were left.
    gc.disable()
    try:
        asyncio.run(cancel_often())
    finally:
        gc.enable()
