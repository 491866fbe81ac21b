"""Values of keys as they travel in JSON, turned into columns of their Spark types."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_service.planner.splits import Ints
from windrow_service.planner.writes.errors import InvalidKeysError

_SHOWN = 60
# No file system has folders of longer names, and hashing takes a step for each four bytes.
_MAX_TEXT_BYTES = 4096


def column_of(name: str, type_: pa.DataType, values: Sequence[Any]) -> pa.Array:
    """Return the values of one column.

    Args:
        name: Of the column, for errors.
        type_: What they are to become; dates, times and decimals come as text.
        values: None is NULL.

    Raises:
        InvalidKeysError: A value is none of this type; the first such is named.
    """
    try:
        return _converted(type_, values)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        pass
    for at, value in enumerate(values):
        try:
            _converted(type_, [value])
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            raise InvalidKeysError(
                f"key {at:,}: {repr(value)[:_SHOWN]} is no value of partition column {name!r}, "
                f"which is {type_}"
            ) from None
    raise InvalidKeysError(f"the values of column {name!r} are not all {type_}")


def _converted(type_: pa.DataType, values: Sequence[Any]) -> pa.Array:
    kinds = {type(value) for value in values} - {type(None)}
    if pt.is_boolean(type_):
        return pa.array(_only(values, kinds, bool), type_)
    if pt.is_signed_integer(type_):
        return pa.array(_only(values, kinds, int), type_)
    if pt.is_floating(type_):
        numbers = [None if value is None else _number(value) for value in values]
        return pa.array(numbers, pa.float64(), from_pandas=False).cast(type_)
    if pt.is_decimal128(type_):
        texts = [None if value is None else _digits(value) for value in values]
        return pa.array(texts, pa.string()).cast(type_)
    texts = pa.array(_only(values, kinds, str), pa.string())
    if (pc.max(pc.binary_length(texts)).as_py() or 0) > _MAX_TEXT_BYTES:
        raise ValueError(texts)
    if pt.is_string(type_):
        return texts
    if pt.is_date32(type_):
        return texts.cast(type_)
    if pt.is_timestamp(type_):
        return _times(texts, type_)
    if pt.is_binary(type_):
        return pc.cast(texts, type_)
    raise TypeError(type_)


def _times(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    try:
        return texts.cast(type_)
    except pa.ArrowInvalid:
        if type_.tz is None:
            raise
    # Which moments local times are depends on the session that wrote them: they stay text, of a
    # type that Spark's hash is not known of.
    texts.cast(pa.timestamp(type_.unit))
    return texts.cast(pa.large_string())


def _only(values: Sequence[Any], kinds: set[type], wanted: type) -> Sequence[Any]:
    if not kinds <= {wanted}:
        raise TypeError(kinds)
    return values


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError(value)
    number = float(value)
    if isinstance(value, str) and math.isfinite(number):
        # Text is for what JSON has no number for.
        raise TypeError(value)
    return number


def _digits(value: Any) -> str:
    if isinstance(value, bool):
        raise TypeError(value)
    return str(value)


def numbered(columns: Sequence[pa.Array], rows: int) -> tuple[Ints, int]:
    """Give equal rows equal numbers from 0 on; NULL equals NULL.

    Args:
        columns: Of `rows` values each; without any, all rows are equal.
        rows: How many.

    Returns:
        The number of each row, and how many there are.

    Complexity: O(n log n) per column.
    """
    numbers: Ints = np.zeros(rows, np.int64)
    count = min(rows, 1)
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        code = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        distinct, numbers = np.unique(numbers * len(encoded.dictionary) + code, return_inverse=True)
        count = len(distinct)
    return numbers, count
