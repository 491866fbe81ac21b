"""`windrow audit`: who changed what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from itertools import islice
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from windrow.cli.arguments import tables
from windrow.connecting import connect
from windrow.terminal.consoles import show_result
from windrow.terminal.listings import ListTable
from windrow.terminal.options import DEFAULT_URL, AsJson, Url, past_moment
from windrow.terminal.render import DASH, message
from windrow_core.models import AuditRecord

# In less, the values of a definition take many lines.
_LEAST_TEXT = 48


def audit(
    table: Annotated[
        str | None,
        typer.Argument(help="Only changes of this table.", metavar="TABLE", autocompletion=tables),
    ] = None,
    principal: Annotated[
        str | None, typer.Option("--by", help="Only changes by this caller.", metavar="NAME")
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option(
            parser=past_moment,
            help="Only changes from this time on: 2026-12-01, 2026-12-01T06:00+01:00, yesterday, or 7d.",
            metavar="TIME",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(help="Number of changes to show.", min=1)] = 20,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List who changed tables, snapshots, cache rules, writes and tokens, newest first.

    The coordinator requires a token with the scope admin.
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
            f"{one.at.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S}",
            Text(one.principal),
            Text(one.table or DASH),
            Text(one.description),
            Text(one.operation),
        )
    return table
