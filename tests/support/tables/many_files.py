"""Tables of more files than a test could write: real inventories of files that do not exist."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow_core.files.rows import inventory_schema
from windrow_service.inventory.look import Inventory
from windrow_service.store.database import Database
from windrow_service.store.snapshots import SqlSnapshotStore
from windrow_service.store.tables import SqlTableStore
from windrow_service.usecases.audit import Actor, acting
from windrow_service.usecases.snapshots.next_snapshot import next_after_inventory

_DATA = pa.schema([("id", pa.int64())])
_PARTITION = pa.schema([("ds", pa.date32())])
_SCHEMA = inventory_schema(_DATA, _PARTITION)
_FIRST_DAY = date(2000, 1, 1)


async def publish_days(database: Database, name: str, days: int, files_per_day: int) -> None:
    """Publish an inventory of a registered table with daily partitions, without HTTP calls.

    Args:
        database: Where the table is registered.
        name: Name of the table.
        days: Number of partitions.
        files_per_day: Number of files in each; at most 100,000, of 1 to 2 MiB.
    """

    def now() -> datetime:
        return datetime.now(timezone.utc)

    files = _day(files_per_day)
    numbers = np.char.zfill(np.arange(files_per_day).astype("S5"), 5)
    parts = (_on(files, _FIRST_DAY + timedelta(day), numbers) for day in range(days))
    inventory = Inventory(
        files=pa.concat_tables(parts),
        data_schema=_DATA,
        partition_schema=_PARTITION,
        added_count=days * files_per_day,
        removed_count=0,
        folder_count=days,
        footers_read=0,
    )
    with acting(lambda: Actor("test", "test", None)):
        table = await SqlTableStore(database, now).get(name)
        store = SqlSnapshotStore(database, now)
        await store.publish(table, next_after_inventory(inventory, None, []), now())


def _day(files: int) -> pa.Table:
    """Return the files of a day; only their paths and partitions differ from day to day."""
    number = np.arange(files)
    none = pa.array(np.zeros(files + 1, np.int32))
    columns = {
        "path": pa.nulls(files, pa.string()),
        "size_bytes": pa.array(2**20 + number * 7_919 % 2**20),
        "mtime_ns": pa.array(np.full(files, 10**18)),
        "row_count": pa.array(np.full(files, 1_000)),
        "hosts": pa.ListArray.from_arrays(none, pa.array([], pa.string())),
        "row_group_offsets": pa.ListArray.from_arrays(none, pa.array([], pa.int64())),
        "delete_count": pa.array(np.zeros(files, np.int32)),
        "delete_bytes": pa.array(np.zeros(files, np.int64)),
        "stats_see_nan": pa.array(np.zeros(files, np.bool_)),
    }
    return pa.table(
        [columns.get(field.name, pa.nulls(files, field.type)) for field in _SCHEMA], schema=_SCHEMA
    )


def _on(files: pa.Table, day: date, numbers: npt.NDArray[np.bytes_]) -> pa.Table:
    """Return files of a day, named by their numbers."""
    names = np.char.add(f"ds={day}/".encode(), numbers)
    ends = np.arange(len(files) + 1, dtype=np.int32) * names.itemsize
    text = names.tobytes()
    path = pa.StringArray.from_buffers(len(files), pa.py_buffer(ends), pa.py_buffer(text))
    days = pa.array(np.full(len(files), np.datetime64(day)))
    partition = pa.StructArray.from_arrays([days], fields=list(_PARTITION))
    for field, column in ((_SCHEMA.field("path"), path), (_SCHEMA.field("partition"), partition)):
        files = files.set_column(_SCHEMA.get_field_index(field.name), field, column)
    return files
