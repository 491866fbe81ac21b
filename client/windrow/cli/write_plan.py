"""`windrow write-plan`: how many files a write should make, and how each scheme would do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from windrow.calls.arguments import checked
from windrow.cli.counts import read_counts
from windrow.cli.write_plan_render import write_plan_report
from windrow.connecting import connect
from windrow.models import WritePlanRequest
from windrow.terminal.consoles import show, show_json
from windrow.terminal.options import DEFAULT_URL, AsJson, Parallelism, TableName, Url, byte_size


def write_plan(
    table: TableName,
    target_size: Annotated[
        int | None,
        typer.Option(parser=byte_size, help="Bytes per file; 128MB by default.", metavar="SIZE"),
    ] = None,
    target_rows: Annotated[
        int | None, typer.Option(help="Rows per file, instead of a size.")
    ] = None,
    rows: Annotated[int | None, typer.Option(help="Total number of rows to write.")] = None,
    bytes_per_row: Annotated[
        float | None,
        typer.Option(
            help="Bytes that a row takes in files; taken from the table's writes or files by "
            "default."
        ),
    ] = None,
    counts: Annotated[
        Path | None,
        typer.Option(
            help="Rows per partition: a .csv, .json, .jsonl or .parquet file with the partition "
            "columns, `rows` and, for a bucketed table, `bucket`.",
            metavar="FILE",
        ),
    ] = None,
    keys_from: Annotated[
        str | None,
        typer.Option(
            help="Take the rows per partition from the table's `files`, or from its last write "
            "(`history`).",
            metavar="files|history",
        ),
    ] = None,
    files: Annotated[
        int | None, typer.Option(help="Fixed number of files for all partitions together.")
    ] = None,
    files_per_key: Annotated[
        int | None, typer.Option(help="Fixed number of files for each partition.")
    ] = None,
    scheme: Annotated[
        str | None,
        typer.Option(
            help="coalesce, repartition, columns, salted, range, range_hash or exact; by default "
            "the best one."
        ),
    ] = None,
    salt: Annotated[
        list[str] | None,
        typer.Option(
            help="Column whose hash divides the rows of a partition; it must not change between "
            "runs; repeatable."
        ),
    ] = None,
    source_tasks: Annotated[
        int | None,
        typer.Option(help="Number of Spark partitions of the data, for coalesce."),
    ] = None,
    parallelism: Parallelism = None,
    efficiency: Annotated[
        float | None,
        typer.Option(
            help="Non-empty Spark partitions per file that salted aims for; 0.9 by default."
        ),
    ] = None,
    max_files: Annotated[
        int | None, typer.Option(help="Refuse plans of more files; 100,000 by default.")
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Show the predicted outcome of every scheme.")
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Plan how many files to write, and how.

    Shows the number and size of the files, and the repartition scheme that makes them.
    """
    with connect(url) as client:
        given: dict[str, Any] = {
            "table": table,
            "target_file_size": target_size,
            "target_rows": target_rows,
            "rows": rows,
            "bytes_per_row": bytes_per_row,
            "keys": None if counts is None else read_counts(counts, client.table(table)),
            "keys_from": keys_from,
            "files": files,
            "files_per_key": files_per_key,
            "scheme": scheme,
            "salt_columns": salt or [],
            "source_tasks": source_tasks,
            "parallelism": parallelism,
            "efficiency": efficiency,
            "max_files": max_files,
            "compare": compare,
        }
        request = checked(
            WritePlanRequest, {name: value for name, value in given.items() if value is not None}
        )
        plan = client.write_plan(request)
    if as_json:
        show_json(plan)
    else:
        show(write_plan_report(plan))
