"""`windrow worker …`: run, list and forget the workers that cache files."""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from windrow.connecting import connect
from windrow_calls.terminal.consoles import show, show_result
from windrow_calls.terminal.options import DEFAULT_URL, AsJson, Url, byte_size
from windrow_calls.terminal.render import drawn_list, message
from windrow_cli.groups import command_group
from windrow_core.models import WORKER_ID_PATTERN
from windrow_core.sizes import size_text
from windrow_tables.host_cache.hosts import this_host, worker_id_of
from windrow_tables.host_cache.opening import FOLDER_VARIABLE

app = command_group("Manage the workers that cache files on their disks.")

WorkerId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the worker, from `windrow worker list`.")
]


@app.command("list")
def list_workers(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List running workers and their cache statistics."""
    with connect(url, check=False) as client:
        workers = list(client.workers())
    none = ("no workers are running", "`windrow worker run` starts one")
    show_result({"workers": workers}, lambda: drawn_list(workers, *none), as_json)


@app.command()
def forget(worker_id: WorkerId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Forget a worker at once.

    A worker that still runs returns with its next heartbeat.
    """
    with connect(url, check=False) as client:
        client.forget_worker(worker_id)
    show_result({"forgotten": worker_id}, lambda: message(f"forgot worker {worker_id}"), as_json)


_DEFAULT_FOLDER = Path("~/.cache/windrow")
# Short, because the agent itself tries again.
_ANSWER_TIMEOUT_S = 15.0
# The empty database alone takes a few hundred KB.
_LEAST_BYTES = 16 * 2**20


def _worker_id(text: str) -> str:
    if not re.fullmatch(WORKER_ID_PATTERN, text):
        raise typer.BadParameter(
            f"{text!r} is not an id: use up to 128 letters, digits, '_', '-' and '.'"
        )
    return text


def _capacity(text: str) -> int:
    size_bytes = byte_size(text)
    if size_bytes < _LEAST_BYTES:
        raise typer.BadParameter(f"{text!r} is too small for a cache: give at least 16MB")
    return size_bytes


@app.command()
def run(
    url: Url = DEFAULT_URL,
    cache_dir: Annotated[
        Path,
        typer.Option(
            envvar=FOLDER_VARIABLE,
            help="Folder of the cache on a local disk; created if needed.",
            metavar="DIR",
        ),
    ] = _DEFAULT_FOLDER,
    capacity: Annotated[
        int,
        typer.Option(
            parser=_capacity, help="Maximum size of the cache, such as 500GB.", metavar="SIZE"
        ),
    ] = "10GB",  # type: ignore[assignment] # read by the parser
    host: Annotated[
        str | None,
        typer.Option(help="Spark's name for this host; detected by default.", metavar="HOST"),
    ] = None,
    worker_id: Annotated[
        str | None,
        typer.Option(
            "--id",
            parser=_worker_id,
            help="Permanent id of this worker; its host by default.",
            metavar="ID",
        ),
    ] = None,
    ttl: Annotated[
        int,
        typer.Option(
            help="Plans ignore this worker after this time without a heartbeat.",
            metavar="SECONDS",
            min=1,
            max=3600,
        ),
    ] = 30,
) -> None:
    """Run this host's cache until stopped.

    Start one on each host. Executors use the cache if WINDROW_CACHE_DIR in their environment
    names its folder. They must run as the same user as this command.
    """
    # Imported here because it does not work on Windows, where the other commands do.
    from windrow_tables.host_cache.agent import Agent

    host = host or this_host()
    folder = os.path.abspath(cache_dir.expanduser())
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("windrow").setLevel(logging.INFO)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    with connect(url, timeout_s=_ANSWER_TIMEOUT_S, attempts=1, check=False) as client:
        agent = Agent(
            client,
            folder,
            host=host,
            capacity_bytes=capacity,
            worker_id=worker_id or worker_id_of(host),
            ttl_seconds=ttl,
        )
        show(
            message(
                f"caching up to {size_text(capacity)} for {host}: start its executors with "
                f"{FOLDER_VARIABLE}={folder}"
            )
        )
        agent.run(stopped)
