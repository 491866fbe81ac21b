"""`windrow history`: the plans of the last days, expired ones included."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import Annotated

import typer

from windrow.connecting import connect
from windrow_calls.terminal.consoles import show_result
from windrow_calls.terminal.options import DEFAULT_URL, AsJson, Url, past_moment
from windrow_calls.terminal.render import drawn_list
from windrow_cli.arguments import tables


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

    The coordinator keeps figures of plans after their groups have expired. Plans of other callers
    are listed too if your token has the scope admin on their tables. Times are in UTC; --json has
    all figures.
    """
    with connect(url, check=False) as client:
        all_plans = client.past_plans(table=table, plan_id=plan_id, since=since, until=until)
        plans = list(islice(all_plans, limit))
    show_result(
        {"plans": plans}, lambda: drawn_list(plans, "no matching plan is recorded"), as_json
    )
