"""`windrow audit`: who changed what."""

from __future__ import annotations

from collections.abc import Sequence
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
from windrow_calls.terminal.render import DASH, message, utc_text
from windrow_cli.arguments import tables
from windrow_core.models import AuditRecord

# In less, the values of a definition take many lines.
_LEAST_TEXT = 48


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

    Changes of tables, snapshots, cache rules, policies, writes and tokens. A coordinator with
    tokens requires one with the scope admin.
    """
    with connect(url, check=False) as client:
        all_changes = client.changes(table=table, principal=principal, since=since)
        changes = list(islice(all_changes, limit))
    show_result({"changes": changes}, lambda: change_list(changes), as_json)


def change_list(changes: Sequence[AuditRecord]) -> RenderableType:
    """List changes."""
    if not changes:
        return message("no such change is recorded")
    table = ListTable(
        ("when (UTC)", "who…", "table…", "what…", "call"),
        drops=("call",),
        stacks={"table, what": ("table", "what")},
        least_text=_LEAST_TEXT,
    )
    for one in changes:
        table.add_row(
            utc_text(one.at),
            Text(one.principal),
            Text(one.table or DASH),
            Text(one.description),
            Text(one.operation),
        )
    return table
