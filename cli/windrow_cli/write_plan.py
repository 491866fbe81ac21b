"""`windrow write-plan`: how many files a write should make, and the outcome of each scheme."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.types as pt
import typer

from windrow.connecting import connect
from windrow_calls.arguments import checked
from windrow_calls.terminal.consoles import show_result
from windrow_calls.terminal.options import DEFAULT_URL, AsJson, Parallelism, Url, byte_size
from windrow_calls.terminal.render import drawn
from windrow_cli.arguments import TableName
from windrow_cli.errors import CommandError
from windrow_core.files.types import spark_type
from windrow_core.models import (
    Column,
    KeyCounts,
    Scalar,
    TableInfo,
    WritePlanRequest,
    WriteScheme,
)


def write_plan(
    table: TableName,
    target_size: Annotated[
        int | None,
        typer.Option(
            parser=byte_size,
            help="Target size of a file, such as 256MB; 128MB by default.",
            metavar="SIZE",
        ),
    ] = None,
    target_rows: Annotated[
        int | None,
        typer.Option(help="Target number of rows of a file, instead of a size.", metavar="ROWS"),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="Total number of rows to write.", metavar="ROWS")
    ] = None,
    bytes_per_row: Annotated[
        float | None,
        typer.Option(
            help="Bytes that a row takes in files, such as 40; taken from the table's writes or files "
            "by default.",
            metavar="BYTES",
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
        Literal["files", "history"] | None,
        typer.Option(
            help="Take the rows per partition from the table's files, or from its last write "
            "(history), instead of --counts.",
        ),
    ] = None,
    files: Annotated[
        int | None,
        typer.Option(
            help="Fixed number of files for all partitions together, instead of a target.",
            metavar="COUNT",
        ),
    ] = None,
    files_per_key: Annotated[
        int | None,
        typer.Option(
            help="Fixed number of files for each partition, instead of a target.", metavar="COUNT"
        ),
    ] = None,
    scheme: Annotated[
        WriteScheme | None,
        typer.Option(
            help="How rows are placed on Spark partitions: coalesce, repartition, columns, salted, "
            "range_hash or exact; by default the best one.",
            metavar="SCHEME",
        ),
    ] = None,
    salt: Annotated[
        list[str] | None,
        typer.Option(
            help="Column whose hash divides the rows of a partition; repeatable. Its values must not "
            "change if the rows are computed again.",
            metavar="COLUMN",
        ),
    ] = None,
    source_tasks: Annotated[
        int | None,
        typer.Option(
            help="Number of Spark partitions that the data has; coalesce needs it.", metavar="COUNT"
        ),
    ] = None,
    parallelism: Parallelism = None,
    efficiency: Annotated[
        float | None,
        typer.Option(
            help="Spark partitions with rows, per file, that salted aims for, up to 1; 0.9 by "
            "default.",
            metavar="RATIO",
        ),
    ] = None,
    max_files: Annotated[
        int | None,
        typer.Option(help="Refuse plans of more files; 100,000 by default.", metavar="COUNT"),
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
    with connect(url, check=False) as client:
        values: dict[str, Any] = {
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
            WritePlanRequest, {name: value for name, value in values.items() if value is not None}
        )
        plan = client.write_plan(request)
    show_result(plan, lambda: drawn(plan, ["source_tasks"]), as_json)


_ROWS, _BUCKET = "rows", "bucket"


def read_counts(path: Path, table: TableInfo) -> KeyCounts:
    """Return the keys in a file and their row counts; the suffix gives the file's format.

    Args:
        path: A file with all partition columns, `rows` and, for a bucketed table, `bucket`.
        table: The table to be written. If its partition columns are not known, all other columns
            of the file are taken as partition columns.
    """
    own = _partition_columns(table)
    try:
        counts = _read(path, [] if own is None else own)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise CommandError(f"{path} cannot be read: {error}") from error
    is_bucketed = table.definition.bucket_spec is not None
    besides = [_ROWS, _BUCKET] if is_bucketed else [_ROWS]
    names = [name for name in counts.column_names if name not in besides]
    if own is not None:
        names = [column.name for column in own]
    missing = [name for name in [*names, *besides] if name not in counts.column_names]
    if missing:
        raise CommandError(
            f"{path} has no column {', '.join(missing)}: it must hold "
            f"{', '.join([*names, *besides])}"
        )
    columns = own or [Column(name=name, type=spark_type(counts[name].type)) for name in names]
    return KeyCounts(
        columns=columns or None,
        values=[_scalars(counts[name]) for name in names],
        buckets=counts[_BUCKET].to_pylist() if is_bucketed else None,
        rows=counts[_ROWS].to_pylist(),
    )


def _partition_columns(table: TableInfo) -> list[Column] | None:
    if table.current_snapshot is not None:
        return table.current_snapshot.partition_columns
    return table.definition.partition_columns


def _read(path: Path, columns: list[Column]) -> pa.Table:
    # Each import takes a while, and only one of them is needed.
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        from pyarrow import parquet

        return parquet.read_table(path)
    if suffix == ".csv":
        from pyarrow import csv

        # Text such as 007 must not become a number.
        texts = {column.name: pa.string() for column in columns if column.type == "string"}
        return csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=texts))
    if suffix == ".json":
        return pa.Table.from_pylist(json.loads(path.read_text()))
    if suffix == ".jsonl":
        lines = path.read_text().splitlines()
        return pa.Table.from_pylist([json.loads(line) for line in lines if line.strip()])
    raise CommandError(
        f"{path} does not have the suffix of a counts file: name it .csv, .json, .jsonl or .parquet"
    )


def _scalars(column: pa.ChunkedArray) -> list[Scalar]:
    type_ = column.type
    plain = pt.is_boolean(type_) or pt.is_integer(type_) or pt.is_floating(type_)
    values: list[Scalar] = (column if plain else column.cast(pa.string())).to_pylist()
    return values
