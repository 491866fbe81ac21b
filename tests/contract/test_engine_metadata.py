"""Metadata for other engines is kept as long as a snapshot needs it, and no longer."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from pyiceberg.table import StaticTable

from tests.support.servers import embedded
from tests.support.tables import hive
from windrow_core.models import TableDefinition
from windrow_service.bootstrap import open_services
from windrow_service.settings import Settings
from windrow_service.usecases.access.authenticate import ANONYMOUS
from windrow_service.wiring.adapters import now


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
            await services.tables.refreshes.refresh_unless_checked("t", now())
            first = await describe("t", all_snapshots=True)
            old = {path.name for path in made.rglob("snap-1.*")}
            shutil.rmtree(tmp_path / "t" / "ds=2026-11-01")
            hive.write_file(tmp_path / "t" / "ds=2026-11-09" / "part", [90])
            await services.tables.refreshes.refresh_unless_checked("t", now())
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
