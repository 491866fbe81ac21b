"""Partition values in folder names, and in JSON."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.listing import HIVE_DEFAULT_PARTITION, escape, is_hidden, unescape
from windrow_core.files.partition_values import (
    InvalidValueError,
    convert,
    describe_type,
    identities,
    partition_type,
)
from windrow_core.files.types import TIMESTAMP
from windrow_core.models import Column, Scalar

_MAX_NAME_BYTES = 255
_SHOWN = 60


class UnfitValueError(ValueError):
    """A value of a partition column cannot be read back from a folder of the table."""


def wire_values(column: Column, texts: Sequence[str | None]) -> list[Scalar]:
    """Return the values of a partition column for JSON.

    Args:
        column: The table's column.
        texts: Spark's unescaped text of each value; None for null.
    """
    type_ = partition_type(column.type)
    if type_ is None:
        raise UnfitValueError(
            f"partition column {column.name!r} is {column.type} in the table, which no folder name "
            "can hold: register it as string"
        )
    names = [None if text is None else escape(text) for text in texts]
    for text in filter(None, texts):
        reason = _refusal(text, f"{escape(column.name)}={escape(text)}")
        if pt.is_binary(type_) and escape(text) != text:
            reason = "Spark reads other bytes from the name of its folder; write `hex` of it"
        if reason is not None:
            raise UnfitValueError(
                f"{text[:_SHOWN]!r} cannot be a value of partition column {column.name!r}: {reason}"
            )
    try:
        values = convert(pa.array(names, pa.string()), type_)
    except InvalidValueError as error:
        raise UnfitValueError(
            f"{texts[error.index]!r} is not a value of partition column {column.name!r}, which is "
            f"{describe_type(type_)}"
        ) from error
    if pt.is_floating(type_):
        # JSON has no infinite numbers and no NaN.
        numbers = zip(values.to_pylist(), texts, strict=True)
        return [one if one is None or math.isfinite(one) else text for one, text in numbers]
    plain = pt.is_boolean(type_) or pt.is_integer(type_)
    return list(values.to_pylist() if plain else texts)


def refuse_two_spellings(column: Column, texts: Sequence[str | None]) -> None:
    """Make sure that each value of a partition column has one text, as a plan takes it for a key.

    Args:
        column: The table's column.
        texts: Texts that are values of the column, as `wire_values` takes them.
    """
    type_ = partition_type(column.type)
    distinct = sorted({text for text in texts if text is not None})
    if type_ is None or pt.is_string(type_) or pt.is_binary(type_):
        return
    first: dict[Hashable, str] = {}
    for text, value in zip(distinct, identities(list(map(escape, distinct)), type_), strict=True):
        if first.setdefault(value, text) != text:
            raise UnfitValueError(
                f"{first[value]!r} and {text!r} are the same value of partition column "
                f"{column.name!r}, which is {column.type}: cast the column to {column.type}"
            )


def is_instant(column: Column) -> bool:
    """Return whether a partition column holds instants, whose text must have an offset."""
    return bool(partition_type(column.type) == TIMESTAMP)


def folder_texts(folder: str) -> list[str | None]:
    """Return the partition values in a path such as `ds=2026-11-01/region=de`."""
    texts = [unescape(part.partition("=")[2]) for part in folder.split("/")] if folder else []
    return [None if text == HIVE_DEFAULT_PARTITION else text for text in texts]


def _refusal(text: str, name: str) -> str | None:
    """Return why a folder of this name would be ignored or misread; None if it is fine."""
    if text == HIVE_DEFAULT_PARTITION:
        return "a folder of this name means null"
    if is_hidden(name):
        return f"Spark and Windrow ignore folders named like {name[:_SHOWN]!r}"
    if "\0" in text:
        return "folder names cannot contain the character with code 0"
    if len(name.encode()) > _MAX_NAME_BYTES:
        return f"its folder's name would be longer than {_MAX_NAME_BYTES} bytes"
    return None
