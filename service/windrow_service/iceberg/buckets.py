"""Which partitions by buckets can match a filter: those of the values that it names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow_core.files.file_fields import FIELD_ID
from windrow_service.planner.pruning.expressions import (
    And,
    Comparison,
    Expression,
    In,
    IsNull,
    Or,
    Scalar,
)

if TYPE_CHECKING:
    from windrow_service.iceberg.manifests import ManifestTask

Bools = npt.NDArray[np.bool_]

_BUCKET = re.compile(r"bucket\[([1-9][0-9]{0,8})\]")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_MAX_INT = 0x7FFFFFFF


def matches(task: ManifestTask, keys: Sequence[str], expression: Expression) -> Bools | None:
    """Return which partitions may have rows for which a filter is TRUE, by their buckets.

    Args:
        task: The manifest that has files of the partitions.
        keys: The partitions: a spec, a colon, and values in JSON.
        expression: The filter.

    Returns:
        One flag for each partition; None if no column has buckets.
    """
    columns = {int(field.metadata[FIELD_ID]): field for field in task.columns}
    counts = [_BUCKET.fullmatch(field.transform) for field in task.spec]
    places = {
        columns[field.source_id].name: (at, int(count[1]))
        for at, (field, count) in enumerate(zip(task.spec, counts, strict=True))
        if count and field.source_id in columns
    }
    if not places:
        return None
    values = [json.loads(f"[{key.partition(':')[2]}]") for key in keys]
    buckets = {
        name: (
            np.array([-1 if one[at] is None else one[at] for one in values], np.int64),
            count,
            task.columns.field(name).type,
        )
        for name, (at, count) in places.items()
    }
    return _may_be_true(expression, buckets, len(keys))


def _may_be_true(
    node: Expression,
    buckets: Mapping[str, tuple[npt.NDArray[np.int64], int, pa.DataType]],
    count: int,
) -> Bools:
    if isinstance(node, (And, Or)):
        join = np.logical_and if isinstance(node, And) else np.logical_or
        sides = [_may_be_true(side, buckets, count) for side in node.args]
        return np.asarray(join.reduce(sides))
    literals: Sequence[Scalar] = ()
    if isinstance(node, Comparison) and node.op == "eq" and node.value is not None:
        literals = (node.value,)
    elif isinstance(node, In):
        literals = node.values
    if isinstance(node, (Comparison, In, IsNull)) and node.column in buckets:
        numbers, bucket_count, type_ = buckets[node.column]
        if isinstance(node, IsNull):
            return numbers < 0
        if literals:
            return np.isin(numbers, [_hash(one, type_) % bucket_count for one in literals])
    return np.ones(count, np.bool_)


def _hash(value: Scalar, type_: pa.DataType) -> int:
    """Return Iceberg's hash of a value, without its sign."""
    # Where there are tables with buckets, PyIceberg is installed, which needs it.
    import mmh3

    number: int = mmh3.hash(_bytes(value, type_))
    return number & _MAX_INT


def _bytes(value: Scalar, type_: pa.DataType) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    if isinstance(value, Decimal):
        numerator, denominator = value.as_integer_ratio()
        number: int = numerator * 10**type_.scale // denominator
        return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=timezone.utc)
        return _long((moment - _EPOCH) // _MICROSECOND)
    if isinstance(value, date):
        return _long(value.toordinal() - _EPOCH.toordinal())
    return _long(int(value))


def _long(number: int) -> bytes:
    return number.to_bytes(8, "little", signed=True)
