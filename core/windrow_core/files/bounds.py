"""Column bounds from Parquet footers: turns raw statistics of row groups into bounds of files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files.schema import leaf_count
from windrow_core.files.types import has_order, stored_as

_NS_PER_UNIT = {"milliseconds": 1_000_000, "microseconds": 1_000, "nanoseconds": 1}
_LAST_CHARACTER = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class BoundedColumn:
    """A top-level column whose statistics can be used.

    Attributes:
        name: Name as the file spells it.
        type: The type that a table has for the column.
        leaf: Index of its Parquet column in the file.
        unsigned_bits: 32 or 64 where the raw values are unsigned integers of that width.
        unit_ns: Length of one raw unit of a time, in nanoseconds; else 0.
        required: Whether the column cannot hold null.
    """

    name: str
    type: pa.DataType
    leaf: int
    unsigned_bits: int
    unit_ns: int
    required: bool


def bounded_columns(parquet: Any, schema: pa.Schema) -> list[BoundedColumn]:
    """Return the columns of a file whose statistics follow the order of their type.

    Args:
        parquet: A `pyarrow.parquet.ParquetSchema`.
        schema: What `file_schema` returns for it.
    """
    columns = []
    leaf = 0
    for field in schema:
        column = parquet.column(leaf)
        # Writers disagree on the order of INT96 and of 16-bit floats.
        is_ordered = has_order(field.type) and column.physical_type != "INT96"
        if is_ordered and column.logical_type.type != "FLOAT16":
            columns.append(_bounded_column(field, leaf, column))
        leaf += leaf_count(field.type)
    return columns


def _bounded_column(field: pa.Field, leaf: int, column: Any) -> BoundedColumn:
    logical = json.loads(column.logical_type.to_json())
    unsigned_bits = 0
    if logical.get("Type") == "Int" and not logical["isSigned"]:
        unsigned_bits = 64 if column.physical_type == "INT64" else 32
    unit_ns = _NS_PER_UNIT.get(logical.get("timeUnit"), 0)
    return BoundedColumn(
        field.name, field.type, leaf, unsigned_bits, unit_ns, column.max_definition_level == 0
    )


def typed_bounds(column: BoundedColumn, raw: Sequence[Any], *, upper: bool) -> pa.Array:
    """Turn raw bounds into values of the column's type, never narrower; null where unknown.

    Bounds that are not values of the type, as a faulty writer may leave them, count as unknown.

    Args:
        column: The column that has these bounds.
        raw: Bounds as pyarrow returns them: bool, int, float or bytes, None where unknown.
        upper: Whether they are upper bounds.
    """
    try:
        return _typed(column, raw, upper=upper)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.nulls(len(raw), column.type)


def _typed(column: BoundedColumn, raw: Sequence[Any], *, upper: bool) -> pa.Array:
    type_ = column.type
    if pt.is_decimal(type_):
        return _decimals([_unscaled(value, column) for value in raw], type_)
    if stored_as(type_) == pa.int64() != type_:
        return _times(raw, column, upper=upper)
    if pt.is_floating(type_):
        # from_pandas: a bound that is NaN says nothing about the other values.
        return pa.array(raw, type_, from_pandas=True)
    if pt.is_string(type_):
        return _strings(raw, upper=upper)
    if column.unsigned_bits:
        mask = 2**column.unsigned_bits - 1
        raw = [None if value is None else value & mask for value in raw]
    return pa.array(raw, stored_as(type_)).cast(type_)


def _unscaled(value: int | bytes | None, column: BoundedColumn) -> int | None:
    if isinstance(value, bytes):
        return int.from_bytes(value, "big", signed=True)
    if value is not None and column.unsigned_bits:
        return value % (1 << column.unsigned_bits)
    return value


def _decimals(numbers: Sequence[int | None], type_: pa.DataType) -> pa.Array:
    limit = 10**type_.precision
    is_known = np.array([value is not None and -limit < value < limit for value in numbers], bool)
    values = b"".join(
        (value if is_value and value is not None else 0).to_bytes(16, "little", signed=True)
        for value, is_value in zip(numbers, is_known.tolist(), strict=True)
    )
    validity = pa.py_buffer(np.packbits(is_known, bitorder="little").tobytes())
    return pa.Array.from_buffers(type_, len(numbers), [validity, pa.py_buffer(values)])


def _times(raw: Sequence[int | None], column: BoundedColumn, *, upper: bool) -> pa.Array:
    def to_us(value: int) -> int | None:
        ns = value * column.unit_ns
        us = -(-ns // 1_000) if upper else ns // 1_000
        return us if -(2**63) <= us < 2**63 else None

    return pa.array([None if value is None else to_us(value) for value in raw], pa.int64()).cast(
        column.type
    )


def _strings(raw: Sequence[bytes | None], *, upper: bool) -> pa.Array:
    values = pa.array(raw, pa.binary())
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        # A writer cut a bound in the middle of a character.
        return pa.array([_text(value, upper=upper) for value in raw], pa.string())


def _text(value: bytes | None, *, upper: bool) -> str | None:
    """Return text that bounds values no more tightly than `value`; None if there is none."""
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError as error:
        text = value[: error.start].decode() if value is not None else ""
    if upper:
        text += _LAST_CHARACTER
    return text if not upper or (value is not None and text.encode() > value) else None


def in_order(lower: pa.Array, upper: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return n bounds without those that contradict each other, and a mask of these.

    A lower bound above the upper one means that the writer compared the values wrongly.

    Args:
        lower: n lower bounds, null where unknown.
        upper: n upper bounds, null where unknown.
    """
    contradicts = pc.fill_null(pc.greater(lower, upper), False)
    nothing = pa.scalar(None, lower.type)
    return (
        pc.if_else(contradicts, nothing, lower),
        pc.if_else(contradicts, nothing, upper),
        contradicts,
    )


