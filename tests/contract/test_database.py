"""Behaviour of connections to every metadata database."""

from __future__ import annotations

import asyncio
import gc
import random
from contextlib import suppress

import pytest
import sqlalchemy as sa

from tests.support.servers.databases import on_database
from windrow_service.store.database import Database


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
