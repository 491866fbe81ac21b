"""Bind a filter to a table's columns: resolve names, and convert literals to the columns' types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Literal

import pyarrow as pa
import pyarrow.types as pt

from windrow_core import models
from windrow_core.files.types import MAX_DECIMAL_PRECISION
from windrow_service.filters.errors import InvalidFilterError, quote
from windrow_service.filters.limits import MAX_DEPTH, MAX_NODES, check_size, too_deep
from windrow_service.filters.names import TableColumns
from windrow_service.filters.parsed import ParsedFilter, Position, Value
from windrow_service.filters.values import NUMBER, Fitted, checked_text, fit, is_text, shown
from windrow_service.planner.pruning.expressions import (
    And,
    Comparison,
    Expression,
    In,
    IsNull,
    Not,
    Operator,
    Or,
    Scalar,
    StartsWith,
    always,
    never,
)

# Most values of a list in `windrow_core.models`.
_MAX_VALUES = 10_000
_PLAIN = re.compile(r"0|-?[1-9][0-9]*")
# Digits of the decimal that Spark converts an integer type to, by the bits of the type.
_WHOLE_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def as_compared(
    op: Operator | Literal["in"], values: Sequence[Value], column: str, type_: pa.DataType
) -> list[Value]:
    """Return the literals of one condition as Spark compares them with a column.

    Spark compares integers and decimals exactly, or as doubles if any literal is a double. JSON
    trees are always compared exactly.
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
    """Refuse quoted numbers in a list: some versions of Spark compare the whole list as text."""
    quoted = [value for value in values if value.kind == "text"]
    are_alike = pt.is_integer(type_) and all(_PLAIN.fullmatch(str(v.value)) for v in values)
    for value in quoted:
        if not are_alike and NUMBER.fullmatch(str(value.value)):
            raise InvalidFilterError(
                f"column {quote(column)} is {type_}, and Spark may compare a list with "
                f"{shown(value)} as text: write its numbers without quotes"
            )


def _check_range(numbers: Sequence[Value], column: str) -> None:
    """Refuse numbers beyond bigint: Spark then replaces the comparison, even for null."""
    for value in numbers:
        if not -(2**63) <= Decimal(str(value.value)) <= 2**63 - 1:
            raise InvalidFilterError(
                f"column {quote(column)} has no value as large as {shown(value)}, and Spark then "
                "treats null like any value: leave the condition out, or write IS NOT NULL"
            )


def _check_digits(
    numbers: Sequence[Value], column: str, type_: pa.DataType, *, in_list: bool
) -> None:
    """Refuse numbers that Spark's widest decimal cannot hold together with the column's values."""
    if pt.is_decimal(type_):
        whole, scale = type_.precision - type_.scale, type_.scale
    else:
        whole, scale = _WHOLE_DIGITS[type_.bit_width], 0
    for value in numbers:
        digits = max(0, Decimal(str(value.value)).adjusted() + 1)
        if in_list and isinstance(value.value, int):
            # In a list, the digits of an integer depend on its type.
            digits = max(digits, 10 if -(2**31) <= value.value < 2**31 else 20)
        whole, scale = max(whole, digits), max(scale, value.scale)
        if whole + scale > MAX_DECIMAL_PRECISION:
            raise InvalidFilterError(
                f"column {quote(column)} is {type_}, and Spark rounds when comparing it with "
                f"{shown(value)}, since together they need more than {MAX_DECIMAL_PRECISION} digits: "
                "write fewer digits, or apply this condition with DataFrame.filter"
            )


def bind(
    tree: models.FilterTree | ParsedFilter,
    types: Mapping[str, pa.DataType],
    *,
    max_nodes: int = MAX_NODES,
    max_depth: int = MAX_DEPTH,
) -> Expression:
    """Bind a filter to columns.

    Names resolve exactly, or else case-insensitively if that leaves one column. If a type cannot
    hold a literal, the filter is rewritten with values that it can hold: for an integer, `x > 1.5`
    becomes `x > 1`, and `x = 1.5` is never TRUE.

    Args:
        tree: The filter, from JSON or from `sql.parse_sql`.
        types: The table's columns.
        max_nodes: Most nodes of a filter from JSON.
        max_depth: Most levels of a filter from JSON.
    """
    try:
        if isinstance(tree, ParsedFilter):
            return _Binder(types, tree.text, tree.positions).bind(tree.tree)
        check_size(tree, max_nodes, max_depth)
        return _Binder(types, None, ()).bind(tree)
    except RecursionError:
        raise InvalidFilterError(too_deep(max_depth)) from None


