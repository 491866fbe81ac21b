"""Filters as the planner sees them: a small tree of typed nodes over columns.

Literals already have the column's own type: `filters.bind` converted them.

| column | literal |
|---|---|
| boolean | bool |
| integers | int, within the type's range |
| float, double | float; a float column is compared as double; NaN equals NaN and is greater than any other value |
| decimal | Decimal, exactly representable in the column's type |
| string | str, compared by its UTF-8 bytes |
| binary | bytes |
| date | date |
| timestamp | datetime with the time zone UTC |
| timestamp_ntz | datetime without a time zone |
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Literal, TypeAlias

Scalar: TypeAlias = bool | int | float | str | bytes | Decimal | date | datetime
Operator: TypeAlias = Literal["eq", "ne", "lt", "le", "gt", "ge"]


def in_json(value: Scalar | None) -> bool | int | float | str | None:
    """Return a literal as the JSON that callers see."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat()
        return text + "Z" if value.tzinfo is not None else text
    if isinstance(value, date):
        return value.isoformat()
    return value


@dataclass(frozen=True, slots=True)
class Comparison:
    """`column op value`; NULL if either side is null."""

    op: Operator
    column: str
    value: Scalar | None


@dataclass(frozen=True, slots=True)
class In:
    """`column IN (values)`; with `has_null`, a row that matches no value gives NULL.

    Attributes:
        values: At least one, distinct, ascending; NaN is last.
        has_null: Whether the list also contains NULL.
    """

    column: str
    values: tuple[Scalar, ...]
    has_null: bool = False


@dataclass(frozen=True, slots=True)
class IsNull:
    """`column IS NULL`; this is never NULL itself."""

    column: str


@dataclass(frozen=True, slots=True)
class StartsWith:
    """`column LIKE 'prefix%'`."""

    column: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Not:
    """`NOT arg`; NULL stays NULL."""

    arg: Expression


@dataclass(frozen=True, slots=True)
class And:
    """All of `args`, by SQL's three-valued logic."""

    args: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of `args`, by SQL's three-valued logic."""

    args: tuple[Expression, ...]


Expression: TypeAlias = Comparison | In | IsNull | StartsWith | Not | And | Or


def never(column: str) -> Expression:
    """Return an expression that is FALSE for every value of a column, and NULL for null.

    For example, this is what `x = 1.5` means for an integer column.
    """
    return And((IsNull(column), Comparison("eq", column, None)))


def always(column: str) -> Expression:
    """Return an expression that is TRUE for every value of a column, and NULL for null."""
    return Not(never(column))


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """Return the expressions that must all be TRUE for `expression` to be TRUE, in order."""
    parts = []
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, And):
            waiting.extend(reversed(node.args))
        else:
            parts.append(node)
    return tuple(parts)


def all_of(expressions: Iterable[Expression]) -> Expression | None:
    """Join expressions by AND; None if there are none. The reverse of `conjuncts`."""
    parts = tuple(part for expression in expressions for part in conjuncts(expression))
    if len(parts) < 2:
        return parts[0] if parts else None
    return And(parts)


def columns_of(expression: Expression) -> tuple[str, ...]:
    """Return the columns that an expression uses, each once, in order of appearance."""
    columns: dict[str, None] = {}
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (And, Or)):
            waiting.extend(reversed(node.args))
        elif isinstance(node, Not):
            waiting.append(node.arg)
        else:
            columns[node.column] = None
    return tuple(columns)


def asks_for_values(expression: Expression) -> bool:
    """Return whether some condition compares with single values, which a Bloom filter can answer."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (And, Or)):
            waiting.extend(node.args)
        elif isinstance(node, Not):
            waiting.append(node.arg)
        elif isinstance(node, In) or (isinstance(node, Comparison) and node.op in ("eq", "ne")):
            return True
    return False
