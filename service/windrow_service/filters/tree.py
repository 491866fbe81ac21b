"""Expressions as the JSON that callers see: the reverse of `filters.bind`."""

from __future__ import annotations

from typing import Any

from windrow_service.planner.pruning.expressions import (
    And,
    Comparison,
    Expression,
    In,
    IsNull,
    Not,
    StartsWith,
    in_json,
)

# Most arguments of one junction in `windrow_core.models`; binding flattens nested ones again.
_MAX_ARGS = 10_000


def to_tree(expression: Expression) -> dict[str, Any]:
    """Return an expression as a JSON object in the form of `windrow_core.models.FilterTree`.

    Binding it to the columns of the same table gives the same expression. Dates and timestamps
    are ISO 8601 (with `Z` if the column is adjusted to UTC); decimals, `NaN` and the infinities
    are text; binary is its hexadecimal digits.
    """
    if isinstance(expression, Comparison):
        return {
            "op": expression.op,
            "column": expression.column,
            "value": in_json(expression.value),
        }
    if isinstance(expression, In):
        values = [in_json(value) for value in expression.values]
        if expression.has_null:
            values.append(None)
        return {"op": "in", "column": expression.column, "values": values}
    if isinstance(expression, IsNull):
        return {"op": "is_null", "column": expression.column}
    if isinstance(expression, StartsWith):
        return {"op": "starts_with", "column": expression.column, "prefix": expression.prefix}
    if isinstance(expression, Not):
        if isinstance(expression.arg, IsNull):
            return {"op": "is_not_null", "column": expression.arg.column}
        return {"op": "not", "arg": to_tree(expression.arg)}
    op = "and" if isinstance(expression, And) else "or"
    return _junction(op, [to_tree(arg) for arg in expression.args])


def _junction(op: str, args: list[dict[str, Any]]) -> dict[str, Any]:
    while len(args) > _MAX_ARGS:
        args = [
            {"op": op, "args": args[at : at + _MAX_ARGS]} for at in range(0, len(args), _MAX_ARGS)
        ]
    return {"op": op, "args": args}
