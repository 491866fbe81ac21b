"""Checkpoints of a Delta table's log: one file or several, in Parquet or JSON, with sidecars."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from windrow_core.files.footers import TAIL_BYTES, SchemaLimit, footer_bytes_in, footer_in
from windrow_core.files.places import open_file, place_of
from windrow_core.files.table_paths import home_of
from windrow_service.delta.actions import (
    Head,
    add_columns,
    added_rows,
    changes_of,
    head_of_lines,
    head_of_rows,
)
from windrow_service.delta.errors import DeltaLogError
from windrow_service.delta.log import (
    Checkpoint,
    LogGoneError,
    read_of,
    require_text,
    unreadable,
    uri_of,
)

_BATCH_ROWS = 2**16
# Statistics may be columns, several for each of the table.
_MAX_FIELDS = 100_000
_MAX_JSON_BYTES = 2**28
_SIDECARS = "_sidecars"
_MAX_SIDECARS = 100_000


def read_head(location: str, checkpoint: Checkpoint) -> tuple[Head, list[str]]:
    """Return the head in a checkpoint, and the names of its files, which name the table's files.

    Raises:
        LogGoneError: A file of the checkpoint is missing.
        DeltaLogError: The checkpoint cannot be read.
    """
    head, sidecars = Head(), []
    for name in checkpoint.names:
        if name.endswith(".json"):
            part, part_sidecars = head_of_lines(location, _body(location, name))
        else:
            with _opened(location, name) as file:
                names = [
                    one
                    for one in ("protocol", "metaData", "sidecar")
                    if file.schema_arrow.get_field_index(one) >= 0
                ]
                part, part_sidecars = head_of_rows(location, _only_heads(file, names))
        head = head.then(part)
        sidecars += part_sidecars
    if len(sidecars) > _MAX_SIDECARS:
        raise DeltaLogError(
            location, f"has a checkpoint of {len(sidecars):,} files: write another checkpoint"
        )
    # Sidecars lie in a folder of their own, whatever folder the log names.
    beside = [f"{_SIDECARS}/{unquote(name.rpartition('/')[2])}" for name in sidecars]
    return head, [*checkpoint.names, *beside]


def _only_heads(file: pq.ParquetFile, names: list[str]) -> pa.Table:
    """Return the rows that belong to the head; nearly all others name files."""
    if not names:
        return pa.table({})
    tables = []
    for batch in file.iter_batches(_BATCH_ROWS, columns=names):
        flags = [batch.column(name).is_valid() for name in names]
        rows = flags[0]
        for more in flags[1:]:
            rows = pc.or_(rows, more)
        tables.append(pa.Table.from_batches([batch.filter(rows)]))
    return pa.concat_tables(tables) if tables else pa.table({})


def read_files(
    location: str, name: str, partition: list[str]
) -> Iterator[tuple[pa.Table, pa.StructArray | None]]:
    """Yield the table's files that a file of a checkpoint names, some at a time.

    Args:
        location: Location of the table.
        name: Name of the checkpoint's file.
        partition: The log's names of the partition columns.

    Yields:
        Files with the columns `add_columns`, and their statistics if these are structs.

    Raises:
        LogGoneError: The file is missing.
        DeltaLogError: The file cannot be read.
    """
    if name.endswith(".json"):
        yield changes_of(location, [_body(location, name)], partition).added, None
        return
    with _opened(location, name) as file:
        at = file.schema_arrow.get_field_index("add")
        if at < 0:
            return
        type_ = file.schema_arrow.field(at).type
        if not pt.is_struct(type_):
            raise DeltaLogError(
                location, f"is damaged: checkpoint {name!r} has columns of other types; restore it"
            )
        names = [field.name for field in type_ if field.name in _WANTED]
        for batch in file.iter_batches(_BATCH_ROWS, columns=[f"add.{one}" for one in names]):
            adds = batch.column("add")
            yield added_rows(location, adds.filter(adds.is_valid()), partition)


_WANTED = {*add_columns([]).names, "stats_parsed"}


def _body(location: str, name: str) -> bytes:
    body = read_of(location, name, _MAX_JSON_BYTES)
    if body is None:
        raise LogGoneError(name)
    if len(body) > _MAX_JSON_BYTES:
        raise DeltaLogError(
            location, f"has a checkpoint {name!r} of more than {_MAX_JSON_BYTES:,} bytes of JSON"
        )
    require_text(location, name, body)
    return body


def _refuse_wide(file: Any) -> None:
    """Refuse a checkpoint with too many fields, before its footer is decoded."""
    size_bytes = file.seek(0, os.SEEK_END)
    file.seek(max(0, size_bytes - TAIL_BYTES))
    length = footer_bytes_in(file.read(TAIL_BYTES))
    if 0 < length <= size_bytes:
        file.seek(size_bytes - length)
        # Its schema comes first.
        SchemaLimit(_MAX_FIELDS).check(footer_in(file.read(length)))
    file.seek(0)


@contextmanager
def _opened(location: str, name: str) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file of the log; errors while it is read become errors of the log."""
    uri = uri_of(location, name)
    try:
        with open_file(home_of(location), uri) as source:
            _refuse_wide(source.file)
            # Where each read is a request, fewer and larger ones.
            yield pq.ParquetFile(source.file, pre_buffer=place_of(location).request_s > 0)
    except FileNotFoundError as error:
        raise LogGoneError(name) from error
    except (OSError, pa.ArrowException, ValueError, KeyError) as error:
        raise unreadable(location, name, error) from error
