"""Partition values as folder names hold them, and as they travel in JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

from windrow.files.entries import unescape
from windrow.models import Column, Scalar

HIVE_DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"

_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_BOOLEANS = {"true": True, "false": False}


class InvalidValueError(ValueError):
    """A value of a partition column is none of the column's type in the table."""


def wire_values(column: Column, texts: Sequence[str | None]) -> list[Scalar]:
    """Return the values of a partition column as they travel.

    Args:
        column: As the table has it.
        texts: What Spark names folders by; None for null.

    Raises:
        InvalidValueError: One is no value of the column's type; it is named.
    """
    convert = _converter(column.type)
    values: list[Scalar] = []
    for text in texts:
        try:
            values.append(None if text is None else convert(text))
        except (ValueError, KeyError, InvalidOperation) as error:
            raise InvalidValueError(
                f"{text!r} is no value of partition column {column.name!r}, which is {column.type}"
            ) from error
    return values


def folder_texts(folder: str) -> list[str | None]:
    """Return the partition values that a path such as `ds=2026-11-01/region=de` names."""
    texts = [unescape(part.partition("=")[2]) for part in folder.split("/")] if folder else []
    return [None if text == HIVE_DEFAULT_PARTITION else text for text in texts]


def _converter(type_: str) -> Callable[[str], Scalar]:
    if type_ in _INTEGER_BITS:
        return _integer(_INTEGER_BITS[type_])
    if type_ == "boolean":
        return _BOOLEANS.__getitem__
    if type_ in ("float", "double"):
        return _float
    if type_ == "date":
        return lambda text: _checked(text, date.fromisoformat)
    if type_.startswith("timestamp"):
        return lambda text: _checked(text, _parsed_time)
    if type_.startswith("decimal"):
        return lambda text: _checked(text, Decimal)
    return str


def _integer(bits: int) -> Callable[[str], Scalar]:
    def convert(text: str) -> Scalar:
        number = int(text)
        if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            raise ValueError(text)
        return number

    return convert


def _float(text: str) -> Scalar:
    number = float(text)
    # JSON has no number for those that are not finite.
    return number if math.isfinite(number) else text


def _checked(text: str, parse: Callable[[str], object]) -> str:
    parse(text)
    return text


def _parsed_time(text: str) -> object:
    # Spark leaves out what is zero at the end of a fraction, which Python 3.10 does not read.
    whole, _, fraction = text.partition(".")
    return (datetime.fromisoformat(whole), int(fraction or 0))
