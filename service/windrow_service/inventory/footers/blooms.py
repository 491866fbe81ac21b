"""Bloom filters of chosen columns of a table's files."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt
from pyarrow._orc import ORCReader

from windrow_core.files.access import is_of_system, why_inaccessible
from windrow_core.files.calendars import has_calendar, is_certain, is_settled
from windrow_core.files.errors import RESTORE
from windrow_core.files.objects.requests import Part
from windrow_core.files.objects.troubles import ChangedObjectError, ObjectError
from windrow_core.files.places import open_file
from windrow_core.files.remote import begin_read
from windrow_core.files.rows import bloom_columns
from windrow_core.files.schema import ColumnNames
from windrow_core.files.status import FileStatus
from windrow_core.files.table_paths import absolute_path, home_and_path
from windrow_service.inventory.errors import BloomColumnError
from windrow_service.inventory.footers.chunked import in_chunks
from windrow_service.inventory.progress import ProgressMeter
from windrow_service.orc.positions import are_nameless
from windrow_service.orc.reading import alike_in
from windrow_service.planner.pruning.bloom import MAX_VALUES, bloom_filter, can_filter

# An object of up to this size is read with one request instead of one for each part, and a few
# such objects are requested ahead.
_READ_WHOLE_BYTES = 8 * 2**20
_FILES_AHEAD = 8


@dataclass(slots=True)
class ChunkFilters:
    """Bloom filters of a few files: for each file, one filter per column."""

    filters: list[list[bytes]] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


def chosen_columns(requested_names: Sequence[str], data: pa.Schema) -> list[str]:
    """Return the data columns for which Bloom filters are requested, in the table's spelling."""
    names = ColumnNames(data)
    columns: dict[str, None] = {}
    for name in requested_names:
        at = names.find(name)
        if at is None:
            raise BloomColumnError(name, "is not among the columns of the files")
        if not can_filter(data.field(at).type):
            raise BloomColumnError(name, f"is {data.field(at).type}, which has no order")
        columns[data.field(at).name] = None
    return list(columns)


def carried_filters(
    columns: Sequence[str], previous_rows: pa.Array, previous: pa.Table | None
) -> pa.Table:
    """Return the filters of n files that a previous inventory has; null where it has none.

    Args:
        columns: The columns whose filters are wanted.
        previous_rows: For each file its row in `previous`, or null.
        previous: The files of the previous inventory.
    """
    positions = {
        name: at for at, name in enumerate(bloom_columns(previous.schema) if previous else ())
    }
    by_lower_name = {name.lower(): at for name, at in positions.items()}
    filters = {}
    for name in columns:
        at = by_lower_name.get(name.lower())
        filters[name] = (
            pc.struct_field(previous["bloom"], [at]).take(previous_rows)
            if previous is not None and at is not None
            else pa.chunked_array([pa.nulls(len(previous_rows), pa.large_binary())])
        )
    return pa.table(filters)


def build_missing(
    filters: pa.Table,
    location: str,
    files: pa.Table,
    meter: ProgressMeter,
    executor: Executor | None,
    table_format: str = "parquet",
) -> pa.Table:
    """Return the filters of n files, after building the missing ones from the files.

    Args:
        filters: n rows of `carried_filters`.
        location: Absolute path of the table's folder, or its URI.
        files: n rows of a `Listing`.
        meter: Stops the work when the caller asks for that.
        executor: Where files are read; see `in_chunks`.
        table_format: Format of the files, as for `take_inventory`.
    """
    lacks = np.zeros(len(files), np.bool_)
    for column in filters.columns:
        lacks |= column.is_null().to_numpy()
    rows = np.flatnonzero(lacks)
    if not len(rows):
        return filters
    names = filters.column_names
    chunks = in_chunks(
        files.take(pa.array(rows)),
        partial(read_filters, location, names, table_format=table_format),
        lambda unreadable: ChunkFilters(unreadable=unreadable),
        lambda _: meter.add(),
        executor,
        meter.check_cancelled,
        table_format=table_format,
    )
    # Position of each file's filters among the carried-over ones, followed by the newly built ones.
    source = np.arange(len(files))
    source[rows] = len(files) + np.arange(len(rows))
    new_filters = {}
    for at, name in enumerate(names):
        new = [
            pa.array([filters_of[at] for filters_of in chunk.filters], pa.large_binary())
            for chunk in chunks
        ]
        new_filters[name] = pa.chunked_array([*filters[name].chunks, *new]).take(pa.array(source))
    return pa.table(new_filters)


def filter_struct(filters: pa.Table) -> pa.ChunkedArray:
    """Return filters as the column `bloom` of an inventory, which itself is never null."""
    return pa.chunked_array(
        [
            pa.StructArray.from_arrays(batch.columns, names=batch.schema.names)
            for batch in filters.to_batches()
        ],
        pa.struct(list(filters.schema)),
    )


