"""Behaviour of connections to every metadata database."""

from __future__ import annotations

import asyncio
import gc
import random
from contextlib import suppress
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.support.servers.databases import on_database
from windrow_service.store import schema
from windrow_service.store.database import Database, embedded_url, open_database


@pytest.mark.slow
def test_a_task_cancelled_at_any_moment_returns_its_connection(
    database_url: sa.URL, caplog: pytest.LogCaptureFixture
) -> None:
    async def use(database: Database) -> None:
        while True:
            async with database.reading() as connection:
                await connection.execute(sa.text("SELECT 1"))
            async with database.writing() as connection:
                await connection.execute(sa.text("SELECT 1"))

    async def cancel_some(database: Database) -> None:
        moments = random.Random(5)
        for _ in range(40):
            user = asyncio.create_task(use(database))
            await asyncio.sleep(moments.uniform(0, 0.03))
            user.cancel()
            with suppress(asyncio.CancelledError):
                await user
            # Without idle connections, the next user has to connect again.
            await database.aclose()

    on_database(database_url, cancel_some)
    # The pool logs connections that are garbage-collected without having been returned.
    gc.collect()

    assert caplog.records == []


def test_what_a_transaction_has_read_stays_until_it_ends_on_sqlite(tmp_path: Path) -> None:
    number = sa.select(sa.func.count()).select_from(schema.secrets)

    async def add(database: Database, results: list[int]) -> None:
        async with database.writing() as connection:
            count = int(await connection.scalar(number) or 0)
            # Others run meanwhile.
            await asyncio.sleep(0)
            secret = {"name": f"secret {count}", "value": b""}
            await connection.execute(sa.insert(schema.secrets).values(secret))
            results.append(count)

    async def from_two_processes() -> list[int]:
        results: list[int] = []
        one = await open_database(embedded_url(tmp_path))
        other = await open_database(embedded_url(tmp_path))
        await asyncio.gather(*(add(database, results) for database in [one, other] * 10))
        await one.aclose()
        await other.aclose()
        return results

    assert asyncio.run(from_two_processes()) == list(range(20))
