"""Conditions on local times, which Spark itself compares, as instants of its session."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import reduce
from operator import and_, or_
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from windrow_spark.relation.filters import Tree
from windrow_spark.writing.expressions import named
from windrow_tables.executor.filters import columns_of


def divided(tree: Tree, local_times: Collection[str]) -> tuple[Tree | None, Tree | None]:
    """Return the parts of a filter that the coordinator applies, and those that Spark does.

    Args:
        tree: The filter as the coordinator understood it.
        local_times: The columns with local times.
    """
    parts = tree["args"] if tree["op"] == "and" else [tree]
    by_spark = [part for part in parts if not columns_of(part).isdisjoint(local_times)]
    return _joined([part for part in parts if part not in by_spark]), _joined(by_spark)


def condition(tree: Tree, types: Mapping[str, str]) -> Column:
    """Return a filter as a condition of Spark.

    Args:
        tree: The filter.
        types: The columns, with their types in the session.
    """
    op = tree["op"]
    if op in ("and", "or"):
        return reduce(and_ if op == "and" else or_, (condition(arg, types) for arg in tree["args"]))
    if op == "not":
        return ~condition(tree["arg"], types)
    name = tree["column"]
    column = named(name)

    def literal(value: Any) -> Column:
        if value is None or types[name] in ("string", "boolean"):
            return F.lit(value)
        return (
            F.unhex(F.lit(value))
            if types[name] == "binary"
            else F.lit(str(value)).cast(types[name])
        )

    if op in ("is_null", "is_not_null"):
        return column.isNull() if op == "is_null" else column.isNotNull()
    if op == "starts_with":
        return column.startswith(tree["prefix"])
    if op == "in":
        return column.isin(*map(literal, tree["values"]))
    if op == "between":
        return column.between(literal(tree["low"]), literal(tree["high"]))
    value = literal(tree["value"])
    comparisons = {
        "eq": column == value,
        "ne": column != value,
        "lt": column < value,
        "le": column <= value,
        "gt": column > value,
        "ge": column >= value,
    }
    return comparisons[op]


def _joined(parts: list[Tree]) -> Tree | None:
    return {"op": "and", "args": parts} if len(parts) > 1 else parts[0] if parts else None
