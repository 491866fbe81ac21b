"""Filters as the planner sees them: a small tree of typed nodes over columns.

Literals are already of the column's own kind: `filters.bind` made them so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Literal, TypeAlias

Scalar: TypeAlias = bool | int | float | str | bytes | Decimal | date | datetime
Operator: TypeAlias = Literal["eq", "ne", "lt", "le", "gt", "ge"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """`column op value`; NULL for a null on either side."""

    op: Operator
    column: str
    value: Scalar | None


@dataclass(frozen=True, slots=True)
class In:
    """`column IN (values)`; with `has_null`, a row that matches no value gives NULL."""

    column: str
    values: tuple[Scalar, ...]
    has_null: bool = False


@dataclass(frozen=True, slots=True)
class IsNull:
    """`column IS NULL`; never NULL itself."""

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
