"""`windrow audit`: who changed what."""

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


def audit(
    table: Annotated[
        str | None,
        typer.Argument(help="Only changes of this table.", metavar="TABLE", autocompletion=tables),
    ] = None,
    principal: Annotated[
        str | None,
        typer.Option("--by", help="Only changes by the caller of this name.", metavar="NAME"),
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option(
            parser=past_moment,
            help="Only changes from this time on, such as 7d (7 days ago), 1h, yesterday, 2026-12-01 "
            "or 2026-12-01T06:00+01:00; UTC by default.",
            metavar="TIME",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(help="Number of changes to show.", min=1, metavar="COUNT")
    ] = 20,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List who changed what, newest first.

    Lists changes of tables, snapshots, cache rules, policies, writes and tokens. If the
    coordinator requires tokens, yours needs the scope admin.
    """
    with connect(url, check=False) as client:
        all_changes = client.changes(table=table, principal=principal, since=since)
        changes = list(islice(all_changes, limit))
    show_result(
        {"changes": changes}, lambda: drawn_list(changes, "no matching change is recorded"), as_json
    )
