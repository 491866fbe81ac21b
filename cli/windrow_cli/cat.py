"""`windrow cat`: print rows of a table."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from windrow.connecting import connect
from windrow_calls.terminal.consoles import show
from windrow_calls.terminal.options import DEFAULT_URL, ColumnNames, Url, VersionOfTable, names
from windrow_cli.arguments import TableName
from windrow_cli.rows_render import as_csv, as_json_lines, as_table

_ROWS_OF_A_TABLE = 20


def cat(
    name: TableName,
    where: Annotated[
        str | None,
        typer.Option(
            "--where",
            "--filter",
            help="Rows to print, in SQL, such as \"ds >= '2026-11-01'\".",
            metavar="SQL",
        ),
    ] = None,
    columns: ColumnNames = None,
    limit: Annotated[
        int | None,
        typer.Option(
            help="Number of rows to print; by default 20 as a table, and all as csv or json.",
            min=1,
            metavar="ROWS",
        ),
    ] = None,
    format_: Annotated[
        Literal["table", "csv", "json"],
        typer.Option(
            "--format",
            help="How to print rows: as a table, as csv with a line of names, or as json, an object "
            "on each line.",
        ),
    ] = "table",
    snapshot: Annotated[
        int | None,
        typer.Option(
            help="Id of a snapshot, from `windrow table snapshots`; the current one by default.",
            min=1,
            metavar="ID",
        ),
    ] = None,
    version: VersionOfTable = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Print rows of a table, in no particular order.

    Reads the table's files here, without Spark. Dates and times are in ISO 8601, times with a zone
    in UTC; bytes are in Base64.
    """
    options: dict[str, Any] = {"snapshot_id": snapshot, "version": version}
    with connect(url, check=False) as client:
        scan = client.scan(
            name,
            filter=where,
            columns=names(columns),
            limit=_ROWS_OF_A_TABLE if limit is None and format_ == "table" else limit,
            **options,
        )
    if format_ == "table":
        show(as_table(scan.to_table()))
        return
    for text in (as_csv if format_ == "csv" else as_json_lines)(scan.to_reader()):
        typer.echo(text, nl=False)
