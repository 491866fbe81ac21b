"""The values of columns, or bounds of them, from the partitions of Iceberg's files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files.file_fields import FIELD_ID
from windrow_core.files.partition_values import is_partition_type
from windrow_core.files.types import stored_as
from windrow_service.iceberg.bounds import typed_values
from windrow_service.iceberg.metadata import PartitionField

_TRUNCATE = re.compile(r"truncate\[([0-9]{1,9})\]")
# NumPy's letter for each unit, and a limit whose microseconds surely fit 64 bits.
_UNITS = {"year": ("Y", 200_000), "month": ("M", 10**6), "day": ("D", 10**8), "hour": ("h", 10**9)}


def identity_columns(
    specs: Sequence[Sequence[PartitionField]], columns: pa.Schema
) -> tuple[str, ...]:
    """Return the columns by whose own values each of the specs partitions."""
    if not specs:
        return ()
    sources = set.intersection(
        *({field.source_id for field in spec if field.transform == "identity"} for spec in specs)
    )
    return tuple(
        column.name
        for column in columns
        if int(column.metadata[FIELD_ID]) in sources and is_partition_type(column.type)
    )


def identity_values(raw: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Return the values that manifests store for a column that is partitioned by its own values."""
    if pt.is_decimal(type_):
        values = typed_values(raw, type_, upper=False)
        if values.null_count != sum(one is None for one in raw):
            raise ValueError("a partition value is not a decimal")
        return values
    return pa.array(raw, stored_as(type_)).cast(type_)


def partition_keys(spec_id: int, values: Sequence[Sequence[Any]], count: int) -> list[str]:
    """Return texts that are equal for files of the same spec with the same values."""
    if not values:
        return [f"{spec_id}:"] * count
    return [f"{spec_id}:{one!r}" for one in zip(*values, strict=True)]


def bounds_by_partition(
    field: PartitionField, raw: Sequence[Any], type_: pa.DataType
) -> tuple[pa.Array, pa.Array]:
    """Return the least and the greatest value that a column may have; null where unknown."""
    unknown = pa.nulls(len(raw), type_)
    try:
        if field.transform == "identity":
            values = identity_values(raw, type_)
            return values, values
        if field.transform in _UNITS and (pt.is_timestamp(type_) or pt.is_date(type_)):
            return _times(raw, *_UNITS[field.transform], type_)
        width = _TRUNCATE.fullmatch(field.transform)
        if width and pt.is_string(type_):
            return pa.array(raw, type_), unknown
        if width and pt.is_integer(type_):
            least = pa.array(raw, type_)
            return least, pc.add_checked(least, pa.scalar(int(width[1]) - 1, type_))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    return unknown, unknown


def _times(
    raw: Sequence[Any], unit: str, most: int, type_: pa.DataType
) -> tuple[pa.Array, pa.Array]:
    # Older writers rounded times before 1970 up.
    is_safe = np.array([isinstance(one, int) and 0 < one < most for one in raw], np.bool_)
    units = np.array([one if ok else 0 for one, ok in zip(raw, is_safe, strict=True)], np.int64)
    step = "D" if pt.is_date(type_) else "us"
    first, after = (
        one.astype(f"datetime64[{unit}]").astype(f"datetime64[{step}]").astype(np.int64)
        for one in (units, units + 1)
    )
    least, greatest = (
        pa.array(one, mask=~is_safe).cast(stored_as(type_)).cast(type_)
        for one in (first, after - 1)
    )
    return least, greatest
