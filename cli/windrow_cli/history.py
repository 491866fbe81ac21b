"""`windrow history`: the plans of the last days, expired ones included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from windrow.connecting import connect
from windrow_calls.terminal.consoles import show_result
from windrow_calls.terminal.listings import ListTable
from windrow_calls.terminal.options import DEFAULT_URL, AsJson, Url, past_moment
from windrow_calls.terminal.render import DASH, message, seconds_text, utc_text
from windrow_cli.arguments import tables
from windrow_core.cards import count_text
from windrow_core.filter_text import filter_text
from windrow_core.models import PastPlan
from windrow_core.sizes import size_text

_ID_CHARACTERS = 8


def history(
    table: Annotated[
        str | None,
        typer.Argument(help="Only plans of this table.", metavar="TABLE", autocompletion=tables),
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option(
            parser=past_moment,
            help="Only plans from this time on, such as 7d (7 days ago), 1h, yesterday, 2026-12-01 or "
            "2026-12-01T06:00+01:00; UTC by default.",
            metavar="TIME",
        ),
    ] = None,
    until: Annotated[
        datetime | None,
        typer.Option(
            parser=past_moment,
            help="Only plans before this time, written like --since.",
            metavar="TIME",
        ),
    ] = None,
    plan_id: Annotated[
        str | None,
        typer.Option(
            "--plan",
            help="Only plans whose ids begin with these digits, at least eight.",
            metavar="ID",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(help="Number of plans to show.", min=1, metavar="COUNT")
    ] = 20,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List the plans of the last days, newest first.

    Their figures are kept after their groups have expired. Plans of other callers are listed too
    if your token has the scope admin on their tables. Times are in UTC; --json has all figures.
    """
    with connect(url, check=False) as client:
        all_plans = client.past_plans(table=table, plan_id=plan_id, since=since, until=until)
        plans = list(islice(all_plans, limit))
    show_result({"plans": plans}, lambda: plan_list(plans), as_json)


def plan_list(plans: Sequence[PastPlan]) -> RenderableType:
    """List plans; times are in UTC."""
    if not plans:
        return message("no such plan is recorded")
    table = ListTable(
        (
            *("plan", "requested at (UTC)", "table…", "by…", "filter…", "failure…"),
            *("files>", "size>", "planned in>", "slowest slot>"),
        ),
        drops=("slowest slot", "planned in", "size"),
        stacks={"table, by, filter": ("table", "by", "filter", "failure")},
    )
    for one in plans:
        table.add_row(
            one.plan_id[:_ID_CHARACTERS],
            utc_text(one.created_at),
            Text(one.table),
            Text(", ".join(filter(None, (one.principal, one.engine)))),
            Text("\n".join(_conditions(one))),
            Text("" if one.problem is None else f"failed: {one.problem.get('detail', '')}"),
            *_figures(one),
        )
    return table


def _conditions(plan: PastPlan) -> Iterator[str]:
    if plan.partition_count is not None:
        yield f"{count_text(plan.partition_count, 'partition')} by number"
    if plan.filter is not None:
        yield filter_text(plan.filter)


def _figures(plan: PastPlan) -> list[str]:
    if plan.summary is None:
        return ["failed", *[DASH] * 3]
    of = plan.summary
    slowest = of.slowest_slot_seconds
    return [
        f"{of.files_planned:,} of {of.files_total:,}",
        size_text(of.size_bytes),
        seconds_text(of.planning_seconds),
        DASH if slowest is None else seconds_text(slowest),
    ]
