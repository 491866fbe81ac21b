"""Arguments of several commands, and how shells complete them with names of the coordinator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Annotated

import typer

from windrow.client import Client
from windrow.connecting import connect
from windrow_calls.terminal.options import table_name

# Whoever presses Tab does not wait for longer; the names that came until then are offered.
_PATIENCE_S = 2.0


def tables(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of tables that begin with a text."""
    return _names(context, incomplete, lambda client: (one.name for one in client.tables()))


def rules(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of a table's cache rules that begin with a text."""
    table = context.params.get("table")
    return _names(
        context, incomplete, lambda client: (one.rule for one in client.cache_rules(table))
    )


TableName = Annotated[
    str,
    typer.Argument(
        parser=table_name, metavar="NAME", help="Name of the table.", autocompletion=tables
    ),
]


def _names(
    context: typer.Context, incomplete: str, names_of: Callable[[Client], Iterator[str]]
) -> list[str]:
    names: list[str] = []
    end = time.monotonic() + _PATIENCE_S
    url = context.params.get("url")
    # There is nobody to tell of an error: the shell just offers nothing.
    with (
        suppress(Exception),
        connect(url, check=False, timeout_s=_PATIENCE_S, attempts=1) as client,
    ):
        for name in names_of(client):
            if name.startswith(incomplete):
                names.append(name)
            if time.monotonic() > end:
                break
    return names
