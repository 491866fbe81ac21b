"""`windrow compact`: merge the small files of a table, or show what that would change."""

from __future__ import annotations

from typing import Annotated

import typer

from windrow.connecting import connect
from windrow_calls.installed import MissingPackageError
from windrow_calls.terminal.consoles import show_result
from windrow_calls.terminal.fields import CompactionFields, ReadersMaySeeBoth, with_fields
from windrow_calls.terminal.java import require_java
from windrow_calls.terminal.options import (
    DEFAULT_URL,
    AsJson,
    Master,
    Url,
)
from windrow_calls.terminal.render import drawn, message
from windrow_cli.arguments import TableName
from windrow_core.cards import count_text
from windrow_core.models import compaction_card


@with_fields
def compact(
    table: TableName,
    fields: CompactionFields,
    readers_may_see_both: ReadersMaySeeBoth = False,
    by_worker: Annotated[
        bool,
        typer.Option(
            "--by-worker",
            help=(
                "Let a maintenance worker compact the table before its other work, instead of "
                "starting a Spark job here. The table's policy then sets sizes, and what is "
                "worth rewriting."
            ),
        ),
    ] = False,
    withdraw: Annotated[
        bool,
        typer.Option(
            "--withdraw",
            help="Withdraw a request made with --by-worker, unless a worker has already taken it.",
        ),
    ] = False,
    folder: Annotated[
        str | None,
        typer.Option(
            help="With --by-worker: only the partition in this folder, such as ds=2026-11-01.",
            metavar="FOLDER",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be rewritten, but change nothing.")
    ] = False,
    master: Master = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Merge small files of a table where that pays off.

    Runs a Spark job that rewrites them as fewer, larger files.
    """
    if folder is not None and not by_worker:
        raise typer.BadParameter("--folder needs --by-worker; without it, use --filter")
    if withdraw:
        if fields or by_worker or dry_run or master is not None or readers_may_see_both:
            raise typer.BadParameter("--withdraw cannot be combined with other options")
        with connect(url, check=False) as client:
            items = client.withdraw_compaction(table)
        show_result({"items": items}, lambda: message(_withdrawal_text(table, items)), as_json)
        return
    if by_worker:
        if fields or dry_run or master is not None:
            raise typer.BadParameter(
                "--by-worker can be combined only with --folder and --readers-may-see-both: the "
                "policy and the worker decide the rest"
            )
        with connect(url, check=False) as client:
            items = client.request_compaction(
                table, folder=folder, readers_may_see_both=readers_may_see_both
            )
        show_result({"items": items}, lambda: message(*_queue_text(table, items)), as_json)
        return
    if dry_run:
        with connect(url, check=False) as client:
            pages = list(client.plan_compaction(table, **fields))
        show_result(
            {"pages": pages},
            lambda: drawn(compaction_card(pages), ["min_files", "worth_reads"]),
            as_json,
        )
        return
    try:
        from windrow_jobs.compact import run
    except ImportError as error:
        raise MissingPackageError("pyspark", "spark") from error
    require_java()
    with connect(url, check=False) as client:
        run(
            table,
            client,
            master=master,
            as_json=as_json,
            readers_may_see_both=readers_may_see_both,
            **fields,
        )


def _queue_text(table: str, items: int) -> tuple[str, ...]:
    if not items:
        return (
            f"nothing to do: {table} has no small files to merge, or workers have already taken "
            f"them",
        )
    text = f"{count_text(items, 'piece')} of work wait{'s' * (items == 1)}"
    return (
        f"{table}: {text} for a worker",
        f"`windrow maintain --explain {table}` shows the progress, and `windrow compact {table} "
        f"--withdraw` withdraws the request",
    )


def _withdrawal_text(table: str, items: int) -> str:
    if not items:
        return f"nothing to withdraw: no requested compaction of {table} is waiting"
    text = f"{count_text(items, 'piece')} of work wait{'s' * (items == 1)}"
    return f"{table}: {text} no longer"