class _Binder:
    """One walk over one filter.

    Args:
        types: The table's columns.
        text: The filter's text, if it has one.
        positions: Positions of the conditions in the text, in the order of the walk.
    """

    def __init__(
        self, types: Mapping[str, pa.DataType], text: str | None, positions: Sequence[Position]
    ) -> None:
        self._types = types
        self._text = text
        self._positions: Iterator[Position] = iter(positions)
        self._names = TableColumns(types)

    def bind(self, tree: models.FilterTree) -> Expression:
        if isinstance(tree, models.Not):
            return Not(self.bind(tree.arg))
        if isinstance(tree, models.Junction):
            return _join(tree.op, [self.bind(arg) for arg in tree.args])
        position = next(self._positions, None)
        column = self._column(tree.column, position)
        if isinstance(tree, models.IsNull):
            is_null = IsNull(column)
            return is_null if tree.op == "is_null" else Not(is_null)
        if isinstance(tree, models.StartsWith):
            return self._starts_with(column, tree.prefix, position)
        if isinstance(tree, models.In):
            return self._in(column, self._values(tree.values, position))
        if isinstance(tree, models.Between):
            low, high = self._values([tree.low, tree.high], position)
            bounds = [self._compare("ge", column, low), self._compare("le", column, high)]
            return _join("and", bounds)
        (value,) = self._values([tree.value], position)
        return self._compare(tree.op, column, value)

    def _column(self, name: str, position: Position | None) -> str:
        column = self._names.find(name)
        if column is None:
            at = position.column if position else None
            raise InvalidFilterError(self._names.why_none(name), self._text, at)
        return column

    def _values(
        self, values: Sequence[models.Scalar], position: Position | None
    ) -> Sequence[Value]:
        # A LIKE without a wildcard compares with the unescaped text, not with the pattern.
        literals = position.values if position is not None else ()
        return [
            replace(at, value=value)
            for value, at in zip(values, literals or map(Value.of, values), strict=True)
        ]

    def _fit(
        self, op: Operator | Literal["in"], column: str, values: Sequence[Value]
    ) -> list[Fitted]:
        """Fit the literals that one condition compares with a column; none of them is NULL."""
        type_ = self._types[column]
        at = values[0].offset if values else None
        literals = []
        try:
            for value in as_compared(op, values, column, type_):
                at = value.offset
                literals.append(fit(value, column, type_))
        except InvalidFilterError as error:
            raise InvalidFilterError(error.reason, self._text, at) from None
        return literals

    def _compare(self, op: Operator, column: str, value: Value) -> Expression:
        if value.value is None:
            return Comparison(op, column, None)
        (literal,) = self._fit(op, column, [value])
        if literal.value is None:
            above = literal.beyond > 0
            holds = op in (("lt", "le", "ne") if above else ("gt", "ge", "ne"))
            return always(column) if holds else never(column)
        if literal.last is not None:
            if op in ("eq", "ne"):
                within = _within(column, literal)
                return within if op == "eq" else Not(within)
            return Comparison(op, column, literal.last if op in ("le", "gt") else literal.value)
        if literal.exact:
            return Comparison(op, column, literal.value)
        if op in ("eq", "ne"):
            return never(column) if op == "eq" else always(column)
        return Comparison("le" if op in ("lt", "le") else "gt", column, literal.value)

    def _in(self, column: str, values: Sequence[Value]) -> Expression:
        has_null = any(value.value is None for value in values)
        literals = self._fit("in", column, [value for value in values if value.value is not None])
        equal = [one for one in literals if one.exact]
        distinct = {one.value: None for one in equal if one.value is not None and one.last is None}
        parts: list[Expression] = [_within(column, one) for one in equal if one.last is not None]
        if distinct:
            parts.insert(0, In(column, _ordered(distinct), has_null))
        elif has_null:
            parts.insert(0, Comparison("eq", column, None))
        return _join("or", parts) if parts else never(column)

    def _starts_with(self, column: str, prefix: str, position: Position | None) -> Expression:
        offset = position.values[0].offset if position is not None else None
        if not is_text(self._types[column]):
            raise InvalidFilterError(
                f"column {quote(column)} is {self._types[column]}: LIKE needs a string",
                self._text,
                offset,
            )
        try:
            return StartsWith(column, checked_text(prefix))
        except InvalidFilterError as error:
            raise InvalidFilterError(error.reason, self._text, offset) from None


def _within(column: str, literal: Fitted) -> Expression:
    ends = (Comparison("ge", column, literal.value), Comparison("le", column, literal.last))
    return And(ends)


def _join(op: Literal["and", "or"], args: Sequence[Expression]) -> Expression:
    """Join by AND or OR; an argument that is a junction of the same kind is flattened.

    Comparisons of one column for equality become a list of its values, which is looked up once.
    """
    kind = And if op == "and" else Or
    flat = [part for arg in args for part in (arg.args if isinstance(arg, kind) else (arg,))]
    flat = _with_lists(flat, "ne" if op == "and" else "eq")
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


def _with_lists(parts: Sequence[Expression], op: Literal["eq", "ne"]) -> list[Expression]:
    """Replace comparisons of one column for (in)equality by one list of its values."""
    values: dict[str, dict[Scalar, None]] = {}
    for part in parts:
        if isinstance(part, Comparison) and part.op == op and part.value is not None:
            values.setdefault(part.column, {})[part.value] = None
    lists: dict[str, Expression] = {
        column: In(column, _ordered(of_column))
        for column, of_column in values.items()
        if 1 < len(of_column) <= _MAX_VALUES
    }

    def replaced(part: Expression) -> Expression:
        if not isinstance(part, Comparison) or part.op != op or part.value is None:
            return part
        one = lists.get(part.column)
        return part if one is None else one if op == "eq" else Not(one)

    return list(dict.fromkeys(map(replaced, parts)))


def _ordered(values: Iterable[Scalar]) -> tuple[Scalar, ...]:
    # The values of one column have one type, so they can be ordered.
    return tuple(sorted(values, key=lambda value: (value != value, value)))
