"""The order of the rows within each partition of a query, which files should keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame

from windrow_spark.writing.expressions import named

# Nodes of Spark's plans whose rows have the order of their child's.
_ORDERED = {
    "CollectMetrics",
    "Filter",
    "GlobalLimit",
    "LocalLimit",
    "Offset",
    "Project",
    "SubqueryAlias",
    "View",
    "WriteFiles",
}


@dataclass(frozen=True, slots=True)
class RowOrder:
    """How a query sorts its rows.

    Attributes:
        columns: The columns by which it sorts them.
        rest: What it sorts them by after these and is no column of its rows, as SQL; else empty.
    """

    columns: Sequence[Column] = ()
    rest: str = ""


def order_of(rows: DataFrame) -> RowOrder:
    """Return the order that the query of a classic DataFrame gives its rows with ORDER BY or SORT BY."""
    try:
        execution = rows._jdf.queryExecution()
        if _sort(execution.analyzed()) is None:
            return RowOrder()
        return order_of_plan(execution.optimizedPlan(), rows.columns)
    except (Py4JError, TypeError):
        return RowOrder(rest="what Spark does not show")


def order_of_plan(plan: Any, names: Sequence[str]) -> RowOrder:
    """Return the order that an optimized plan of the JVM gives its rows.

    Args:
        plan: The plan.
        names: The names of its columns.
    """
    sort = _sort(plan)
    if sort is None:
        return RowOrder()
    output, ordering = plan.output(), plan.outputOrdering()
    places = {output.apply(at).exprId().id(): at for at in range(output.size())}
    columns: list[Column] = []
    for one in (ordering.apply(at) for at in range(ordering.size())):
        place = None
        if one.child().getClass().getSimpleName() == "AttributeReference":
            place = places.get(one.child().exprId().id())
        if place is None:
            return RowOrder(columns, str(one.child().sql()))
        direction = str(one.direction().sql()).lower()
        nulls = str(one.nullOrdering().sql()).lower().replace(" ", "_")
        columns.append(getattr(named(names[place]), f"{direction}_{nulls}")())
    missing = sort.order().size() > len(columns)
    return RowOrder(columns, str(sort.order().apply(len(columns)).child().sql()) if missing else "")


def _sort(plan: Any) -> Any:
    """Return the node that sorts a plan's rows; None if nothing does, or something mixes them later."""
    while plan.getClass().getSimpleName() in _ORDERED:
        plan = plan.children().apply(0)
    return plan if plan.getClass().getSimpleName() == "Sort" else None
