"""Comparing how Windrow and Spark read a table of one Parquet file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyspark.sql import SparkSession

from tests.unit.inventory.files import take_inline
from windrow_core.files.arrays import flat
from windrow_core.files.errors import InventoryError
from windrow_service.inventory.build import take_inventory
from windrow_service.inventory.look import Inventory, Look
from windrow_service.usecases.tables.columns import wire_columns
from windrow_spark.arrow_types import arrow_schema, spark_schema
from windrow_tables.executor.errors import TaskReadError
from windrow_tables.executor.reading import read_group
from windrow_tables.executor.spec import ReadSpec

T = TypeVar("T")
_EVERYTHING = 10**9


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome for one file.

    Attributes:
        kind: `equal`, `different`, `refused by both`, `refused by us` (which may be right or
            wrong), or `read by us alone`.
        detail: Windrow's message, or the difference.
    """

    kind: str
    detail: str = ""


def compared(spark: SparkSession, folder: Path) -> Verdict:
    """Read the one file in a folder with Windrow and with Spark."""
    ours = _tried(lambda: _read(folder), (InventoryError, TaskReadError))
    theirs = _tried(lambda: spark.read.parquet(str(folder)).toArrow(), (Exception,))
    if isinstance(ours, Exception):
        by_both = isinstance(theirs, Exception)
        return Verdict(kind="refused by both" if by_both else "refused by us", detail=str(ours))
    if isinstance(theirs, Exception):
        return Verdict(kind="read by us alone", detail=re.sub(r"\s+", " ", str(theirs))[:200])
    types = spark.read.parquet(str(folder)).schema.simpleString()
    our_types, table = ours
    # A column of only nulls is `void` here; Spark names the physical type instead.
    if types != our_types and types != our_types.replace(":void", ":int"):
        return Verdict(kind="different", detail=f"{our_types} where Spark has {types}")
    for name, column, other in zip(table.column_names, table.columns, theirs.columns, strict=True):
        if _text(flat(column.cast(other.type))) != _text(flat(other)):
            return Verdict(kind="different", detail=f"values of {name!r}")
    return Verdict(kind="equal")


def _tried(read: Callable[[], T], errors: tuple[type[Exception], ...]) -> T | Exception:
    try:
        return read()
    except errors as error:
        return error


def _read(folder: Path) -> tuple[str, pa.Table]:
    inventory = _inventory(folder)
    schema = spark_schema(wire_columns(inventory.data_schema))
    return schema.simpleString(), read_in_full(str(folder), inventory, arrow_schema(schema))


def read_in_full(
    location: str, inventory: Inventory, columns: pa.Schema, format: str = "parquet"
) -> pa.Table:
    """Return the rows of a table without partitions, as a task reads them."""
    spec = ReadSpec(
        table="t",
        location=location,
        data=columns,
        hidden=pa.schema([]),
        partition=pa.schema([]),
        output=tuple(columns.names),
        format=format,
    )
    batches = read_group(spec, _splits(inventory.files), None)
    return pa.Table.from_batches(batches, spec.output_schema)


def _inventory(folder: Path) -> Inventory:
    # Arrow aborts the process on some damaged footers, so another process reads them.
    if any(b"encrypt" in path.name.encode() for path in folder.iterdir()):
        return take_inventory(Look(location=str(folder)))
    return take_inline(str(folder))


def _splits(files: pa.Table) -> pa.RecordBatch:
    columns: dict[str, Any] = {
        "path": files["path"],
        "start": pa.array([0] * len(files), pa.int64()),
        "length": files["size_bytes"],
        "size_bytes": files["size_bytes"],
        "mtime_ns": files["mtime_ns"],
        "row_count": files["row_count"],
        "partition": files["partition"],
    }
    return pa.table(columns).combine_chunks().to_batches()[0]


def cells(column: pa.ChunkedArray) -> str:
    """Return a column as text that differs wherever values do."""
    return _text(flat(column))


def _text(values: pa.Array) -> str:
    """Return values as text, so that NaN equals NaN, 0.0 differs from -0.0, and any year works."""
    if pt.is_struct(values.type):
        parts = [values.is_valid(), *values.flatten()]
    elif pt.is_map(values.type):
        entries = pa.list_(pa.struct([values.type.key_field, values.type.item_field]))
        return _text(values.cast(entries))
    elif pt.is_list(values.type):
        parts = [pc.list_value_length(values), values.flatten()]
    else:
        return str(values.to_string(window=_EVERYTHING))
    return "".join(map(_text, parts))
