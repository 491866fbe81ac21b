"""`windrow write-plan`: how many files a write should make, and the outcome of each scheme."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, get_args

import pyarrow as pa
import pyarrow.types as pt
import typer

from windrow.connecting import connect
from windrow_calls.arguments import checked
from windrow_calls.terminal.consoles import show_result
from windrow_calls.terminal.fields import FieldsOf, with_fields
from windrow_calls.terminal.options import DEFAULT_URL, AsJson, Url
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

*_OTHER_SCHEMES, _LAST_SCHEME = get_args(WriteScheme)


@with_fields
def write_plan(
    table: TableName,
    fields: Annotated[
        dict[str, Any],
        FieldsOf(
            WritePlanRequest,
            {
                "target_file_size": "--target-size",
                "target_rows": "",
                "rows": "",
                "bytes_per_row": "",
                "keys_from": "",
                "files": "",
                "files_per_key": "",
                "scheme": "",
                "salt_columns": "--salt",
                "source_tasks": "",
                "parallelism": "",
                "efficiency": "",
                "max_files": "",
            },
            {
                "target_rows": {"metavar": "ROWS"},
                "rows": {"metavar": "ROWS"},
                "bytes_per_row": {"metavar": "BYTES"},
                "keys_from": {
                    "help": "Take the rows per partition from the table's files, or from its last "
                    "write (history), instead of --counts."
                },
                "files": {
                    "help": "Fixed number of files for all partitions together, instead of a target."
                },
                "files_per_key": {
                    "help": "Fixed number of files for each partition, instead of a target."
                },
                "scheme": {
                    "help": "How rows are placed on Spark partitions: "
                    f"{', '.join(_OTHER_SCHEMES)} or {_LAST_SCHEME}; by default the best one.",
                    "metavar": "SCHEME",
                },
                "salt_columns": {
                    "help": "Column whose hash divides the rows of a partition; repeatable. Its "
                    "values must not change if the rows are computed again."
                },
                "source_tasks": {"metavar": "TASKS"},
                "parallelism": {"metavar": "TASKS"},
                "efficiency": {"metavar": "RATIO"},
            },
        ),
    ],
    counts: Annotated[
        Path | None,
        typer.Option(
            help="Rows per partition: a .csv, .json, .jsonl or .parquet file with the partition "
            "columns, `rows` and, for a bucketed table, `bucket`.",
            metavar="FILE",
        ),
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
        if counts is not None:
            fields["keys"] = read_counts(counts, client.table(table))
        request = checked(WritePlanRequest, {"table": table, "compare": compare, **fields})
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
