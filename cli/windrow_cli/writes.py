"""`windrow write list | streams | recover`: a table's writes and streams, and recovery."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Annotated

import typer
from rich.console import RenderableType

from windrow.connecting import connect
from windrow_calls.terminal.consoles import show, show_json, show_result
from windrow_calls.terminal.options import DEFAULT_URL, AsJson, Url
from windrow_calls.terminal.render import drawn_grid, drawn_list, message
from windrow_cli.arguments import TableName
from windrow_cli.groups import command_group
from windrow_core.cards import DASH, LAYOUTS, count_text, grid_of_rows, row_of
from windrow_core.models import StreamRecord
from windrow_spark.streaming.waiting import WaitingRows, waiting_rows
from windrow_tables.commits import Recovered, recover

app = command_group("List writes, and recover dead ones.")


@app.command("list")
def list_writes(
    name: TableName,
    limit: Annotated[
        int, typer.Option(help="Number of writes to show.", min=1, metavar="COUNT")
    ] = 20,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List a table's writes, newest first."""
    with connect(url, check=False) as client:
        writes = list(islice(client.writes(name), limit))
    none = f"nothing has been written to {name} through Windrow yet"
    show_result({"writes": writes}, lambda: drawn_list(writes, none), as_json)


@app.command("recover")
def recover_writes(
    name: TableName,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also finish commits that this coordinator does not know, remove the folders of "
            "unknown writes, and abandon commits whose folder is gone.",
        ),
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Finish or undo dead writes.

    Finishes writes that died while committing, and undoes all others. Leaves waiting batches of
    streams to their queries.
    """
    with connect(url, check=False) as client:
        done = recover(client, name, force=force)
        waiting = waiting_rows(client.table(name).definition.location)
    if as_json:
        fields = Recovered.__slots__
        show_json(
            {
                "writes": [{key: getattr(one, key) for key in fields} for one in done],
                "waiting": [one._asdict() for one in waiting],
            }
        )
        return
    if done:
        show(*(message(f"{one.write_id} {one.outcome}: {one.reason}") for one in done))
    else:
        show(message(f"no write to {name} needs recovery"))
    for one in waiting:
        show(
            message(
                f"stream {one.query_id} is left: its query writes the "
                f"{count_text(one.rows, 'row')} of {count_text(one.batches, 'batch', 'batches')} "
                "that wait when it runs"
            )
        )


@app.command("streams")
def list_streams(name: TableName, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the streaming queries that write to a table.

    The one that published last comes first.
    """
    with connect(url, check=False) as client:
        streams = list(client.streams(name))
        waiting = waiting_rows(client.table(name).definition.location)
    show_result(
        {"streams": streams, "waiting": [one._asdict() for one in waiting]},
        lambda: stream_list(name, streams, waiting),
        as_json,
    )


def stream_list(
    name: str, streams: Sequence[StreamRecord], waiting: Sequence[WaitingRows]
) -> RenderableType:
    """List streams with the newest of their batches in a table, and the rows that still wait."""
    if not streams and not waiting:
        return message(f"no stream has written to {name}")
    counts = {one.query_id: f"{one.rows:,}" for one in waiting}
    rows = [{**row_of(one), "waiting rows>": counts.pop(one.query_id, DASH)} for one in streams]
    titles = ("query…", "name…", "newest batch>", "published at (UTC)", "checkpoint…")
    empty = dict.fromkeys(titles, DASH)
    rows += [{**empty, "query…": query, "waiting rows>": text} for query, text in counts.items()]
    return drawn_grid(grid_of_rows(rows, layout=LAYOUTS[StreamRecord]), show_edge=True)
