"""Reading files of row counts per partition."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.types as pt

from windrow.errors import WindrowError
from windrow.files.types import spark_type
from windrow.models import Column, KeyCounts, Scalar, TableInfo

_ROWS, _BUCKET = "rows", "bucket"


class CountsFileError(WindrowError):
    """A file does not say how many rows each partition holds."""


def read_counts(path: Path, table: TableInfo) -> KeyCounts:
    """Return the keys in a file and their row counts; the suffix gives the file's format.

    Args:
        path: A file with all partition columns, `rows` and, for a bucketed table, `bucket`.
        table: The table to be written. If its partition columns are not known, all other columns
            of the file are taken as partition columns.

    Raises:
        CountsFileError: The file cannot be read as row counts.
    """
    own = _partition_columns(table)
    try:
        counts = _read(path, [] if own is None else own)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise CountsFileError(f"{path} cannot be read: {error}") from error
    is_bucketed = table.definition.bucket_spec is not None
    besides = [_ROWS, _BUCKET] if is_bucketed else [_ROWS]
    names = [name for name in counts.column_names if name not in besides]
    if own is not None:
        names = [column.name for column in own]
    missing = [name for name in [*names, *besides] if name not in counts.column_names]
    if missing:
        raise CountsFileError(
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
    raise CountsFileError(
        f"{path} is not named as a file of counts: name it .csv, .json, .jsonl or .parquet"
    )


def _scalars(column: pa.ChunkedArray) -> list[Scalar]:
    type_ = column.type
    plain = pt.is_boolean(type_) or pt.is_integer(type_) or pt.is_floating(type_)
    values: list[Scalar] = (column if plain else column.cast(pa.string())).to_pylist()
    return values
