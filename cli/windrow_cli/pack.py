"""`windrow pack | packs`: pack the small files of a table; list packs, and withdraw them."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from windrow.connecting import connect
from windrow_calls.terminal.consoles import show_result
from windrow_calls.terminal.options import DEFAULT_URL, AsJson, Url, byte_size
from windrow_calls.terminal.render import drawn, drawn_list, message
from windrow_cli.arguments import TableName
from windrow_core.cards import count_text


def pack(
    table: TableName,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what packing costs and saves; change nothing.")
    ] = False,
    max_file_size: Annotated[
        int | None,
        typer.Option(
            parser=byte_size, metavar="SIZE", help="Leave larger files as they are; 1MB by default."
        ),
    ] = None,
    min_files: Annotated[
        int | None,
        typer.Option(metavar="N", help="Minimum number of files of a pack; 48 by default."),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of processes; one per core by default."),
    ] = None,
    rights_are_stated: Annotated[
        bool,
        typer.Option(
            "--rights-are-stated",
            help=(
                "Confirm that everyone who may read the folder of packs may read the whole "
                "table; required on object stores, where Windrow cannot check that."
            ),
        ),
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Copy small files into large packs that are quick to read.

    Packs are large files outside of the table, with the rows of many small ones. The table's own
    files stay as they are. Runs without Spark.
    """
    settings = {"max_file_size": max_file_size, "min_files": min_files}
    options: dict[str, Any] = {name: one for name, one in settings.items() if one is not None}
    with connect(url, check=False) as client:
        if dry_run:
            plan = client.plan_packing(table, **options)
            show_result(plan, lambda: drawn(plan), as_json)
            return
        outcome = client.pack(
            table,
            processes=processes or os.cpu_count(),
            rights_are_stated=rights_are_stated,
            **options,
        )
    answer = {"plan": outcome.plan, "packs": outcome.packs, "left": outcome.left}
    show_result(answer, lambda: drawn(outcome), as_json)


def packs(
    table: TableName,
    withdraw: Annotated[
        bool,
        typer.Option(
            "--withdraw",
            help=(
                "Withdraw all packs of the table: plans no longer offer them to readers, and the "
                "coordinator removes them soon. The table's files stay as they are."
            ),
        ),
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List the packs of a table, or withdraw them."""
    with connect(url, check=False) as client:
        every = client.list_packs(table)
        usable = [one for one in every if one.state == "published"]
        if withdraw:
            for one in usable:
                client.withdraw_pack(table, one.pack_id)
            withdrawn = f"{table}: {count_text(len(usable), 'pack')} withdrawn"
            show_result({"packs": usable}, lambda: message(withdrawn), as_json)
            return
    remedy = f"`windrow pack {table}` makes some"
    show_result(
        {"packs": every}, lambda: drawn_list(every, f"{table} has no packs", remedy), as_json
    )
