"""Convert a small inventory sent as JSON to the table that a stream would contain."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from windrow_core.files.rows import ROW_COLUMN, STATS
from windrow_core.models import InventoryChange, InventoryFile, PublishMode
from windrow_service.inventory.errors import InvalidInventoryError
from windrow_service.inventory.published.columns import REQUIRED
from windrow_service.inventory.published.schema import COLUMNS_KEY
from windrow_service.inventory.published.size import refuse_beyond

# Memory of the bounds of one column of one file, as Python objects during the conversion.
_BOUNDS_BYTES = 32


def table_of(change: InventoryChange, mode: PublishMode, max_bytes: int) -> pa.Table:
    """Return a published inventory as a table; a delta has a column `change`, added files first.

    Args:
        change: The inventory as it was sent.
        mode: Whether it lists all files, or a change.
        max_bytes: Most bytes that it may take in memory.

    Raises:
        InvalidInventoryError: The bounds of one column have several types, a whole inventory
            removes files, or it takes too much memory.
    """
    if mode == "full" and change.removed:
        raise InvalidInventoryError("only a delta can remove files: leave `removed` out")
    if mode == "delta" and change.columns is not None:
        raise InvalidInventoryError("a delta has the columns of its table: leave `columns` out")
    # A column that was not sent is unknown, which differs from empty.
    names = {name for file in change.added for name in file.model_fields_set}
    names |= set(REQUIRED)
    rows: list[InventoryFile | None] = [*change.added, *(None for _ in change.removed)]
    paths = [file.path for file in change.added] + change.removed
    columns: dict[str, pa.Array] = {"path": pa.array(paths, pa.string())}
    for name in InventoryFile.model_fields:
        if name in names and name not in ("path", "stats"):
            values = [None if file is None else getattr(file, name) for file in rows]
            columns[name] = pa.array(values, ROW_COLUMN[name].type)
    if "stats" in names:
        columns["stats"] = _stats(rows, max_bytes)
    if mode == "delta":
        kinds = ["added"] * len(change.added) + ["removed"] * len(change.removed)
        columns["change"] = pa.array(kinds, pa.string())
    table = pa.table(columns)
    if change.columns is not None:
        definitions = [column.model_dump() for column in change.columns]
        table = table.replace_schema_metadata({COLUMNS_KEY: json.dumps(definitions)})
    return table


def _stats(rows: list[InventoryFile | None], max_bytes: int) -> pa.StructArray:
    names = list(dict.fromkeys(name for file in rows if file for name in file.stats))
    # Each file may name different columns, and each of these becomes a column for all files.
    refuse_beyond(len(rows) * len(names) * _BOUNDS_BYTES, max_bytes)
    structs = []
    for name in names:
        bounds = [file.stats.get(name) if file else None for file in rows]
        ends: dict[str, list[Any]] = {
            end: [getattr(one, end) if one else None for one in bounds] for end in ("min", "max")
        }
        try:
            # Convert both together, so that they get one type.
            both = pa.array(ends["min"] + ends["max"])
        except (pa.ArrowException, OverflowError) as error:
            raise InvalidInventoryError(f"column 'stats.{name}': {error}") from error
        counts = pa.array([one.null_count if one else None for one in bounds], pa.int64())
        columns = [both[: len(rows)], both[len(rows) :], counts]
        structs.append(pa.StructArray.from_arrays(columns, names=STATS))
    if not structs:
        return pa.array([{}] * len(rows), pa.struct([]))
    return pa.StructArray.from_arrays(structs, names=names)
