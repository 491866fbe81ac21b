"""`windrow audit`: who changed what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import Annotated

import typer
from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from windrow.connecting import connect
from windrow.terminal.consoles import show_result
from windrow.terminal.options import DEFAULT_URL, AsJson, Url, moment
from windrow.terminal.render import DASH, message
from windrow_core.models import AuditRecord

_ID_CHARACTERS = 8


def audit(
    table: Annotated[
        str | None, typer.Argument(help="Only changes of this table.", metavar="TABLE")
    ] = None,
    principal: Annotated[
        str | None, typer.Option("--by", help="Only changes by this caller.", metavar="NAME")
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option(
            parser=moment,
            help="Only changes from this time on, such as 2026-12-01 or 2026-12-01T06:00+01:00.",
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
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("when", "who", "table", "what", "by", "before", "after"):
        table.add_column(title, no_wrap=title == "when")
    for one in changes:
        table.add_row(
            f"{one.at:%Y-%m-%d %H:%M:%S %Z}",
            Text(one.principal),
            Text(one.table or DASH),
            Text(f"{one.kind.replace('_', ' ')} {one.item or ''} {one.outcome}"),
            Text(one.operation),
            Text((one.before or DASH)[:_ID_CHARACTERS]),
            Text((one.after or DASH)[:_ID_CHARACTERS]),
        )
    return table
