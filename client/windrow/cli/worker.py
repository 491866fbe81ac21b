"""`windrow worker …`: run, list and forget the workers that cache files."""

from __future__ import annotations

from typing import Annotated

import typer

from windrow.cli import agent
from windrow.cli.cache_render import worker_list
from windrow.connecting import connect
from windrow.terminal.consoles import show, show_json
from windrow.terminal.options import DEFAULT_URL, AsJson, Url
from windrow.terminal.render import message

app = typer.Typer(
    help="Manage the workers that cache files on their disks.",
    invoke_without_command=True,
)

WorkerId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the worker, from `windrow worker list`.")
]


@app.callback()
def _root(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("list")
def list_workers(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List running workers and their cache statistics."""
    with connect(url) as client:
        found = list(client.workers())
    if as_json:
        show_json({"workers": [worker.model_dump(mode="json") for worker in found]})
    else:
        show(worker_list(found))


@app.command()
def forget(worker_id: WorkerId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Forget a worker at once.

    A worker that still runs returns with its next heartbeat.
    """
    with connect(url) as client:
        client.forget_worker(worker_id)
    if as_json:
        show_json({"forgotten": worker_id})
    else:
        show(message(f"forgot worker {worker_id}"))


app.command("run")(agent.run)
