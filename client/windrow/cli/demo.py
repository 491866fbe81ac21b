"""`windrow demo`: Spark alone against Spark with Windrow, on a table of real small files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter

from windrow.cli.options import AsJson
from windrow.models.base import ByteSize
from windrow.terminal.consoles import error_console, save_picture, show, show_json

app = typer.Typer()


@app.callback(invoke_without_command=True)
def demo(
    context: typer.Context,
    data: Annotated[
        Path, typer.Option(help="Folder for the table; written once, then reused.", metavar="DIR")
    ] = Path("data"),
    runs: Annotated[
        int, typer.Option(help="Timed runs of each query; the median counts.", min=1)
    ] = 3,
    days: Annotated[
        int, typer.Option(help="Only the first days of the year, to be quick.", min=1, max=365)
    ] = 365,
    as_json: AsJson = False,
) -> None:
    """Read 19,486 small files three ways on Spark, compare the answers and the seconds.

    `windrow demo writes` shows how such files come about, and how they do not.
    """
    if context.invoked_subcommand is not None:
        return
    from windrow.demo import comparison_as_json, comparison_report, run_demo

    outcome = run_demo(data, runs=runs, days=days, console=error_console())
    if as_json:
        show_json(comparison_as_json(outcome))
    else:
        show(*comparison_report(outcome))
    if not outcome.agreed:
        raise typer.Exit(1)


@app.command("writes")
def writes(
    data: Annotated[
        Path, typer.Option(help="Folder for the events and both tables.", metavar="DIR")
    ] = Path("data"),
    tasks: Annotated[
        int, typer.Option(help="Tasks that write without a plan.", min=1, max=2000)
    ] = 20,
    days: Annotated[int, typer.Option(help="Days of the table.", min=1, max=3650)] = 365,
    rows: Annotated[int, typer.Option(help="Events of all days.", min=10_000)] = 2_000_000,
    target_size: Annotated[
        str, typer.Option(help="Wanted of a file; as small as the table.", metavar="SIZE")
    ] = "64KB",
    picture: Annotated[
        Path | None, typer.Option(help="Also draw what is printed, as SVG.", metavar="FILE")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a year of events so that its files explode, and then with a plan; show both."""
    from windrow.demo import run_writes_demo, writes_as_json, writes_report

    outcome = run_writes_demo(
        data,
        tasks=tasks,
        days=days,
        row_count=rows,
        target_bytes=TypeAdapter(ByteSize).validate_python(target_size),
        console=error_console(),
    )
    if as_json:
        show_json(writes_as_json(outcome))
    else:
        show(*writes_report(outcome))
    if picture is not None:
        save_picture(picture, "windrow demo writes", *writes_report(outcome))
    if not outcome.agreed:
        raise typer.Exit(1)
