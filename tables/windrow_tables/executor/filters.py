"""The residual filter: a filter tree evaluated on Arrow columns by SQL's three-valued logic.

A tree is the JSON form of `windrow_core.models.FilterTree`, with literals in their canonical form:
dates, timestamps and decimals as text, binary as hexadecimal digits. NaN orders as in Spark: it
equals itself and is larger than all other numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import ROUND_FLOOR, Context, Decimal, InvalidOperation
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files.types import LITERAL_PARSERS
from windrow_tables.executor.errors import ResidualFilterError

_COMPARE: dict[str, Callable[[pa.Array, pa.Scalar], pa.Array]] = {
    "eq": pc.equal,
    "lt": pc.less,
    "le": pc.less_equal,
    "gt": pc.greater,
    "ge": pc.greater_equal,
}
# More digits than any decimal column or JSON number has, so that nothing is rounded.
_EXACT = Context(prec=400)


def matching(tree: Mapping[str, Any], rows: pa.Table) -> pa.ChunkedArray:
    """Return which rows a filter is TRUE for.

    Args:
        tree: A filter tree as JSON.
        rows: At least the columns that the tree names.

    Returns:
        One boolean for each row; null where the filter is NULL, which drops the row like FALSE.
    """
    op = tree.get("op")
    if op in ("and", "or"):
        join = pc.and_kleene if op == "and" else pc.or_kleene
        return reduce(join, [matching(arg, rows) for arg in tree["args"]])
    if op == "not":
        return pc.invert(matching(tree["arg"], rows))
    name = tree.get("column")
    if rows.schema.get_field_index(name) < 0:
        raise ResidualFilterError(f"column {name!r} is not among the columns read")
    column = rows.column(name)
    if op == "is_null":
        return column.is_null()
    if op == "is_not_null":
        return column.is_valid()
    if op == "starts_with":
        return pc.starts_with(column, tree["prefix"])
    if op == "between":
        low, high = _compare("ge", column, tree["low"]), _compare("le", column, tree["high"])
        return pc.and_kleene(low, high)
    if op == "in":
        return _is_in(column, tree["values"])
    if op == "ne":
        return pc.invert(_compare("eq", column, tree["value"]))
    if op in _COMPARE:
        return _compare(op, column, tree["value"])
    raise ResidualFilterError(f"operator {op!r} is not known")


def _compare(op: str, column: pa.ChunkedArray, literal: Any) -> pa.ChunkedArray:
    if literal is None:
        return _constant(None, column)
    value = _parse(literal, column.type)
    if pt.is_floating(column.type):
        return _compare_float(op, column, value)
    if pt.is_integer(column.type) or pt.is_decimal(column.type):
        return _compare_exact(op, column, value)
    return _COMPARE[op](column, pa.scalar(value, column.type))


def _compare_float(op: str, column: pa.ChunkedArray, value: float) -> pa.ChunkedArray:
    # Spark compares a float column with a double literal as doubles.
    column = column.cast(pa.float64())
    if math.isnan(value):
        if op in ("eq", "ge"):
            return pc.is_nan(column)
        if op == "lt":
            return pc.invert(pc.is_nan(column))
        return _constant(op == "le", column)
    outcome = _COMPARE[op](column, pa.scalar(value, pa.float64()))
    return pc.or_kleene(outcome, pc.is_nan(column)) if op in ("gt", "ge") else outcome


def _compare_exact(op: str, column: pa.ChunkedArray, value: Decimal) -> pa.ChunkedArray:
    """Compare numbers without rounding: a literal between two values moves to the one below."""
    if not value.is_finite():
        return _constant(op in ("gt", "ge") if value < 0 else op in ("lt", "le"), column)
    step = Decimal(1).scaleb(-column.type.scale if pt.is_decimal(column.type) else 0)
    below = value.quantize(step, rounding=ROUND_FLOOR, context=_EXACT)
    if below != value:
        # `below` < literal < next value: x < literal is x <= below, x >= literal is x > below.
        if op == "eq":
            return _constant(False, column)
        op = "le" if op in ("lt", "le") else "gt"
    try:
        literal = pa.scalar(below if pt.is_decimal(column.type) else int(below), column.type)
    except (pa.ArrowInvalid, OverflowError):  # beyond every value that the type can hold
        return _constant(op in ("gt", "ge") if below < 0 else op in ("lt", "le"), column)
    return _COMPARE[op](column, literal)


def _is_in(column: pa.ChunkedArray, literals: list[Any]) -> pa.ChunkedArray:
    values = [_parse(literal, column.type) for literal in literals if literal is not None]
    type_ = column.type
    if pt.is_floating(type_):
        # Adding zero turns -0.0 into 0.0: the two are equal, but value sets tell them apart.
        column, type_ = pc.add(column.cast(pa.float64()), 0.0), pa.float64()
        values = [value + 0.0 for value in values]
    elif pt.is_integer(type_) or pt.is_decimal(type_):
        values = [value for value in values if _is_representable(value, type_)]
        values = values if pt.is_decimal(type_) else [int(value) for value in values]
    matches = pc.is_in(column, value_set=pa.array(values, type_))
    unknown = column.is_null()
    if None in literals:
        unknown = pc.or_(unknown, pc.invert(matches))
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), matches)


def _is_representable(value: Decimal, type_: pa.DataType) -> bool:
    if not value.is_finite() or (not pt.is_decimal(type_) and value != value.to_integral_value()):
        return False
    try:
        pa.scalar(value if pt.is_decimal(type_) else int(value), type_)
    except (pa.ArrowInvalid, OverflowError):
        return False
    return True


def _constant(value: bool | None, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return `value` where the column has a value, and null where it is null."""
    answer = pa.scalar(value, pa.bool_())
    return pc.if_else(column.is_valid(), answer, pa.scalar(None, pa.bool_()))


def _parse(literal: Any, type_: pa.DataType) -> Any:
    """Turn a JSON literal into a value of the column's kind; numbers stay exact."""
    try:
        if pt.is_boolean(type_) and isinstance(literal, bool):
            return literal
        if pt.is_floating(type_) and not isinstance(literal, bool):
            return float(literal)
        if (pt.is_integer(type_) or pt.is_decimal(type_)) and not isinstance(literal, bool):
            return Decimal(str(literal))
        if pt.is_string(type_) and isinstance(literal, str):
            return literal
        if pt.is_binary(type_):
            return bytes.fromhex(literal)
        if (parse := LITERAL_PARSERS.get(type_)) is not None:
            return parse(literal)
    except (ValueError, TypeError, AttributeError, InvalidOperation) as error:
        raise ResidualFilterError(f"{literal!r} is not a literal of type {type_}") from error
    raise ResidualFilterError(f"{literal!r} cannot be compared with a column of type {type_}")


def columns_of(tree: Mapping[str, Any] | None) -> set[str]:
    """Return the names of the columns that a filter tree compares."""
    if tree is None:
        return set()
    names = {tree["column"]} if "column" in tree else set()
    arguments = [*tree.get("args", ()), *([tree["arg"]] if "arg" in tree else ())]
    return names.union(*map(columns_of, arguments))
