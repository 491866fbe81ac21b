"""`windrow plan`: plan a read and show the plan."""

from __future__ import annotations

from typing import Any

from rich.console import Group

from windrow.connecting import connect
from windrow_calls.plans import SplitPlan
from windrow_calls.terminal.consoles import show_result
from windrow_calls.terminal.options import (
    DEFAULT_URL,
    AsJson,
    ColumnNames,
    FilterText,
    Limit,
    MaxSplitSize,
    Parallelism,
    Strategy,
    Url,
    VersionOfTable,
    names,
)
from windrow_calls.terminal.render import drawn, plan_picture
from windrow_cli.arguments import TableName


def plan(
    name: TableName,
    filter_: FilterText = None,
    columns: ColumnNames = None,
    version: VersionOfTable = None,
    limit: Limit = None,
    parallelism: Parallelism = None,
    strategy: Strategy = None,
    max_split_size: MaxSplitSize = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Plan how to read a table.

    Shows the plan's figures, and the sizes of its files and groups as a chart.
    """
    options: dict[str, Any] = {
        "parallelism": parallelism,
        "strategy": strategy,
        "max_split_size": max_split_size,
    }
    with connect(url, check=False) as client:
        split_plan = client.plan(
            name,
            filter=filter_,
            columns=names(columns),
            version=version,
            limit=limit,
            **{option: value for option, value in options.items() if value is not None},
        )
    show_result(
        _as_json(split_plan),
        lambda: Group(drawn(split_plan.info), plan_picture(split_plan)),
        as_json,
    )


def _as_json(plan: SplitPlan) -> dict[str, Any]:
    """Return a plan with the figures of its groups, but without their splits."""
    groups = plan.groups.drop_columns(["splits"]).append_column(
        "split_count", [plan.groups["splits"].combine_chunks().value_lengths()]
    )
    info = plan.info.model_dump(mode="json", exclude={"groups", "next_page_token"})
    return info | {"groups": groups.to_pylist()}
