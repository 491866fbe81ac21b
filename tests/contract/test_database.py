"""What holds of connections to the metadata database, whichever it is."""

from __future__ import annotations

import asyncio
import gc
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import sqlalchemy as sa

from windrow_service.store.database import (
    Database,
    embedded_url,
    open_database,
    server_url,
    upgrade_database,
)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> sa.URL:
    if request.param == "sqlite":
        return embedded_url(tmp_path)
    url = server_url(request.getfixturevalue("postgresql_url"))
    upgrade_database(url)
    return url


def test_a_user_who_is_cancelled_at_any_moment_gives_the_connection_back(
    url: sa.URL, caplog: pytest.LogCaptureFixture
) -> None:
    async def use(database: Database) -> None:
        while True:
            async with database.reading() as connection:
                await connection.execute(sa.text("SELECT 1"))
            async with database.writing() as connection:
                await connection.execute(sa.text("SELECT 1"))

    async def cancel(after_s: float) -> None:
        database = await open_database(url)
        user = asyncio.create_task(use(database))
        await asyncio.sleep(after_s)
        user.cancel()
        with suppress(asyncio.CancelledError):
            await user
        await database.aclose()

    moments = random.Random(5)
    with ThreadPoolExecutor(1) as thread:
        for _ in range(40):
            thread.submit(asyncio.run, cancel(moments.uniform(0, 0.03))).result()
    # One that was not given back is found, and logged, by the collector.
    gc.collect()

    assert caplog.records == []
