"""Metadata for other engines is kept as long as a snapshot needs it, and no longer."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from anyio.from_thread import start_blocking_portal
from pyiceberg.table import StaticTable

from tests.support.servers import embedded
from tests.support.tables import hive
from windrow_core.models import TableDefinition
from windrow_service.bootstrap import open_services
from windrow_service.settings import Settings
from windrow_service.usecases.access.authenticate import ANONYMOUS
from windrow_service.wiring import rooms


def grow_old(folder: Path) -> None:
    for path in folder.rglob("*.*"):
        os.utime(path, (0, 0))


@pytest.mark.slow
def test_metadata_goes_with_the_last_snapshot_that_needs_it(tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),))
    embedded.upgraded(settings.state_dir)
    hive.write_events(tmp_path / "t", files_per_day=1)
    made = tmp_path / "state" / "engines"

    async def check() -> None:
        async with open_services(settings) as services:
            describe = services.engines.describe
            assert describe is not None
            definition = TableDefinition(location=str(tmp_path / "t"))
            await services.tables.register("t", definition, None, ANONYMOUS.tables)
            await services.tables.refreshes.refresh_unless_checked("t", services.operations.clock())
            first = await describe("t", all_snapshots=True)
            old = {path.name for path in made.rglob("snap-1.*")}
            shutil.rmtree(tmp_path / "t" / "ds=2026-11-01")
            hive.write_file(tmp_path / "t" / "ds=2026-11-09" / "part", [90])
            await services.tables.refreshes.refresh_unless_checked("t", services.operations.clock())
            both = await describe("t", all_snapshots=True)
            await services.snapshots.expire("t", 1, timedelta(0))
            await describe.clean()
            # Somebody may still read what was asked for a moment ago.
            assert {path.name for path in made.rglob("snap-1.*")} == old
            assert Path(first.metadata_path).exists()
            grow_old(made)
            newest = await describe("t", all_snapshots=True)
            await describe.clean()
            assert not list(made.rglob("snap-1.*"))
            assert not Path(first.metadata_path).exists()
            assert both.version != newest.version
            rows = StaticTable.from_metadata(newest.metadata_path).scan().to_arrow()
            assert sorted(rows["id"].to_pylist()) == [*range(10, 30), 90]
            await services.tables.tables.delete("t", None)
            await describe.clean()
            assert not list(made.iterdir())

    with start_blocking_portal() as portal:
        portal.call(check)


@pytest.mark.slow
def test_new_snapshots_of_tables_that_engines_read_are_described_before_they_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),))
    embedded.upgraded(settings.state_dir)
    made = tmp_path / "state" / "engines"
    monkeypatch.setattr(rooms, "_FOLLOW_EVERY_S", 3600.0)

    async def check() -> None:
        async with open_services(settings) as services:
            describe, refreshes = services.engines.describe, services.tables.refreshes
            assert describe is not None

            async def grow(name: str, ids: list[int], file: str = "part") -> None:
                hive.write_file(tmp_path / name / "ds=2026-11-09" / file, ids)
                await refreshes.refresh_unless_checked(name, services.operations.clock())
                await describe.follow()

            for name in ("read", "unread"):
                definition = TableDefinition(location=str(tmp_path / name))
                hive.write_file(tmp_path / name / "ds=2026-11-09" / "first", [1])
                await services.tables.register(name, definition, None, ANONYMOUS.tables)
                await grow(name, [2])
            assert not made.exists()
            await describe("read", all_snapshots=True)
            for name in ("read", "unread"):
                await grow(name, [3], "second")
            assert len(list(made.rglob("snap-2.avro"))) == 1
            # What is there is as if it had been asked for.
            content = set(made.rglob("*.avro"))
            metadata = {path.name for path in made.rglob("*.metadata.json")}
            newest = await describe("read", all_snapshots=True)
            assert Path(newest.metadata_path).name in metadata
            assert content == set(made.rglob("*.avro"))
            # A table that engines cannot read any more is tried once.
            inside = pa.table({"id": [4], "ds": ["x"]})
            pq.write_table(inside, tmp_path / "read" / "ds=2026-11-09" / "inside")
            await refreshes.refresh_unless_checked("read", services.operations.clock())
            await describe.follow()
            await describe.follow()
            assert not list(made.rglob("snap-3.avro"))
            await services.tables.tables.delete("read", None)
            await describe.follow()

    with start_blocking_portal() as portal:
        portal.call(check)
