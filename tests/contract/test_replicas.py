"""Which replicas are there: they say so, leave, or fall silent."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import httpx
import sqlalchemy as sa

from tests.support.servers.coordinators import PLAIN, running, wait_until
from tests.support.servers.databases import on_database
from windrow_core.version import __version__
from windrow_service.settings import Settings
from windrow_service.store.database import Database
from windrow_service.store.replicas import SqlReplicaStore
from windrow_service.usecases.replicas import SILENT_AFTER, Replica

NOW = datetime(2026, 11, 23, tzinfo=timezone.utc)


def test_replicas_are_present_until_they_leave_or_fall_silent(database_url: sa.URL) -> None:
    one = Replica(replica_id="a", host="h1", process=1, version="1", started_at=NOW, seen_at=NOW)
    other = replace(one, replica_id="b", host="h2", version="2")

    async def work(database: Database) -> list[list[str]]:
        store = SqlReplicaStore(database)

        async def present(at: datetime) -> list[str]:
            return [each.replica_id for each in await store.present(at)]

        await store.note(one)
        await store.note(other)
        both = await store.present(NOW)
        assert both == [one, other]
        later = NOW + SILENT_AFTER
        before = await present(later)
        await store.note(replace(other, seen_at=later))
        after = await present(NOW)
        await store.leave("b")
        return [before, after, await present(later)]

    assert on_database(database_url, work) == [[], ["b"], []]


def test_the_overview_names_the_replicas_with_their_versions(tmp_path: Path) -> None:
    with running(Settings(state_dir=tmp_path)) as url:

        def page() -> str:
            return httpx.get(f"{url}/dashboard/overview", verify=PLAIN).text

        wait_until(lambda: 'aria-label="Replicas"' in page())
        assert f"<td>{__version__}</td>" in page()
