"""How Spark compares a column of numbers with a condition's literals: as what, or not alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Literal

import pyarrow as pa
import pyarrow.types as pt

from windrow.files.types import MAX_DECIMAL_PRECISION
from windrow_service.filters.errors import InvalidFilterError, quote
from windrow_service.filters.parsed import Value
from windrow_service.filters.values import NUMBER, shown
from windrow_service.planner.pruning.expressions import Operator

_PLAIN = re.compile(r"0|-?[1-9][0-9]*")
# How many digits Spark counts for an integer: those of its type's decimal.
_WHOLE_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def as_compared(
    op: Operator | Literal["in"], values: Sequence[Value], column: str, type_: pa.DataType
) -> list[Value]:
    """Return the literals of one condition as Spark compares them with a column.

    Of integers and decimals, Spark compares exactly, or as doubles if any literal is one. JSON
    trees are always exact.

    Raises:
        InvalidFilterError: Spark would round, compare texts, or forget nulls; the message has
            no place.
    """
    in_sql = any(value.offset is not None for value in values)
    if not in_sql or not (pt.is_integer(type_) or pt.is_floating(type_) or pt.is_decimal(type_)):
        return list(values)
    in_list = op == "in"
    if in_list:
        _check_quoted(values, column, type_)
    if pt.is_floating(type_):
        return list(values)
    numbers = [value for value in values if value.kind == "number"]
    has_decimals = pt.is_decimal(type_) or any(not isinstance(v.value, int) for v in numbers)
    as_doubles = any(
        value.kind == "double" or (value.kind == "text" and has_decimals) for value in values
    )
    if as_doubles:
        return [
            replace(value, kind="double") if NUMBER.fullmatch(str(value.value)) else value
            for value in values
        ]
    # Spark reads unsigned 64-bit integers as decimals, whose order is exact.
    if pt.is_integer(type_) and not pt.is_uint64(type_) and op in ("lt", "le", "gt", "ge"):
        _check_range(numbers, column)
    if has_decimals:
        _check_digits(numbers, column, type_, in_list=in_list)
    return list(values)


def _check_quoted(values: Sequence[Value], column: str, type_: pa.DataType) -> None:
    """Refuse quoted numbers in a list, all of which some versions of Spark compare as texts."""
    quoted = [value for value in values if value.kind == "text"]
    are_alike = pt.is_integer(type_) and all(_PLAIN.fullmatch(str(v.value)) for v in values)
    for value in quoted:
        if not are_alike and NUMBER.fullmatch(str(value.value)):
            raise InvalidFilterError(
                f"column {quote(column)} is {type_}, and Spark may compare a list with "
                f"{shown(value)} as texts: write its numbers without quotes"
            )


def _check_range(numbers: Sequence[Value], column: str) -> None:
    """Refuse numbers beyond bigint, which make Spark's order a constant also where there is null."""
    for value in numbers:
        if not -(2**63) <= Decimal(str(value.value)) <= 2**63 - 1:
            raise InvalidFilterError(
                f"column {quote(column)} has no value as large as {shown(value)}, and Spark then "
                "counts null as one that has the order: leave the condition out, or write IS NOT NULL"
            )


def _check_digits(
    numbers: Sequence[Value], column: str, type_: pa.DataType, *, in_list: bool
) -> None:
    """Refuse numbers that Spark's widest decimal cannot hold beside the column's values."""
    if pt.is_decimal(type_):
        whole, scale = type_.precision - type_.scale, type_.scale
    else:
        whole, scale = _WHOLE_DIGITS[type_.bit_width], 0
    for value in numbers:
        digits = max(0, Decimal(str(value.value)).adjusted() + 1)
        if in_list and isinstance(value.value, int):
            # In a list, an integer counts by its type.
            digits = max(digits, 10 if -(2**31) <= value.value < 2**31 else 20)
        whole, scale = max(whole, digits), max(scale, value.scale)
        if whole + scale > MAX_DECIMAL_PRECISION:
            raise InvalidFilterError(
                f"column {quote(column)} is {type_}, and Spark rounds when it compares that with "
                f"{shown(value)}, as both take more than {MAX_DECIMAL_PRECISION} digits: write fewer "
                "digits, or apply this condition with DataFrame.filter"
            )
