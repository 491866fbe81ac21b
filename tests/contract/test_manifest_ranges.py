"""Manifests that cannot match are never read."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from windrow_core.files.rows import inventory_schema
from windrow_core.models import Plan, PlanRequest, TableDefinition
from windrow_service.bootstrap import open_services
from windrow_service.inventory.errors import CorruptManifestError
from windrow_service.inventory.manifests.encoding import cut_files
from windrow_service.planner.pruning.ranges import join_ranges
from windrow_service.settings import Settings
from windrow_service.usecases.plans.records import info_of
from windrow_service.usecases.snapshots.ports import NextSnapshot

DATA = pa.schema([("id", pa.int64()), ("x", pa.float64())])
PARTITION = pa.schema([("day", pa.int32())])


def next_snapshot() -> NextSnapshot:
    """Return four manifests of two files each; every file has ten ids and its own day."""
    rows = [
        {
            "path": f"day={at}/f",
            "size_bytes": 100,
            "mtime_ns": 1,
            "row_count": 10,
            "hosts": [],
            "delete_count": 0,
            "delete_bytes": 0,
            "row_group_offsets": [4],
            "stats_see_nan": False,
            "partition": {"day": at},
            "stats": {
                "id": {"min": 10 * at, "max": 10 * at + 9, "null_count": 0},
                "x": {"min": float(at), "max": float(at), "null_count": 0},
            },
        }
        for at in range(8)
    ]
    files = pa.Table.from_pylist(rows, inventory_schema(DATA, PARTITION))
    manifests = cut_files(files, manifest_files=2)
    return NextSnapshot(
        data_schema=DATA,
        partition_schema=PARTITION,
        manifests=tuple(manifests),
        ranges=join_ranges([manifest.range for manifest in manifests]),
        file_count=8,
        row_count=80,
        size_bytes=800,
        files_added=8,
        files_removed=0,
    )


def damage(path: Path, manifest_ids: list[str]) -> None:
    with closing(sqlite3.connect(path, timeout=60)) as database, database:
        database.executemany(
            "UPDATE manifests SET body = X'00' WHERE manifest_id = ?",
            [[manifest_id] for manifest_id in manifest_ids],
        )


def plan_with_damage(folder: Path, damaged: set[int], **request: Any) -> Plan:
    """Plan a table of four manifests, some with damaged bodies."""

    async def plan() -> Plan:
        async with open_services(Settings(state_dir=folder)) as services:
            table, _ = await services.tables.tables.put("t", TableDefinition(location="/t"), None)
            inventory = next_snapshot()
            await services.snapshots.snapshots.publish(table, inventory, None)
            if "partitions" in request:
                # This reads only some columns, and only once.
                await services.snapshots.show_partition_values("t", 1)
            ids = [inventory.manifests[position].manifest_id for position in damaged]
            # In a thread, because background work of this one may hold the database lock.
            await asyncio.to_thread(damage, folder / "windrow.db", ids)
            return info_of(await services.plans.make(PlanRequest(table="t", **request), ""))

    # In a thread, as the browser of other tests keeps an event loop running in this one.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(plan())).result()


@pytest.mark.parametrize(
    "filter_",
    ["day = 3", "day BETWEEN 2 AND 3 AND id = 35", "id IN (35, 200)", "id = 35 OR id = 99"],
)
def test_the_bodies_of_manifests_that_cannot_match_are_not_read(
    tmp_path: Path, filter_: str
) -> None:
    summary = plan_with_damage(tmp_path, {0, 2, 3}, filter=filter_).summary

    assert (summary.files_total, summary.files_planned) == (8, 1)
    assert (summary.files_pruned_by_manifest, summary.bytes_pruned_by_manifest) == (6, 600)
    assert summary.files_pruned_by_partition + summary.files_pruned_by_statistics == 1


@pytest.mark.parametrize("filter_", [None, "x > 100", "day = 1"])
def test_the_bodies_of_manifests_that_may_match_are_read(
    tmp_path: Path, filter_: str | None
) -> None:
    # Statistics that ignore NaN cannot rule out rows above 100, because NaN is above it.
    with pytest.raises(CorruptManifestError):
        plan_with_damage(tmp_path, {0}, filter=filter_)


def test_a_filter_that_no_manifest_matches_reads_none(tmp_path: Path) -> None:
    summary = plan_with_damage(tmp_path, {0, 1, 2, 3}, filter="id < 0").summary

    assert (summary.files_total, summary.files_pruned_by_manifest, summary.group_count) == (8, 8, 0)


@pytest.mark.parametrize("partitions", [[(3, 4)], [(2, 4)]])
def test_the_bodies_of_manifests_without_files_in_the_partitions_are_not_read(
    tmp_path: Path, partitions: list[tuple[int, int]]
) -> None:
    summary = plan_with_damage(tmp_path, {0, 2, 3}, snapshot_id=1, partitions=partitions).summary

    count = partitions[0][1] - partitions[0][0]
    assert (summary.files_total, summary.files_planned) == (8, count)
    assert (summary.files_pruned_by_manifest, summary.bytes_pruned_by_manifest) == (6, 600)
    assert summary.files_pruned_by_partition == 2 - count


def test_the_body_of_a_manifest_with_a_file_in_the_partitions_is_read(tmp_path: Path) -> None:
    with pytest.raises(CorruptManifestError):
        plan_with_damage(tmp_path, {0}, snapshot_id=1, partitions=[(1, 3)])
