"""Convert key values from JSON to columns of their Spark types."""

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
# File systems do not allow longer folder names, and hashing takes a step for every four bytes.
_MAX_TEXT_BYTES = 4096


def column_of(name: str, type_: pa.DataType, values: Sequence[Any]) -> pa.Array:
    """Return the values of one column.

    Args:
        name: Name of the column, for errors.
        type_: Type of the result; dates, times and decimals are given as text.
        values: None stands for NULL.
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
                f"key {at:,}: {repr(value)[:_SHOWN]} is not a value of partition column {name!r}, "
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
    if pt.is_timestamp(type_):
        return _times(texts, type_)
    if pt.is_binary(type_) or pt.is_temporal(type_):
        return texts.cast(type_)
    raise TypeError(type_)


def _times(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    try:
        return texts.cast(type_)
    except pa.ArrowInvalid:
        if type_.tz is None:
            raise
    # The instant of a local time depends on the session that wrote it, so these stay text, a type
    # for which the hash is then reported as unknown.
    texts.cast(pa.timestamp(type_.unit))
    return texts.cast(pa.large_string())


def _only(values: Sequence[Any], kinds: set[type], kind: type) -> Sequence[Any]:
    if not kinds <= {kind}:
        raise TypeError(kinds)
    return values


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError(value)
    number = float(value)
    if isinstance(value, str) and math.isfinite(number):
        # Text is only for values that JSON has no number for.
        raise TypeError(value)
    return number


def _digits(value: Any) -> str:
    if isinstance(value, bool):
        raise TypeError(value)
    return str(value)


def numbered(columns: Sequence[pa.Array], rows: int) -> tuple[Ints, int]:
    """Number rows from 0, giving equal rows equal numbers; NULL equals NULL.

    Args:
        columns: Each with `rows` values; with no columns, all rows are equal.
        rows: Number of rows.

    Returns:
        The number of each row, and how many distinct numbers there are.

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
