"""Conditions on times that a session takes for local ones, whose stored values differ from them.

Bounds of INT96 are never used, but Bloom filters hold the stored values.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from windrow_core.models import Plan
from windrow_spark.errors import EqualTimesError
from windrow_tables.executor.filters import columns_of

Tree = dict[str, Any]


def without_equalities(tree: Tree, columns: Collection[str]) -> Tree:
    """Return a tree that means the same, and compares some columns with ranges only.

    Plans use no Bloom filters for ranges.

    Args:
        tree: The tree.
        columns: The columns.
    """
    op = tree["op"]
    if "args" in tree:
        return {"op": op, "args": [without_equalities(arg, columns) for arg in tree["args"]]}
    if op == "not":
        return {"op": op, "arg": without_equalities(tree["arg"], columns)}
    if op not in ("eq", "ne", "in") or tree["column"] not in columns:
        return tree
    column = tree["column"]
    values = tree["values"] if op == "in" else [tree["value"]]
    ranges = [{"op": "between", "column": column, "low": one, "high": one} for one in values]
    equal = ranges[0] if len(ranges) == 1 else {"op": "or", "args": ranges}
    return {"op": "not", "arg": equal} if op == "ne" else equal


def check_equalities(plan: Plan) -> None:
    """Refuse a plan that compares times for equality, for a session that takes INT96 as local."""
    if plan.filter is None:
        return
    tree = plan.filter.model_dump()
    columns = [*plan.columns, *plan.hidden_columns]
    others = {column.name for column in columns if column.type != "timestamp"}
    others.update(column.name for column in plan.partition_columns)
    # A plan does not tell the types of columns that no residual filter compares.
    if without_equalities(tree, columns_of(tree) - others) != tree:
        raise EqualTimesError(plan.table)
