"""`windrow write-plan`: how many files a write should make, and what each scheme would make."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from windrow.calls.arguments import checked
from windrow.cli.counts import read_counts
from windrow.cli.options import DEFAULT_URL, AsJson, Parallelism, TableName, Url, byte_size
from windrow.cli.write_plan_render import write_plan_report
from windrow.connecting import connect
from windrow.models import WritePlanRequest
from windrow.terminal.consoles import show, show_json


def write_plan(
    table: TableName,
    target_size: Annotated[
        int | None,
        typer.Option(parser=byte_size, help="Bytes per file; 128MB by default.", metavar="SIZE"),
    ] = None,
    target_rows: Annotated[
        int | None, typer.Option(help="Rows per file, instead of a size.")
    ] = None,
    rows: Annotated[int | None, typer.Option(help="Rows to be written, all together.")] = None,
    bytes_per_row: Annotated[
        float | None,
        typer.Option(help="In files; learnt from the table's writes or files by default."),
    ] = None,
    counts: Annotated[
        Path | None,
        typer.Option(
            help="Rows per partition: .csv, .json, .jsonl or .parquet with the partition columns, "
            "`rows`, and `bucket` of a bucketed table.",
            metavar="FILE",
        ),
    ] = None,
    keys_from: Annotated[
        str | None,
        typer.Option(
            help="Take the rows per partition from the table's `files`, or from the last write "
            "(`history`).",
            metavar="files|history",
        ),
    ] = None,
    files: Annotated[
        int | None, typer.Option(help="A number of files for all partitions together.")
    ] = None,
    files_per_key: Annotated[
        int | None, typer.Option(help="The same number of files for every partition.")
    ] = None,
    scheme: Annotated[
        str | None,
        typer.Option(
            help="coalesce, repartition, columns, salted, range, range_hash or exact; the best by "
            "default."
        ),
    ] = None,
    salt: Annotated[
        list[str] | None,
        typer.Option(help="Column that divides the rows of a partition; may be repeated."),
    ] = None,
    source_tasks: Annotated[
        int | None,
        typer.Option(help="Spark partitions of the data before it is written, for coalesce."),
    ] = None,
    parallelism: Parallelism = None,
    efficiency: Annotated[
        float | None,
        typer.Option(
            help="Spark partitions with rows, per file, wanted of salted; 0.9 by default."
        ),
    ] = None,
    max_files: Annotated[
        int | None, typer.Option(help="Refuse a plan of more files; 100,000 by default.")
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Show what every scheme would make.")
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Plan a write: how many files, of which size, and how Spark is to make just those."""
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
