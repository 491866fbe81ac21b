"""`windrow maintain`: do the work of maintenance, or explain what is decided about a table."""

from __future__ import annotations

from typing import Annotated

import typer

from windrow.connecting import connect
from windrow_calls.installed import MissingPackageError
from windrow_calls.terminal.consoles import show_result
from windrow_calls.terminal.java import require_java
from windrow_calls.terminal.options import (
    DEFAULT_URL,
    AsJson,
    LeaseSeconds,
    MaintainedTables,
    Master,
    Once,
    Url,
    table_name,
)
from windrow_calls.terminal.render import drawn


def maintain(
    explain: Annotated[
        str | None,
        typer.Option(
            parser=table_name,
            help="Only show what maintenance decided about this table, and why.",
            metavar="TABLE",
        ),
    ] = None,
    tables: MaintainedTables = "*",
    once: Once = False,
    lease_seconds: LeaseSeconds = 60,
    master: Master = None,
    without_spark: Annotated[
        bool,
        typer.Option(
            "--without-spark",
            help="Only do work that needs neither Spark nor Java: pack files, and drop old "
            "partitions.",
        ),
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Do the maintenance that policies ask for.

    Merges or packs small files of the tables that policies name, and drops their old partitions, as
    the budget allows. Runs a Spark job, which takes its work from the coordinator; several may run
    at the same time.
    """
    if explain is not None:
        with connect(url, check=False) as client:
            maintenance = client.maintenance(explain)
        show_result(maintenance, lambda: drawn(maintenance), as_json)
        return
    try:
        from windrow_jobs.maintain import run
    except ImportError as error:
        raise MissingPackageError("pyspark", "spark") from error
    if not without_spark:
        require_java()
    with connect(url, check=False) as client:
        run(
            client,
            pattern=tables,
            once=once,
            lease_seconds=lease_seconds,
            master=master,
            without_spark=without_spark,
            as_json=as_json,
        )