def read_filters(
    location: str,
    columns: Sequence[str],
    first_row: int,
    paths: Sequence[str],
    states: Sequence[FileStatus],
    *,
    table_format: str = "parquet",
) -> ChunkFilters:
    """Read columns of n files and build Bloom filters of their values.

    Arrow crashes the process on some damaged files: call this where that does no harm.

    Args:
        location: Absolute path of the table's folder, or its URI.
        columns: Names of columns; if a file lacks one, all its values are null.
        first_row: Number of the first file; it is not used.
        paths: n paths, relative to the location.
        states: n states, as listed.
        table_format: The files' format.
    """
    filters_of = _FILTERS_OF[table_format]
    chunk = ChunkFilters()
    parts = _requests_ahead(location, paths, states)
    for path, state, part in zip(paths, states, parts, strict=True):
        try:
            with _opened(location, path, state, part) as (file, status):
                if state.difference(status):
                    chunk.changed.append(path)
                    continue
                chunk.filters.append(filters_of(file, columns))
        except (FileNotFoundError, ChangedObjectError):
            chunk.changed.append(path)
        except MemoryError:
            # Arrow's memory error is also one of its own errors, caught below.
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            chunk.unreadable.append((path, _why_unreadable(error)))
    return chunk


def _why_unreadable(error: Exception) -> str:
    if isinstance(error, ObjectError):
        return str(error)
    if is_of_system(error):
        return why_inaccessible(error)
    return f"{error}: {RESTORE}"


def _requests_ahead(
    location: str, paths: Sequence[str], states: Sequence[FileStatus]
) -> Iterator[Future[Part] | None]:
    """Yield for each file a request for all of it, begun ahead; None if not a small object."""
    ahead: deque[Future[Part] | None] = deque()
    for path, state in zip(paths, states, strict=True):
        uri, size_bytes = absolute_path(location, path), state.size_bytes
        is_small = size_bytes <= _READ_WHOLE_BYTES
        ahead.append(begin_read(uri, state, most_bytes=size_bytes + 1) if is_small else None)
        if len(ahead) > _FILES_AHEAD:
            yield ahead.popleft()
    yield from ahead


@contextmanager
def _opened(
    location: str, path: str, state: FileStatus, request: Future[Part] | None
) -> Iterator[tuple[Any, FileStatus]]:
    """Open a file; return its state as well."""
    if request is not None:
        part = request.result()
        yield pa.BufferReader(part.content), part.state
        return
    with open_file(*home_and_path(location, path), state) as source:
        yield source.file, source.state


def _parquet_filters(content: Any, columns: Sequence[str]) -> list[bytes]:
    # With nanoseconds, years before 1678 and after 2261 would wrap around.
    file = pq.ParquetFile(content, coerce_int96_timestamp_unit="us")
    names = ColumnNames(file.schema_arrow)
    filters = []
    for column in columns:
        at = names.find(column)
        filters.append(
            bloom_filter(pa.array([], pa.int64()))
            if at is None
            else _filter(file, file.schema_arrow.names[at])
        )
    return filters


def _filter(file: pq.ParquetFile, column: str) -> bytes:
    groups = range(file.num_row_groups)
    parts = (file.read_row_group(at, columns=[column], use_threads=False)[column] for at in groups)
    distinct = _distinct(parts, file.schema_arrow.field(column).type)
    if has_calendar(distinct.type) or pt.is_timestamp(distinct.type):
        leaves = (file.schema.column(leaf) for leaf in range(len(file.schema)))
        is_int96 = any(leaf.path == column and leaf.physical_type == "INT96" for leaf in leaves)
        # Some readers may see other values than these.
        if (is_int96 or not is_certain(file.metadata.metadata)) and not is_settled(distinct):
            return b""
    return bloom_filter(distinct)


def _orc_filters(content: Any, columns: Sequence[str]) -> list[bytes]:
    reader = ORCReader()
    reader.open(content if isinstance(content, pa.NativeFile) else pa.PythonFile(content, mode="r"))
    schema, alike = reader.schema(), alike_in(reader)
    names, alike_names = ColumnNames(schema), ColumnNames(alike)
    # Which of the table's columns a nameless column is depends on the table.
    nameless = are_nameless(schema.names)
    filters = []
    for column in columns:
        at = names.find(column)
        if at is None and not nameless:
            filters.append(bloom_filter(pa.array([], pa.int64())))
        elif at is None or alike_names.find(column) is None:
            # Spark may see other values than Arrow.
            filters.append(b"")
        else:
            filters.append(bloom_filter(_orc_distinct(reader, schema.field(at))))
    return filters


# Of formats that tables with Bloom filters may have.
_FILTERS_OF = {"parquet": _parquet_filters, "orc": _orc_filters}


def _orc_distinct(reader: ORCReader, field: pa.Field) -> pa.ChunkedArray:
    stripes = range(reader.nstripes())
    parts = (reader.read_stripe(at, [field.name]).column(0) for at in stripes)
    return _distinct((pa.chunked_array([part]) for part in parts), field.type)


def _distinct(parts: Iterable[pa.ChunkedArray], type_: pa.DataType) -> pa.ChunkedArray:
    """Return a column's distinct values; stop once there are more than a filter can hold."""
    distinct = pa.chunked_array([], type_)
    for values in parts:
        if isinstance(values.type, pa.BaseExtensionType):
            values = pa.chunked_array([part.storage for part in values.chunks])
        unique = values.unique()
        if len(distinct):
            unique = pa.chunked_array([*distinct.chunks, unique]).unique()
        distinct = pa.chunked_array([unique])
        if len(distinct) > 2 * MAX_VALUES:
            break
    return distinct
