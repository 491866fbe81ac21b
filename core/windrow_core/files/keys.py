"""Keys that rows are found by: the column that holds them, also within others, and their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

# A number has many texts, so that only one of them counts.
_INTEGER = "^(0|-?[1-9][0-9]*)$"
_TEXTS = {"decimal": r"^(0|-?[1-9][0-9]*)(\.[0-9]+)?$", "date": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}

# Holds each decimal of up to 38 digits, whatever its scale.
_WIDE = pa.decimal256(76, 38)
_DIGITS = Context(prec=76)


class UnfitKeysError(Exception):
    """Keys cannot be compared with a column; the message says why, and never shows a key."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """Where the keys of a table are.

    Attributes:
        column: The top-level column.
        fields: The fields of structs that lead to the keys.
        type: The type of the keys.
    """

    column: str
    fields: tuple[str, ...]
    type: pa.DataType

    @property
    def is_plain(self) -> bool:
        """Whether the column holds one key in each row, as filters can compare it."""
        return not self.fields and not _is_list(self.type)


def key_column(types: Mapping[str, pa.DataType], path: str) -> KeyColumn:
    """Return the column that a path such as `payload.user.id` leads to.

    A column whose own name is the whole path comes first. Lists on the way are entered.

    Args:
        types: The types of a table's columns.
        path: The path, whose names are matched exactly.

    Raises:
        UnfitKeysError: It leads nowhere, or to values that are no keys.
    """
    names = path.split(".")
    starts = [at for at in range(len(names), 0, -1) if ".".join(names[:at]) in types]
    if not starts:
        raise UnfitKeysError(f"it has no column {names[0]!r}: name one of its columns")
    column, fields = ".".join(names[: starts[0]]), tuple(names[starts[0] :])
    type_ = _value_type(types[column])
    for name in fields:
        at = type_.get_field_index(name) if pt.is_struct(type_) else -1
        if at < 0:
            raise UnfitKeysError(f"{path!r} leads to no field: {name!r} is not in {type_}")
        type_ = _value_type(type_.field(at).type)
    if _kind_of(type_) is None:
        raise UnfitKeysError(
            f"{path!r} is of type {type_}, which keys cannot have (integers, text, decimals, dates "
            "and binary can): give a condition instead"
        )
    top = types[column]
    return KeyColumn(column, fields, type_ if fields or not _is_list(top) else top)


def fitted(keys: pa.Array | pa.ChunkedArray, column: KeyColumn) -> pa.Array:
    """Return distinct keys in the type of a column, ascending; nulls are left out.

    Keys that no value of the column can equal, such as numbers beyond its type, are left out too.

    Raises:
        UnfitKeysError: They are of another kind.
    """
    type_ = _value_type(column.type)
    keys = pc.drop_null(pc.unique(keys))
    if pt.is_null(keys.type):
        keys = keys.cast(type_)
    kind = _kind_of(type_)
    assert kind is not None
    if not (_kind_of(keys.type) in (kind, "text") or (kind, _kind_of(keys.type)) in _WIDENED):
        raise UnfitKeysError(
            f"the keys are {keys.type}, and the column is {type_}: "
            + ("write them as the texts that it holds" if kind == "text" else f"give {kind} keys")
        )
    try:
        keys = _in_type(keys, type_, kind)
    except (pa.ArrowException, ValueError) as error:
        raise UnfitKeysError(f"a key is no value of type {type_}: correct it") from error
    return keys.take(pc.sort_indices(keys))


# Kinds of columns, and other kinds of keys that they are compared with exactly.
_WIDENED = {("decimal", "integer")}


def _kind_of(type_: pa.DataType) -> str | None:
    tests = {
        "integer": pt.is_integer,
        "decimal": pt.is_decimal,
        "date": pt.is_date,
        "text": lambda one: pt.is_string(one) or pt.is_large_string(one) or pt.is_string_view(one),
        "binary": lambda one: (
            pt.is_binary(one) or pt.is_large_binary(one) or pt.is_fixed_size_binary(one)
        ),
    }
    return next((kind for kind, test in tests.items() if test(type_)), None)


def _in_type(keys: pa.Array, type_: pa.DataType, kind: str) -> pa.Array:
    if _kind_of(keys.type) == "text" and kind != "text":
        if kind == "binary":
            raise ValueError("a text is no binary value")
        keys = keys.cast(pa.string())
        wrong = pc.invert(pc.match_substring_regex(keys, _TEXTS.get(kind, _INTEGER)))
        if pc.any(wrong, min_count=0).as_py():
            raise ValueError("a text is no such value")
        if kind == "integer":
            # Longer ones are beyond every type.
            keys = keys.filter(pc.less(pc.binary_length(keys), 39)).cast(pa.decimal128(38, 0))
        elif kind == "decimal":
            keys = keys.cast(_WIDE)
    if kind == "integer":
        keys = keys.cast(pa.decimal128(38, 0))
        low, high = _range(type_)
        keys = keys.filter(pc.and_(pc.greater_equal(keys, low), pc.less_equal(keys, high)))
    elif kind == "decimal":
        keys = _exact(keys.cast(_WIDE), type_)
    return pc.unique(keys.cast(type_))


def _range(type_: pa.DataType) -> tuple[pa.Scalar, pa.Scalar]:
    bits, signed = type_.bit_width, pt.is_signed_integer(type_)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return pa.scalar(low, pa.decimal128(38, 0)), pa.scalar(high, pa.decimal128(38, 0))


def _exact(decimals: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return those decimals that a type can hold, exactly."""
    most = pa.scalar(Decimal(10**type_.precision - 1).scaleb(-type_.scale, _DIGITS), _WIDE)
    fits = pc.less_equal(pc.abs(decimals), most)
    return decimals.filter(
        pc.and_(fits, pc.equal(pc.round(decimals, type_.scale, "towards_zero"), decimals))
    )


def values_at(column: pa.Array, fields: Sequence[str]) -> tuple[pa.Array, pa.Array]:
    """Return the values that a path leads to in some rows, and the row of each.

    Args:
        column: The top-level column.
        fields: The fields of structs below it; lists are entered.
    """
    rows = pa.array(np.arange(len(column)))
    left = list(fields)
    while True:
        while _is_list(column.type):
            rows = rows.take(pc.list_parent_indices(column))
            column = pc.list_flatten(column)
        if not left:
            return column, rows
        column = pc.struct_field(column, left.pop(0))


def _is_list(type_: pa.DataType) -> bool:
    return bool(pt.is_list(type_) or pt.is_large_list(type_) or pt.is_fixed_size_list(type_))


def _value_type(type_: pa.DataType) -> pa.DataType:
    while _is_list(type_):
        type_ = type_.value_type
    return type_
