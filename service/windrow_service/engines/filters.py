"""Filters of Iceberg's REST protocol, turned into Windrow's own.

What cannot be turned rules out no file. Every engine reads rows in its own way, so that what a
filter rules out must be what it rules out in all of them: a comparison that null or NaN may satisfy
in one of them is taken to be satisfied.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any, Literal, TypeAlias, cast

import pyarrow as pa
import pyarrow.types as pt

from windrow_core import models
from windrow_core.files.types import TIMESTAMP
from windrow_service.filters.bind import bind
from windrow_service.filters.errors import InvalidFilterError
from windrow_service.filters.limits import FilterLimits, too_deep, too_many_nodes
from windrow_service.filters.names import TableColumns
from windrow_service.planner.pruning.expressions import And, Expression, IsNull, Or

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_WITHOUT_ZONE = re.compile(r"[0-9-]{10}T[0-9:.]+")
_OPPOSITES = {
    "lt": "gt-eq",
    "lt-eq": "gt",
    "eq": "not-eq",
    "in": "not-in",
    "starts-with": "not-starts-with",
    "is-null": "not-null",
    "is-nan": "not-nan",
}
_OPPOSITES |= {opposite: kind for kind, opposite in _OPPOSITES.items()}
_OPERATORS: Mapping[str, Literal["eq", "ne", "lt", "le", "gt", "ge"]] = {
    "lt": "lt",
    "lt-eq": "le",
    "gt": "gt",
    "gt-eq": "ge",
    "eq": "eq",
    "not-eq": "ne",
}
# What a filter is if it is no expression: true of all rows, or of none.
_Outcome: TypeAlias = Expression | bool


@dataclass(frozen=True, slots=True)
class EngineFilter:
    """A filter of another engine.

    Attributes:
        outcome: An expression that is TRUE for each row that the filter wants, or whether it wants
            any.
        is_exact: Whether the filter also wants each row for which the expression is TRUE.
    """

    outcome: _Outcome
    is_exact: bool

    @property
    def expression(self) -> Expression | None:
        """The expression; None if it is none."""
        return None if isinstance(self.outcome, bool) else self.outcome


_UNKNOWN = EngineFilter(outcome=True, is_exact=False)


def read_engine_filter(
    tree: Any, types: Mapping[str, pa.DataType], limits: FilterLimits
) -> EngineFilter:
    """Return a filter, bound to columns.

    Args:
        tree: Iceberg's predicate, as decoded JSON.
        types: Types of the columns, by name.
        limits: Limits on the filter's size.

    Raises:
        InvalidFilterError: It is too large, or no predicate.
    """
    _check(tree, limits)
    return _Reader(types).read(tree, is_negated=False)


def _check(tree: Any, limits: FilterLimits) -> None:
    count = 0
    waiting = [(tree, 1)]
    while waiting:
        node, depth = waiting.pop()
        count += 1
        if count > limits.max_nodes:
            raise InvalidFilterError(too_many_nodes(limits.max_nodes))
        if depth > limits.max_depth:
            raise InvalidFilterError(too_deep(limits.max_depth))
        if isinstance(node, bool):
            continue
        if not isinstance(node, dict) or not isinstance(node.get("type"), str):
            raise InvalidFilterError("the filter has a part that is no predicate of Iceberg's")
        if node["type"] == "not":
            waiting.append((node.get("child"), depth + 1))
        elif node["type"] in ("and", "or"):
            waiting += [(side, depth + 1) for side in _sides(node)]


def _sides(node: Mapping[str, Any]) -> list[Any]:
    """Return what an AND or an OR joins: engines nest those of many sides, which are one level."""
    sides: list[Any] = []
    waiting = [node.get("right"), node.get("left")]
    while waiting:
        side = waiting.pop()
        if isinstance(side, dict) and side.get("type") == node["type"]:
            waiting += [side.get("right"), side.get("left")]
        else:
            sides.append(side)
    return sides


class _Reader:
    """Reads the nodes of one filter."""

    def __init__(self, types: Mapping[str, pa.DataType]) -> None:
        self._types = types
        self._names = TableColumns(types)

    def read(self, node: Any, *, is_negated: bool) -> EngineFilter:
        """Read a node, or its opposite."""
        if isinstance(node, bool) or node["type"] in ("true", "false"):
            is_true = node is True or (node is not False and node["type"] == "true")
            return EngineFilter(is_true != is_negated, is_exact=True)
        kind = node["type"]
        if kind == "not":
            return self.read(node["child"], is_negated=not is_negated)
        if kind in ("and", "or"):
            sides = [self.read(side, is_negated=is_negated) for side in _sides(node)]
            return _joined(sides, is_and=(kind == "and") != is_negated)
        try:
            return self._condition(_OPPOSITES[kind] if is_negated else kind, node)
        except (KeyError, TypeError, ValueError, OverflowError, InvalidFilterError):
            return _UNKNOWN

    def _condition(self, kind: str, node: Mapping[str, Any]) -> EngineFilter:
        name = self._column(node.get("term", node.get("left")))
        type_ = self._types[name]
        if pt.is_nested(type_):
            return _UNKNOWN
        if kind in ("is-null", "not-null"):
            op: Any = "is_null" if kind == "is-null" else "is_not_null"
            tree: models.FilterTree = models.IsNull(op=op, column=name)
            return EngineFilter(bind(tree, self._types), is_exact=True)
        is_wide = kind.startswith("not-")
        if kind in ("is-nan", "not-nan"):
            tree = models.Comparison(op="ne" if is_wide else "eq", column=name, value="NaN")
        elif kind in ("in", "not-in"):
            values = [_scalar(_plain(value), type_) for value in node["values"]]
            tree = models.In(op="in", column=name, values=values)
        elif kind in ("starts-with", "not-starts-with"):
            tree = models.StartsWith(op="starts_with", column=name, prefix=_text(_value(node)))
        else:
            value = _scalar(_value(node), type_)
            tree = models.Comparison(op=_OPERATORS[kind], column=name, value=value)
        if kind in ("not-in", "not-starts-with"):
            tree = models.Not(op="not", arg=tree)
        expression = bind(tree, self._types)
        if is_wide:
            # For some engines, null is unequal to every value.
            return EngineFilter(Or((expression, IsNull(name))), is_exact=False)
        # Engines differ in whether NaN is greater than other values.
        return EngineFilter(expression, is_exact=not pt.is_floating(type_))

    def _column(self, term: Any) -> str:
        if isinstance(term, dict) and term.get("type") == "reference":
            term = term.get("name")
        name = self._names.find(term) if isinstance(term, str) else None
        if name is None:
            raise KeyError(term)
        return name


def _joined(sides: list[EngineFilter], *, is_and: bool) -> EngineFilter:
    """Join at least two filters."""
    # FALSE decides an AND, and TRUE an OR.
    deciding = [one for one in sides if one.outcome is not is_and and isinstance(one.outcome, bool)]
    if deciding:
        return max(deciding, key=lambda one: one.is_exact)
    parts = [one.outcome for one in sides if not isinstance(one.outcome, bool)]
    is_exact = all(one.is_exact for one in sides)
    if not parts:
        return EngineFilter(is_and, is_exact)
    if len(parts) == 1:
        return EngineFilter(parts[0], is_exact)
    return EngineFilter((And if is_and else Or)(tuple(parts)), is_exact)


def _value(node: Mapping[str, Any]) -> Any:
    return _plain(node["value"] if "value" in node else node["right"])


def _plain(value: Any) -> Any:
    return value["value"] if isinstance(value, dict) and value["type"] == "literal" else value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    return value


def _scalar(value: Any, type_: pa.DataType) -> Any:
    """Return a literal as Windrow's filters have it.

    Engines send dates and times as texts, or as the days or microseconds since 1970 that they keep.

    Raises:
        ValueError: The column cannot be compared with it in one way only.
    """
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if pt.is_boolean(type_) and isinstance(value, bool):
        return value
    if pt.is_integer(type_) and is_whole:
        return value
    if pt.is_floating(type_) and (is_whole or isinstance(value, float)):
        number = float(value)
        if pt.is_float32(type_) and struct.unpack("f", struct.pack("f", number))[0] != number:
            # Some engines round the literal, others widen the column.
            raise ValueError(value)
        return number
    if pt.is_decimal(type_) and (is_whole or isinstance(value, str)):
        return str(value)
    if pt.is_date(type_) and is_whole:
        return date.fromordinal(_EPOCH.toordinal() + cast("int", value)).isoformat()
    if pt.is_timestamp(type_) and is_whole:
        at = _EPOCH + timedelta(microseconds=cast("int", value))
        return (at.replace(tzinfo=None) if type_.tz is None else at).isoformat()
    if pt.is_boolean(type_) or pt.is_integer(type_) or pt.is_floating(type_):
        raise ValueError(value)
    text = _text(value)
    # PyIceberg's literals have no zone.
    return f"{text}Z" if type_ == TIMESTAMP and _WITHOUT_ZONE.fullmatch(text) else text
