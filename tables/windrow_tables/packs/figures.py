"""Figures of the files in a pack, for aggregates that then need no file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.arrays import flat
from windrow_core.files.calendars import FIRST_GREGORIAN_DAY
from windrow_core.files.figures import FIGURE, SPARK_TYPE

# Unscaled, longer decimals are no 64-bit integers.
_MOST_DIGITS = 18
# Sums of absolute values below are exact.
_MOST = float(2**62)
_TYPES = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.date32(): "date",
}
# The first number that a type does not have; those of a file may be beyond it.
_LIMITS = {"tinyint": 2**7, "smallint": 2**15, "int": 2**31, "bigint": 2**63, "date": 2**31}


def columns_with_figures(schema: pa.Schema) -> dict[int, pa.Field]:
    """Return the columns that have figures: for the position of each a field without values.

    Args:
        schema: The columns of a file, as Arrow sees them.
    """
    names = [name.lower() for name in schema.names]
    return {
        at: pa.field(field.name, FIGURE, metadata={SPARK_TYPE: type_})
        for at, field in enumerate(schema)
        if (type_ := _spark_type(field.type)) and names.count(names[at]) == 1
    }


def _spark_type(type_: pa.DataType) -> str | None:
    if pt.is_decimal(type_):
        has_digits = type_.precision <= _MOST_DIGITS and 0 <= type_.scale <= type_.precision
        return f"decimal({type_.precision},{type_.scale})" if has_digits else None
    return _TYPES.get(type_)


def figures_of(tables: Sequence[pa.Table], columns: dict[int, pa.Field]) -> pa.Table:
    """Return the figures of the columns of files: a row for each file.

    Args:
        tables: The rows of each file, as they are stored.
        columns: The columns, as `columns_with_figures` returns them.
    """
    counts = np.fromiter(map(len, tables), np.int64, len(tables))
    rows = pa.concat_tables(tables) if tables else None
    figures = [
        pa.nulls(len(tables), FIGURE) if rows is None else _figures(rows.column(at), counts, field)
        for at, field in columns.items()
    ]
    return pa.table(figures, schema=pa.schema(list(columns.values())))


def _figures(column: pa.ChunkedArray, counts: Any, field: pa.Field) -> pa.StructArray:
    raw, type_ = flat(column), field.metadata[SPARK_TYPE].decode()
    try:
        # Of decimals in bytes, the numbers are those without a scale.
        values = raw if pt.is_integer(raw.type) else raw.cast(pa.int64())
    except pa.ArrowInvalid:
        return pa.nulls(len(counts), FIGURE)
    is_valid = np.asarray(values.is_valid())
    numbers = np.asarray(values.fill_null(0), np.int64)
    has_rows = counts > 0
    begins = np.concatenate(([0], np.cumsum(counts)[:-1]))[has_rows]

    def reduced(ufunc: Any, some: Any, empty: int) -> Any:
        of_files = np.full(len(counts), empty, np.int64)
        if len(begins):
            of_files[has_rows] = ufunc.reduceat(some, begins)
        return of_files

    info = np.iinfo(np.int64)
    count = reduced(np.add, is_valid.astype(np.int64), 0)
    least = reduced(np.minimum, np.where(is_valid, numbers, info.max), info.max)
    greatest = reduced(np.maximum, np.where(is_valid, numbers, info.min), info.min)
    total = reduced(np.add, numbers, 0)
    is_empty = count == 0
    largest = np.maximum(np.abs(least.astype(np.float64)), np.abs(greatest.astype(np.float64)))
    is_unknown = ~is_empty & (largest * count >= _MOST)
    limit = _LIMITS.get(type_) or 10 ** int(type_.removeprefix("decimal(").partition(",")[0])
    is_unknown |= ~is_empty & ((greatest >= float(limit)) | (least < -float(limit)))
    if type_ == "date":
        # In which calendar older ones are depends on the reader.
        is_unknown |= ~is_empty & (least < FIRST_GREGORIAN_DAY)
    bounds = (pa.array(one, mask=is_empty) for one in (least, greatest, total))
    return pa.StructArray.from_arrays(
        [pa.array(count), *bounds], fields=list(FIGURE), mask=pa.array(is_unknown)
    )
