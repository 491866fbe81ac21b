"""A table on a store, writes to it, and what must be there after its writer has died."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from tests.support.faults.readers import stored_ids
from tests.support.faults.writers import stage
from windrow.client import Client
from windrow_core.files.remote import contents_of
from windrow_tables.commits import recover
from windrow_tables.commits.inventories import list_files, take_inventory
from windrow_tables.commits.recovery import Recovered

FIRST, SECOND, NEW = "ds=2026-11-01", "ds=2026-11-02", "ds=2026-11-09"
OLD = {FIRST: range(10), SECOND: range(20, 40)}
OLD_FILES = {
    f"{FIRST}/a.parquet": range(10),
    f"{SECOND}/a.parquet": range(20, 30),
    f"{SECOND}/b.parquet": range(30, 40),
}
ADDED = {SECOND: range(100, 105), NEW: range(300, 303)}
FILES = {f"{folder}/a.parquet": list(ids) for folder, ids in ADDED.items()}
# Mode, new files, replaced files, and the ids in each partition after the write.
KINDS: dict[str, tuple[str, dict[str, list[int]], list[str], Mapping[str, Sequence[int]]]] = {
    "append": (
        "append",
        FILES,
        [],
        {**OLD, NEW: ADDED[NEW], SECOND: [*OLD[SECOND], *ADDED[SECOND]]},
    ),
    "overwrite": ("overwrite", FILES, [], ADDED),
    "overwrite_partitions": ("overwrite_partitions", FILES, [], {**OLD, **ADDED}),
    "compaction": (
        "append",
        {f"{SECOND}/one.parquet": list(OLD[SECOND])},
        [f"{SECOND}/a.parquet", f"{SECOND}/b.parquet"],
        OLD,
    ),
}


def new_table(client: Client, table: str, location: str) -> None:
    """Register a table with its old rows."""
    stage(location, OLD_FILES)
    client.register_table(table, location)
    client.publish(table, take_inventory(location, list_files(location), ["ds"]).files)


def recover_once_dead(client: Client, table: str) -> None:
    """Recover a table's writes as soon as the leases of dead drivers have run out."""

    def is_left(outcome: Recovered) -> bool:
        return outcome.outcome == "left" and "does not know it" not in outcome.reason

    wait_until(lambda: not any(map(is_left, recover(client, table))))
    # What the coordinator has not heard of would be left for a day.
    recover(client, table, force=True)


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def rows_of(partitions: Mapping[str, Sequence[int]]) -> list[int]:
    """Return the ids of all partitions."""
    return sorted(id_ for ids in partitions.values() for id_ in ids)


def assert_whole(
    client: Client, table: str, location: str, partitions: Mapping[str, Sequence[int]]
) -> None:
    """Assert that every reader sees each row once, and that nothing else is left."""
    assert stored_ids(location) == {folder: sorted(ids) for folder, ids in partitions.items()}
    folders, _ = contents_of(location)
    assert sorted(folders) == sorted(partitions)
    assert not list(client.writes(table, open_only=True))
    status = client.refresh(table, full=True)
    assert (status.changed, status.files_added, status.files_removed) == (False, 0, 0)
