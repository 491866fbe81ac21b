"""Scans of queries that ask for the files of their rows, as `input_file_name()` does."""

from __future__ import annotations

import pyarrow.compute as pc

from windrow.calls.plans import SplitPlan
from windrow_spark.errors import UnfitReadError
from windrow_spark.relation.division import Division, alike_of, obstacle_of, splits_of

_NAME = "input_file_name"
_READ_DIRECTLY = "read its location with `spark.read`"


def check_function(table: str, function: str) -> None:
    """Refuse functions of the blocks of files: Windrow's plans lead to other blocks than Spark's."""
    if function != _NAME:
        raise _unanswered(
            table,
            function,
            "Spark divides planned files into other blocks than those that it lists itself",
            f"use {_NAME}(), or {_READ_DIRECTLY}",
        )


def check_divided(table: str, function: str) -> None:
    """Refuse a scan that Spark asks for undivided, and so in groups."""
    raise _unanswered(
        table,
        function,
        "the session no longer plans with Windrow's strategy",
        "leave spark.experimental's strategies in place, and read the table again",
    )


def _unanswered(table: str, function: str, obstacle: str, way_out: str) -> UnfitReadError:
    """Return the error for a function that Spark's own reader cannot answer."""
    return UnfitReadError(
        f"{function}() cannot be answered for table {table!r}, as {obstacle}", way_out
    )


def without_caches(plan: SplitPlan) -> SplitPlan:
    """Return a plan whose files are read where they are, though a worker has a copy."""
    names = [name for name in plan.groups.column_names if name == "cached_on"]
    return SplitPlan(plan.info, plan.groups.drop_columns(names))


def check_native_only(
    plan: SplitPlan, division: Division, function: str, *, filtered: bool
) -> None:
    """Refuse a scan of which Spark's own reader cannot read every file.

    Args:
        plan: The scan's plan.
        division: How its files are divided if Spark's reader reads all that it can.
        function: The function that asks for the files.
        filtered: Whether there is a filter that the query itself does not apply.
    """
    info = plan.info
    # Readers of these tables give names of another form, or give none.
    if info.logged or info.transactional:
        kind = "Delta and Iceberg" if info.logged else "transactional"
        raise _unanswered(
            info.table, function, f"files of {kind} tables have no such name", "leave it out"
        )
    if len(division.grouped):
        raise _unanswered(info.table, function, *_why_grouped(plan, filtered))


def _why_grouped(plan: SplitPlan, filtered: bool) -> tuple[str, str]:
    """Return why some files stay in groups, which know no files, and the remedy."""
    obstacle = obstacle_of(plan.info, "native")
    if obstacle:
        return obstacle
    if filtered and plan.groups["residual_filter"].null_count < len(plan.groups):
        return "Spark's own reader applies no `filter`", "use .where(…) on the DataFrame"
    splits = splits_of(plan.groups)
    alike = alike_of(splits)
    if alike.null_count:
        path = str(splits.filter(pc.is_null(alike))["path"][0])
        return (
            f"it is not known whether Spark's own reader agrees with the plan on {path!r}",
            "refresh the table",
        )
    unlike = splits.filter(pc.invert(alike))
    if len(unlike):
        return (
            f"file {str(unlike['path'][0])!r} holds a requested column in a form that is read in "
            "groups only",
            f"leave the column out, or {_READ_DIRECTLY}",
        )
    return "some of its files are remote, and read in groups only", _READ_DIRECTLY
