"""The demo's commands: reads and writes, on Spark alone and with Windrow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter

from windrow_calls.terminal.consoles import error_console, show, show_json
from windrow_calls.terminal.options import AsJson
from windrow_cli.app import main as run_commands
from windrow_core.models.base import ByteSize

PROGRAM = "python -m windrow_demo"

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def main() -> None:
    """Run the command given in `sys.argv`, and exit."""
    run_commands(app, PROGRAM)


@app.callback(invoke_without_command=True)
def demo(
    context: typer.Context,
    data: Annotated[
        Path, typer.Option(help="Folder of the table; written once, then reused.", metavar="DIR")
    ] = Path("data"),
    runs: Annotated[
        int | None,
        typer.Option(
            help="Timed runs of each query; the median counts. "
            "By default 3, or fewer where that would take more than five minutes.",
            min=1,
        ),
    ] = None,
    days: Annotated[
        int, typer.Option(help="Use only the first days of the year.", min=1, max=365)
    ] = 365,
    as_json: AsJson = False,
) -> None:
    """Compare Spark with and without Windrow.

    Reads 19,486 small files in four ways on Spark, and compares answers and times.
    `python -m windrow_demo writes` shows how small files arise, and how to avoid them, and
    `python -m windrow_demo engines` reads them with DuckDB, Polars, PyIceberg and Spark.
    """
    if context.invoked_subcommand is not None:
        return
    from windrow_demo.report import comparison_as_json, comparison_report
    from windrow_demo.run import run_demo

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
        Path, typer.Option(help="Folder of the events and both tables.", metavar="DIR")
    ] = Path("data"),
    tasks: Annotated[
        int, typer.Option(help="Number of tasks that write without a plan.", min=1, max=2000)
    ] = 20,
    days: Annotated[int, typer.Option(help="Number of days in the table.", min=1, max=3650)] = 365,
    rows: Annotated[int, typer.Option(help="Number of events in all.", min=10_000)] = 2_000_000,
    target_size: Annotated[
        str, typer.Option(help="Target size of a file; small, like the table.", metavar="SIZE")
    ] = "64KB",
    picture: Annotated[
        Path | None, typer.Option(help="Also save the output as an SVG picture.", metavar="FILE")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write events without and with a plan.

    Without a plan, the number of files explodes. Shows the files of both tables.
    """
    from windrow_demo.pictures import save_picture
    from windrow_demo.writes import run_writes_demo
    from windrow_demo.writes_report import writes_as_json, writes_report

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
        save_picture(picture, f"{PROGRAM} writes", *writes_report(outcome))
    if not outcome.agreed:
        raise typer.Exit(1)


@app.command("engines")
def engines(
    data: Annotated[
        Path, typer.Option(help="Folder of the table; written once, then reused.", metavar="DIR")
    ] = Path("data"),
    days: Annotated[
        int, typer.Option(help="Use only the first days of the year.", min=1, max=365)
    ] = 365,
    as_json: AsJson = False,
) -> None:
    """Read the table with DuckDB, Polars, PyIceberg and Spark.

    Each reads the bare folder, and then the same rows by one coordinator.
    """
    from windrow_demo.engines import run_engines_demo
    from windrow_demo.engines_report import engines_as_json, engines_report

    outcome = run_engines_demo(data, days=days, console=error_console())
    if as_json:
        show_json(engines_as_json(outcome))
    else:
        show(*engines_report(outcome))
    if not outcome.agreed:
        raise typer.Exit(1)
