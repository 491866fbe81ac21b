"""Old dates and times, for which Spark may ask in which calendar a file was written.

It asks as soon as it decodes one, and of a pack it decodes rows that a query does not want. So a file
stays by itself if the answer is not the same for all dates and times that a pack would have of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files.arrays import flat
from windrow_core.files.calendars import (
    FIRST_GREGORIAN_DAY,
    SETTLED_US,
    VERSION,
    has_calendar,
    is_certain,
)
from windrow_tables.merging.footers import INT32, INT64, INT96, Element, Head
from windrow_tables.merging.sources import UnfitFileError

_DATE, _TIMESTAMP = 6, 8
_DEPRECATED_DATE, _DEPRECATED_MILLIS, _DEPRECATED_MICROS = 6, 9, 10
_SETTLED_JULIAN_DAY = 2_415_021  # 1900-01-01
_INT96 = np.dtype([("ns", "<i8"), ("julian_day", "<i4")])


def are_old(partition: pa.StructArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return for each file whether it has an old date or time among its partition values.

    Args:
        partition: The partition values of n files.
    """
    are = np.zeros(len(partition), np.bool_)
    for values in partition.flatten():
        if not has_calendar(values.type):
            continue
        if pt.is_date(values.type):
            is_old = pc.less(values.cast(pa.date32()).cast(pa.int32()), FIRST_GREGORIAN_DAY)
        else:
            times = values.cast(pa.timestamp("us", values.type.tz), safe=False)
            is_old = pc.less(times.cast(pa.int64()), SETTLED_US)
        are |= np.asarray(is_old.fill_null(False))
    return are


def check_calendar(
    keys: Mapping[bytes, bytes], head: Head, rows: pa.Table, *, has_old_partition: bool
) -> None:
    """Check that Spark neither refuses nor moves dates and times of a file because a pack has them.

    Args:
        keys: The file's metadata, which the pack has too.
        head: The head of its footer.
        rows: Its rows, as they are stored.
        has_old_partition: Whether it has old partition values, which must never be moved.

    Raises:
        UnfitFileError: Spark might.
    """
    if has_old_partition and not is_certain(keys):
        raise UnfitFileError(
            "its partition has an old date or time, and its own may be in another calendar"
        )
    # Spark never refuses the files of its own versions.
    if VERSION not in keys and any(
        _has_old(leaf, values) for (leaf, _), values in zip(head.leaves, _leaves(rows), strict=True)
    ):
        raise UnfitFileError("it has old dates or times, and does not say in which calendar")


def _leaves(rows: pa.Table) -> Iterator[pa.Array]:
    waiting = [flat(column) for column in reversed(rows.columns)]
    while waiting:
        one = waiting.pop()
        if pt.is_struct(one.type):
            waiting += reversed(one.flatten())
        elif pt.is_list(one.type):
            waiting.append(one.flatten())
        else:
            yield one


def _has_old(leaf: Element, values: pa.Array) -> bool:
    if leaf.type == INT32 and (leaf.logical == _DATE or leaf.converted == _DEPRECATED_DATE):
        return _is_any_below(values, FIRST_GREGORIAN_DAY)
    if leaf.type == INT64 and leaf.converted == _DEPRECATED_MILLIS:
        return _is_any_below(values, SETTLED_US // 1_000)
    # Of nanoseconds, which have no deprecated type, Spark reads none.
    if leaf.type == INT64 and (leaf.logical == _TIMESTAMP or leaf.converted == _DEPRECATED_MICROS):
        return _is_any_below(values, SETTLED_US)
    if leaf.type == INT96:
        times = values.drop_null()
        stamps = np.frombuffer(times.buffers()[1] or b"", _INT96)
        days = stamps["julian_day"][times.offset :][: len(times)]
        return bool((days < _SETTLED_JULIAN_DAY).any())
    return False


def _is_any_below(values: pa.Array, limit: int) -> bool:
    least = pc.min(values).as_py()
    return least is not None and bool(least < limit)
