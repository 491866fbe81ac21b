"""Iceberg tables that engines are asked to read through the catalog."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pyarrow as pa
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, StringType

from tests.support.tables.iceberg import catalog_in
from tests.support.tables.iceberg_deletes import delete_by_vector, delete_positions


def partitioned(folder: Path, odd: str) -> None:
    """Write a table of dates and texts, with a renamed, an added and a widened column."""
    table = _new(folder, pa.schema([("id", pa.int32()), ("ds", pa.date32()), ("c", pa.string())]))
    with table.update_spec() as spec:
        spec.add_field("ds", IdentityTransform())
        spec.add_field("c", IdentityTransform())
    first = [[1, 2, 3], [date(2026, 11, 1), None, date(1500, 2, 3)], [odd, None, "x"]]
    table.append(pa.table(first, schema=table.schema().as_arrow()))
    with table.update_schema() as schema:
        schema.update_column("id", LongType())
        schema.rename_column("id", "number")
        schema.add_column("more", StringType())
        # Sail returns partition columns last, wherever they are.
        schema.move_after("more", "id")
    second = [[2**40], ["added"], [date(2026, 11, 1)], ["x"]]
    table.append(pa.table(second, schema=table.schema().as_arrow()))
    table.delete("number = 3")


def deleted_positions(folder: Path) -> None:
    """Write a table of which a file names deleted rows."""
    table = _of_numbers(folder)
    delete_positions(table, {_only_file(table): [0, 2]})


def deleted_by_vector(folder: Path) -> None:
    """Write a table with a deletion vector."""
    table = _of_numbers(folder)
    delete_by_vector(table, {_only_file(table): [1, 3]})


def rolled_back(folder: Path) -> None:
    """Write a table whose current snapshot is not the newest, and that has no log of snapshots."""
    table = _of_numbers(folder)
    table.append(pa.table({"v": [5]}))
    path = Path(table.metadata_location.removeprefix("file://"))
    metadata = json.loads(path.read_text())
    first = metadata["snapshots"][0]["snapshot-id"]
    metadata |= {"current-snapshot-id": first, "last-updated-ms": metadata["last-updated-ms"] + 1}
    metadata["refs"]["main"]["snapshot-id"] = first
    del metadata["snapshot-log"]
    path.with_name(f"{int(path.name.split('-')[0]) + 1:05}-back.metadata.json").write_text(
        json.dumps(metadata)
    )


def _of_numbers(folder: Path) -> Table:
    table = _new(folder, pa.schema([("v", pa.int64())]))
    table.append(pa.table({"v": [1, 2, 3, 4]}))
    return table


def _new(folder: Path, schema: pa.Schema) -> Table:
    catalog = catalog_in(folder.parent / f"{folder.name}_catalog")
    return catalog.create_table("ns.t", schema, location=f"file://{folder}")


def _only_file(table: Table) -> str:
    (task,) = table.scan().plan_files()
    return str(task.file.file_path)
