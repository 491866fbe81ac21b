"""Order of rows as Spark sorts them: nulls where declared, NaN largest, -0.0 equal to 0.0.

Sort columns are first turned into *keys*: columns without nulls or NaN whose plain ascending
order is the order wanted. Only text, bytes and decimals keep a direction of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow.spark.executor.spec import SortKey

Bools = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Keys:
    """The sort keys of n rows, by falling importance.

    Attributes:
        columns: Arrays of n values without nulls or NaN.
        descending: Whether large values of a column come first.
    """

    columns: tuple[pa.Array, ...]
    descending: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    def slice(self, start: int, length: int) -> Keys:
        """Return the keys of the rows from `start`."""
        columns = tuple(column.slice(start, length) for column in self.columns)
        return Keys(columns=columns, descending=self.descending)

    def at(self, row: int) -> KeyAt:
        """Return the key of one row, to be compared with keys of other tables."""
        return KeyAt(tuple(column[row].as_py() for column in self.columns), self.descending)

    def falls(self) -> Bools:
        """Tell of each row but the first whether it belongs before the row above it.

        Returns:
            n - 1 booleans.
        """
        count = max(len(self) - 1, 0)
        falls, tied = np.zeros(count, bool), np.ones(count, bool)
        for column, descending in zip(self.columns, self.descending, strict=True):
            above, below = column.slice(0, count), column.slice(1)
            wrong = pc.less(above, below) if descending else pc.greater(above, below)
            falls |= tied & np.asarray(wrong)
            tied &= np.asarray(pc.equal(above, below))
        return falls

    def order(self) -> pa.Array:
        """Return the row numbers in sorted order; rows that tie keep their order."""
        columns: dict[str, pa.Array] = {}
        sort_keys = []
        for column, descending in zip(self.columns, self.descending, strict=True):
            # As a rule the columns that set nulls apart say the same for every row.
            if not pt.is_boolean(column.type) or 0 < column.true_count < len(column):
                sort_keys.append((str(len(columns)), "descending" if descending else "ascending"))
                columns[str(len(columns))] = column
        if not columns:
            return pa.array(np.arange(len(self)))
        return pc.sort_indices(pa.table(columns), sort_keys=sort_keys)


@dataclass(frozen=True, slots=True, eq=False)
class KeyAt:
    """The key of one row.

    Attributes:
        values: One value for each key column.
        descending: Whether large values of a column come first.
    """

    values: tuple[Any, ...]
    descending: tuple[bool, ...]

    def __lt__(self, other: KeyAt) -> bool:
        for mine, theirs, descending in zip(
            self.values, other.values, self.descending, strict=True
        ):
            if mine != theirs:
                return bool(mine > theirs if descending else mine < theirs)
        return False


def joined(keys: Sequence[Keys]) -> Keys:
    """Return the keys of tables that are put one below the other."""
    columns = tuple(
        pa.concat_arrays(parts) for parts in zip(*(k.columns for k in keys), strict=True)
    )
    return Keys(columns=columns, descending=keys[0].descending)


def is_sortable(type_: pa.DataType) -> bool:
    """Tell whether columns of a type can be sort columns."""
    return not pt.is_nested(type_)


def keys_of(table: pa.Table, sort: Sequence[SortKey]) -> Keys:
    """Return the sort keys of a table's rows."""
    columns: list[pa.Array] = []
    descending: list[bool] = []
    for key in sort:
        column = table.column(key.name)
        values = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        present = values.is_valid()
        columns.append(present if key.nulls_first else pc.invert(present))
        ordered, is_plain = _ordered(values)
        if is_plain and key.descending:
            # ~x falls as x rises, and unlike -x never overflows.
            ordered = pc.bit_wise_not(ordered)
        columns.append(ordered)
        descending += [False, key.descending and not is_plain]
    return Keys(columns=tuple(columns), descending=tuple(descending))


def _ordered(values: pa.Array) -> tuple[pa.Array, bool]:
    """Return values without nulls that order as Spark orders them, and whether as integers."""
    type_ = values.type
    if pt.is_floating(type_):
        return _float_order(values), True
    if pt.is_boolean(type_) or pt.is_integer(type_):
        return pc.fill_null(values.cast(pa.int64()), 0), True
    if pt.is_date32(type_):
        return pc.fill_null(values.cast(pa.int32()), 0), True
    if pt.is_timestamp(type_):
        return pc.fill_null(values.cast(pa.int64()), 0), True
    if pt.is_null(type_):
        return pa.array(np.zeros(len(values), np.int64)), True
    if values.null_count:
        values = values.fill_null(pa.scalar(0 if pt.is_decimal(type_) else b"", type_))
    return values, False


def _float_order(values: pa.Array) -> pa.Array:
    """Map doubles to integers of the same order, with NaN above all and one zero."""
    doubles = np.asarray(pc.fill_null(values.cast(pa.float64()), 0.0)) + 0.0
    doubles = np.where(np.isnan(doubles), np.nan, doubles)
    bits = doubles.view(np.int64)
    return pa.array(np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits))
