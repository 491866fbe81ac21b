"""`windrow engines`: print how other engines open the catalog, or a table in it."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from windrow.connecting import connect
from windrow_calls.terminal.options import DEFAULT_URL, Url, table_name
from windrow_cli.arguments import tables
from windrow_cli.engine_lines import ENGINES, TITLES, EngineName, Opening

_TOKENS = ("WINDROW_TOKEN", "WINDROW_TOKEN_FILE")


def engines(
    name: Annotated[
        str | None,
        typer.Argument(
            parser=table_name,
            metavar="NAME",
            help="Name of a table to read; without it, the lines list all tables.",
            autocompletion=tables,
        ),
    ] = None,
    engine: Annotated[
        EngineName | None, typer.Option(help="Print only the lines for this engine.")
    ] = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Print the lines to paste into other engines.

    DuckDB, Polars, PyIceberg, Spark without Windrow, Sail and Trino open the coordinator's catalog,
    or a table in it, with them. If other engines cannot read the table, prints why, and what to do.
    If WINDROW_TOKEN or WINDROW_TOKEN_FILE is set, the lines read a token from the environment
    variable WINDROW_TOKEN; they never contain it.
    """
    with connect(url, check=False) as client:
        opening = Opening(client.url, name, any(os.environ.get(one) for one in _TOKENS))
        folder = None if name is None else os.path.dirname(client.describe_for_engines(name))
    if engine is not None:
        typer.echo(opening.lines(engine))
    else:
        blocks = [f"-- {TITLES[one]} --\n\n{opening.lines(one)}\n" for one in ENGINES]
        typer.echo("\n".join(blocks), nl=False)
    if folder is not None and not os.path.isdir(folder):
        typer.echo(
            f"engines on this machine cannot read the table: they need the folder {folder}, "
            f"which does not exist here",
            err=True,
        )