def possible_null_counts(
    lower: pa.Array, upper: pa.Array, null_counts: pa.Array, row_counts: pa.Array
) -> pa.Array:
    """Return n counts of nulls, null where impossible, or if they leave no value for a bound.

    Args:
        lower: n lower bounds, null where unknown.
        upper: n upper bounds, null where unknown.
        null_counts: n counts (int64), null where unknown.
        row_counts: n numbers of rows (int64), null where unknown.
    """
    has_bound = pc.or_(pc.is_valid(lower), pc.is_valid(upper))
    # Without rows there are no values, whatever the bounds.
    has_bound = pc.and_(has_bound, pc.fill_null(pc.greater(row_counts, 0), True))
    most = pc.subtract(row_counts, has_bound.cast(pa.int64()))
    possible = pc.and_kleene(pc.greater_equal(null_counts, 0), pc.less_equal(null_counts, most))
    return pc.if_else(pc.fill_null(possible, True), null_counts, pa.scalar(None, pa.int64()))


def merge_row_groups(
    lower: pa.Array,
    upper: pa.Array,
    null_counts: pa.Array,
    row_counts: npt.NDArray[np.int64],
    files: npt.NDArray[np.int64],
    file_count: int,
) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Merge the statistics of m row groups into those of n files.

    A bound that is unknown in one row group with values is unknown for the file; row groups
    whose values are all null say nothing about bounds. A file without row groups has no nulls.
    Impossible counts of nulls are unknown, and so is one that leaves no values between bounds.

    Args:
        lower: m lower bounds, null where unknown; see `in_order`.
        upper: m upper bounds, null where unknown.
        null_counts: m counts (int64), null where unknown.
        row_counts: m counts.
        files: m numbers of the files that the row groups belong to, ascending.
        file_count: n.

    Returns:
        Lower bounds, upper bounds and null counts of n files.
    """
    empty = row_counts == 0
    null_counts = pc.if_else(pa.array(empty), pa.scalar(0, pa.int64()), null_counts)
    rows = pa.array(row_counts)
    null_counts = possible_null_counts(lower, upper, null_counts, rows)
    all_null = pc.fill_null(pc.equal(null_counts, rows), False)
    unknown = pc.and_(pc.invert(all_null), pc.or_(pc.is_null(lower), pc.is_null(upper)))
    nothing = pa.scalar(None, lower.type)
    is_hidden = pc.or_(all_null, unknown)
    lower, upper = pc.if_else(is_hidden, nothing, lower), pc.if_else(is_hidden, nothing, upper)
    if len(files) == file_count and np.array_equal(files, np.arange(file_count)):
        return lower, upper, null_counts
    groups = pa.table(
        {"file": files, "lower": lower, "upper": upper, "nulls": null_counts, "unknown": unknown}
    )
    by_file = groups.group_by("file", use_threads=False).aggregate(
        [
            ("lower", "min"),
            ("upper", "max"),
            ("nulls", "sum", pc.ScalarAggregateOptions(skip_nulls=False)),
            ("unknown", "any"),
        ]
    )
    rows = pc.index_in(pa.array(np.arange(file_count)), by_file["file"])
    by_file = by_file.take(rows).combine_chunks()
    is_hidden = pc.fill_null(by_file["unknown_any"].combine_chunks(), True)
    counts = by_file["nulls_sum"].combine_chunks()
    return (
        pc.if_else(is_hidden, nothing, by_file["lower_min"].combine_chunks()),
        pc.if_else(is_hidden, nothing, by_file["upper_max"].combine_chunks()),
        pc.if_else(pc.is_null(rows), pa.scalar(0, pa.int64()), counts),
    )


def fit_bounds(bounds: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """Return bounds of a file's column in the wider type of the table; null if they do not fit."""
    try:
        return bounds.cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.chunked_array([pa.nulls(len(bounds), type_)])
