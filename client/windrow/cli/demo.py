"""`windrow demo`: Spark alone against Spark with Windrow, on a table of real small files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from windrow.cli.consoles import error_console, show, show_json
from windrow.cli.options import AsJson


def demo(
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
    """Read 19,486 small files three ways on Spark, compare the answers and the seconds."""
    from windrow.demo import comparison_as_json, comparison_report, run_demo

    outcome = run_demo(data, runs=runs, days=days, console=error_console())
    if as_json:
        show_json(comparison_as_json(outcome))
    else:
        show(*comparison_report(outcome))
    if not outcome.agreed:
        raise typer.Exit(1)
