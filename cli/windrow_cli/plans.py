"""`windrow plan`: plan a read and show the plan."""

from __future__ import annotations

from typing import Annotated, Any

from rich.console import Group

from windrow.connecting import connect
from windrow_calls.plans import SplitPlan
from windrow_calls.terminal.consoles import show_result
from windrow_calls.terminal.fields import PLANNING, SharedOptions, planning_of, with_fields
from windrow_calls.terminal.options import DEFAULT_URL, AsJson, Url, VersionOfTable
from windrow_calls.terminal.render import drawn, plan_picture
from windrow_cli.arguments import TableName


@with_fields
def plan(
    name: TableName,
    fields: Annotated[dict[str, Any], SharedOptions({**PLANNING, "version": VersionOfTable})],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Plan how to read a table.

    Shows the plan's figures, and the sizes of its files and groups as a chart.
    """
    with connect(url, check=False) as client:
        split_plan = client.plan(name, **planning_of(fields))
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
