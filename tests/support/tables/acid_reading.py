"""Transactional tables read without Spark: listed, planned, sent and read as a client does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.unit.inventory.files import take_inline
from windrow_calls.plans import read_group_stream
from windrow_core.files.acid.write_ids import WriteIds
from windrow_core.files.formats import ORC
from windrow_service.inventory.listing.acid_files import Transactional
from windrow_service.inventory.look import Inventory
from windrow_service.planner.plan import plan_groups
from windrow_service.planner.policy import Policy
from windrow_service.wire.groups import ArrowGroups
from windrow_tables.executor.acid import DeleteFile
from windrow_tables.executor.reading import read_group
from windrow_tables.executor.spec import ReadSpec


def inventory_of(location: Path, ids: str | None = None, **more: Any) -> Inventory:
    """Return the inventory of a table as a reader of these write ids sees it."""
    parsed = WriteIds.parse(ids) if ids is not None else None
    return take_inline(
        str(location),
        file_format=ORC,
        folders=Transactional(names_rows=True, ids=parsed),
        **more,
    )


def groups_of(inventory: Inventory, columns: Sequence[str], tasks: int = 1) -> pa.Table:
    """Return the groups of a plan of a whole inventory, as a client gets them."""
    plan = plan_groups(
        inventory.files,
        None,
        Policy(parallelism=tasks),
        columns=columns,
        file_format=ORC,
        delete_files=inventory.delete_files,
    )
    body = ArrowGroups().encode(plan)
    return read_group_stream("p", body.head + b"".join(c.data for c in body.chunks) + body.tail)


def rows_of(
    location: Path,
    inventory: Inventory,
    ids: str | None = None,
    columns: Sequence[str] | None = None,
    counts: Counter[str] | None = None,
    **changes: Any,
) -> list[dict[str, Any]]:
    """Return the rows that the tasks of a plan read."""
    partition = inventory.partition_schema
    data = inventory.data_schema
    names = [*data.names, *partition.names] if columns is None else list(columns)
    spec = ReadSpec(
        table="t",
        location=str(location),
        data=pa.schema([field for field in data if field.name in names]),
        hidden=pa.schema([]),
        partition=partition,
        output=tuple(names),
        names_rows=True,
        valid_write_ids=ids,
        **changes,
    )
    rows: list[dict[str, Any]] = []
    groups = groups_of(inventory, names)
    for deletes, splits in zip(groups["delete_files"].to_pylist(), groups["splits"], strict=True):
        batch = pa.RecordBatch.from_struct_array(splits.values)
        files = [DeleteFile(**file) for file in deletes]
        for piece in read_group(spec, batch, None, None, counts, files):
            rows += piece.to_pylist()
    return rows
