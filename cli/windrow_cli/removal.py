"""`windrow table drop-partitions`: remove partitions, after a look at what would go."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import RenderableType

from windrow.connecting import connect
from windrow_calls.terminal.consoles import show, show_result
from windrow_calls.terminal.options import DEFAULT_URL, AsJson, Url
from windrow_calls.terminal.render import drawn_grid, message
from windrow_cli.arguments import TableName
from windrow_cli.errors import CommandError
from windrow_core.cards import Grid, count_text
from windrow_core.sizes import size_text
from windrow_tables.commits import Removal
from windrow_tables.commits import drop_partitions as drop

_SHOWN_FOLDERS = 20


def drop_partitions(
    name: TableName,
    filter_: Annotated[
        str,
        typer.Option(
            "--filter", help="Partitions to remove, in SQL: \"ds < '2025-01-01'\".", metavar="SQL"
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be removed, but change nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Remove partitions of a table with their files.

    The filter names partition columns only. The files cannot be restored.
    """
    with connect(url, check=False) as client:
        removal = drop(client, name, filter_, dry_run=True)
        if not dry_run and removal.files:
            if not yes:
                _confirm(removal)
            removal = drop(client, name, filter_)
    fields = {key: getattr(removal, key) for key in Removal.__dataclass_fields__}
    show_result({"removal": fields}, lambda: _outcome(removal), as_json)


def _confirm(removal: Removal) -> None:
    if not sys.stdin.isatty():
        raise CommandError("the files cannot be restored: add --yes, or preview with --dry-run")
    show(_folders(removal))
    typer.confirm(f"Remove these files of {removal.table} for good?", abort=True, err=True)


def _outcome(removal: Removal) -> RenderableType:
    if not removal.files:
        return message(f"no partition of {removal.table} matches the filter")
    if removal.snapshot_id is None:
        return _folders(removal)
    return message(f"removed from {removal.table}: {_what(removal)}")


def _folders(removal: Removal) -> RenderableType:
    folders = [[folder] for folder in removal.folders[:_SHOWN_FOLDERS]]
    grid = Grid([f"would remove {_what(removal)}"], folders, total=len(removal.folders))
    return drawn_grid(grid, show_edge=True)


def _what(removal: Removal) -> str:
    folders = count_text(len(removal.folders), "folder")
    rows = "" if removal.rows is None else f" with {count_text(removal.rows, 'row')}"
    return f"{folders}, {count_text(removal.files, 'file')}{rows}, {size_text(removal.size_bytes)}"
