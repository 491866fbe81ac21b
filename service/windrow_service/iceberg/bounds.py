"""Iceberg's bounds and counts of columns, by field id, as typed columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.bounds import BoundedColumn, typed_bounds
from windrow_core.files.types import stored_as

_MICROSECOND_NS = 1_000
# Types that columns may have been widened from.
_NARROWER = {pa.int64(): pa.int32(), pa.float64(): pa.float32()}


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of n files by field id, for example of nulls or of NaN.

    Attributes:
        file_count: n.
        ids: m field ids, ascending.
        rows: The file of each of the m counts.
        values: The m counts.
    """

    file_count: int
    ids: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]

    @classmethod
    def of(cls, pairs: Sequence[bytes | None]) -> Counts:
        """Read arrays of field ids and counts in turn."""
        lengths = np.array([0 if one is None else len(one) // 16 for one in pairs], np.int64)
        flat = np.frombuffer(b"".join(one for one in pairs if one is not None), np.int64)
        rows = np.repeat(np.arange(len(pairs)), lengths)
        order = np.argsort(flat[0::2], kind="stable")
        return cls(len(pairs), flat[0::2][order], rows[order], flat[1::2][order])

    def column(self, field_id: int) -> pa.Array:
        """Return the counts of one column; null where they are unknown."""
        start, end = np.searchsorted(self.ids, [field_id, field_id + 1])
        values = np.zeros(self.file_count, np.int64)
        unknown = np.ones(self.file_count, np.bool_)
        values[self.rows[start:end]] = self.values[start:end]
        unknown[self.rows[start:end]] = False
        return pa.array(values, mask=unknown)


def bounds_of(
    by_file: Sequence[Mapping[int, bytes] | None], field_id: int, type_: pa.DataType, *, upper: bool
) -> pa.Array:
    """Return one bound of a column for each file, never narrower; null where it is unknown.

    Args:
        by_file: Bounds of each file by field id, as Iceberg serializes single values. Those of
            a column whose type was widened have the length of the narrower type.
        field_id: Field id of the column.
        type_: Type of the column.
        upper: Whether the bounds are upper bounds.
    """
    raw = [None if one is None else one.get(field_id) for one in by_file]
    return typed_values(raw, type_, upper=upper)


def typed_values(raw: Sequence[bytes | None], type_: pa.DataType, *, upper: bool) -> pa.Array:
    """Return serialized single values as an array; null where they are not of the type."""
    if pt.is_string(type_) or pt.is_binary(type_) or pt.is_decimal(type_):
        column = BoundedColumn("", type_, 0, 0, _MICROSECOND_NS, False)
        if pt.is_decimal(type_):
            raw = [one if one is not None and 0 < len(one) <= 16 else None for one in raw]
        return typed_bounds(column, raw, upper=upper)
    lengths = np.array([0 if one is None else len(one) for one in raw], np.int64)
    number_type = stored_as(type_)
    values = np.zeros(len(raw), number_type.to_pandas_dtype())
    is_value = np.zeros(len(raw), np.bool_)
    for length, form in _forms(type_):
        rows = np.flatnonzero(lengths == length)
        if len(rows):
            content = b"".join(raw[row] or b"" for row in rows.tolist())
            values[rows] = np.frombuffer(content, form)
            is_value[rows] = True
    if pt.is_floating(type_):
        # A bound of NaN says nothing about the other values.
        is_value &= ~np.isnan(values)
    return pa.array(values, number_type, mask=~is_value).cast(type_)


def _forms(type_: pa.DataType) -> list[tuple[int, np.dtype[np.generic]]]:
    """Return the lengths that values of a type may have, and how they are stored."""
    forms = [stored_as(type_), *([_NARROWER[type_]] if type_ in _NARROWER else [])]
    numbers = [np.dtype(form.to_pandas_dtype()).newbyteorder("<") for form in forms]
    return [(number.itemsize, number) for number in numbers]
