"""What the footers of data files say, read in parallel."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windrow_service.inventory.bounds import (
    BoundedColumn,
    bounded_columns,
    merge_row_groups,
    typed_bounds,
    writer_sees_nan,
)
from windrow_service.inventory.errors import FileChangedError, UnreadableFileError
from windrow_service.inventory.progress import OnProgress, ProgressMeter
from windrow_service.inventory.schema import FileSchema, file_schema

# More are not worth showing in an error.
MAX_SHOWN_FILES = 10

_FILES_PER_CHUNK = 256
# Chunks handed out at a time, so that cancelling, or a table of broken files, ends soon.
_MAX_CHUNKS_IN_FLIGHT = 32
# Reads overlap in threads, which matters where the disk is slow; parsing does not, as it
# holds Python's lock: 2 threads that both parse took 136 us a file, one 108 us.
_READING_THREADS = 8
_parsing = threading.Lock()

_TAIL_BYTES = 64 * 1024
_FOOTER_END_BYTES = 8


@dataclass(frozen=True, slots=True)
class FooterGroup:
    """Footers of files that share a schema.

    Attributes:
        files: The schema, and the first file that has it.
        bounded: Names and types of the columns that have bounds.
        table: `row` (which of the files asked for), `row_count`, `row_group_offsets`,
            `stats_see_nan`, and for the i-th bounded column `<i>.min`, `<i>.max`, `<i>.nulls`.
    """

    files: FileSchema
    bounded: pa.Schema
    table: pa.Table

    def at_rows(self, rows: pa.Array) -> FooterGroup:
        """Return the same with `row` counted in a larger table, in which these are `rows`."""
        placed = pc.cast(rows.take(self.table["row"]), pa.int64())
        return FooterGroup(self.files, self.bounded, self.table.set_column(0, "row", placed))


@dataclass(slots=True)
class _ChunkFooters:
    groups: list[FooterGroup] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


def read_footers(
    location: str,
    files: pa.Table,
    on_progress: OnProgress | None = None,
    *,
    cancelled: threading.Event | None = None,
    executor: Executor | None = None,
) -> list[FooterGroup]:
    """Read the footers of n files, each with one read of the file's end.

    Args:
        location: Absolute path of the table's folder.
        files: n rows of a `Listing`.
        on_progress: Told about the progress, at a bounded rate.
        cancelled: Set it to stop.
        executor: Where the footers are parsed. A pool of processes uses every core; threads
            of this process by default. It stays open.

    Returns:
        At least one group for each distinct schema, by the path of its first file; each file
        is in exactly one. None for no files.

    Raises:
        UnreadableFileError: Files are not Parquet, or may not be read.
        FileChangedError: Files are no longer what the listing says.
        InventoryCancelledError: `cancelled` was set.
    """
    return read_with(location, files, ProgressMeter(on_progress, cancelled), executor)


def read_with(
    location: str, files: pa.Table, meter: ProgressMeter, executor: Executor | None
) -> list[FooterGroup]:
    """Do what `read_footers` does, and report to a meter that the caller shares."""
    meter.enter(phase="reading footers", footers_total=files.num_rows)
    chunks: dict[int, _ChunkFooters] = {}
    unread = iter(range(0, files.num_rows, _FILES_PER_CHUNK))
    pending: dict[Future[_ChunkFooters], int] = {}
    with _executor(executor) as pool:
        try:
            while True:
                if sum(len(chunk.unreadable) for chunk in chunks.values()) < MAX_SHOWN_FILES:
                    _submit(pool, location, files, unread, pending)
                if not pending:
                    break
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    start = pending.pop(future)
                    chunks[start] = future.result()
                    meter.add(footers_read=min(_FILES_PER_CHUNK, files.num_rows - start))
        finally:
            for future in pending:
                future.cancel()
    meter.report()
    in_order = [chunks[start] for start in sorted(chunks)]
    _raise_failures(in_order)
    return _joined(group for chunk in in_order for group in chunk.groups)


@contextmanager
def _executor(executor: Executor | None) -> Iterator[Executor]:
    if executor is not None:
        yield executor
        return
    with ThreadPoolExecutor(_READING_THREADS, thread_name_prefix="windrow-footers") as threads:
        yield threads


def _submit(
    pool: Executor,
    location: str,
    files: pa.Table,
    unread: Iterator[int],
    pending: dict[Future[_ChunkFooters], int],
) -> None:
    while len(pending) < _MAX_CHUNKS_IN_FLIGHT and (start := next(unread, None)) is not None:
        chunk = files.slice(start, _FILES_PER_CHUNK)
        columns = [chunk[name].to_pylist() for name in ("path", "size_bytes", "mtime_ns")]
        pending[pool.submit(_read_chunk, location, start, *columns)] = start


def _raise_failures(chunks: Sequence[_ChunkFooters]) -> None:
    if unreadable := sorted(entry for chunk in chunks for entry in chunk.unreadable):
        raise UnreadableFileError(tuple(unreadable[:MAX_SHOWN_FILES]))
    if changed := sorted(path for chunk in chunks for path in chunk.changed):
        raise FileChangedError(tuple(changed[:MAX_SHOWN_FILES]))


def _joined(groups: Iterator[FooterGroup]) -> list[FooterGroup]:
    """Join groups of one schema, so that later steps run once per schema."""
    by_schema: dict[bytes, list[FooterGroup]] = {}
    for group in groups:
        key = b"".join(
            part.serialize().to_pybytes() for part in (group.files.schema, group.bounded)
        )
        by_schema.setdefault(key, []).append(group)
    return [
        FooterGroup(same[0].files, same[0].bounded, pa.concat_tables([g.table for g in same]))
        for same in by_schema.values()
    ]


class _GroupBuilder:
    """Gathers, as lists, the footers of files that share a Parquet schema."""

    def __init__(self, parquet: Any, path: str) -> None:
        self.files = FileSchema(file_schema(parquet), path)
        self.bounded: list[BoundedColumn] = bounded_columns(parquet, self.files.schema)
        self.rows: list[int] = []
        self.row_counts: list[int] = []
        self.offsets: list[list[int]] = []
        self.see_nan: list[bool] = []
        self.group_files: list[int] = []
        self.group_row_counts: list[int] = []
        self.raw: list[tuple[list[Any], list[Any], list[int | None]]] = [
            ([], [], []) for _ in self.bounded
        ]

    def add(self, row: int, metadata: Any, size_bytes: int) -> None:
        file = len(self.rows)
        offsets = []
        for index in range(metadata.num_row_groups):
            group = metadata.row_group(index)
            offsets.append(_start_offset(group))
            if offsets[-1] >= size_bytes:
                raise ValueError("its footer points behind its end: a part of the file is missing")
            self.group_files.append(file)
            self.group_row_counts.append(group.num_rows)
            for column, (lower, upper, nulls) in zip(self.bounded, self.raw, strict=True):
                stats = group.column(column.leaf).statistics
                known = stats is not None and stats.has_min_max
                lower.append(stats.min_raw if known else None)
                upper.append(stats.max_raw if known else None)
                count = stats.null_count if stats is not None else None
                nulls.append(0 if column.required else count)
        self.rows.append(row)
        self.row_counts.append(metadata.num_rows)
        self.offsets.append(sorted(offsets))
        self.see_nan.append(writer_sees_nan(metadata.created_by))

    def finish(self) -> FooterGroup:
        row_counts = np.array(self.group_row_counts, np.int64)
        files = np.array(self.group_files, np.int64)
        columns = {
            "row": pa.array(self.rows, pa.int64()),
            "row_count": pa.array(self.row_counts, pa.int64()),
            "row_group_offsets": pa.array(self.offsets, pa.list_(pa.int64())),
            "stats_see_nan": pa.array(self.see_nan, pa.bool_()),
        }
        for index, (column, (lower, upper, nulls)) in enumerate(
            zip(self.bounded, self.raw, strict=True)
        ):
            merged = merge_row_groups(
                typed_bounds(column, lower, upper=False),
                typed_bounds(column, upper, upper=True),
                pa.array(nulls, pa.int64()),
                row_counts,
                files,
                len(self.rows),
            )
            columns |= dict(
                zip((f"{index}.min", f"{index}.max", f"{index}.nulls"), merged, strict=True)
            )
        bounded = pa.schema([(column.name, column.type) for column in self.bounded])
        return FooterGroup(self.files, bounded, pa.table(columns))


def _read_chunk(
    location: str,
    first_row: int,
    paths: Sequence[str],
    sizes_bytes: Sequence[int],
    mtimes_ns: Sequence[int],
) -> _ChunkFooters:
    """Run in a worker: module-level, so that it can be pickled."""
    chunk = _ChunkFooters()
    tails: list[tuple[int, bytes]] = []
    for index, path in enumerate(paths):
        try:
            tails.append(
                (
                    index,
                    _read_tail(os.path.join(location, path), sizes_bytes[index], mtimes_ns[index]),
                )
            )
        except FileChangedError:
            chunk.changed.append(path)
        except OSError as error:
            chunk.unreadable.append((path, error.strerror or str(error)))
    builders: dict[str, _GroupBuilder] = {}
    with _parsing:
        for index, tail in tails:
            try:
                metadata = _parse(tail)
                # Printed in full, unlike `ParquetSchema.equals`, which passes over the names
                # of nested columns; the first line holds an address.
                key = str(metadata.schema).partition("\n")[2]
                builder = builders.get(key)
                if builder is None:
                    builder = builders[key] = _GroupBuilder(metadata.schema, paths[index])
                builder.add(first_row + index, metadata, sizes_bytes[index])
            except (pa.ArrowException, OSError, ValueError) as error:
                chunk.unreadable.append((paths[index], str(error)))
        chunk.groups = [builder.finish() for builder in builders.values()]
    return chunk


def _read_tail(path: str, size_bytes: int, mtime_ns: int) -> bytes:
    """Read the end of a file, the footer in full if it is one of Parquet.

    Raises:
        FileChangedError: The file is no longer what was listed.
        OSError: It cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError as error:
        raise FileChangedError((path,)) from error
    try:
        status = os.fstat(descriptor)
        if (status.st_size, status.st_mtime_ns) != (size_bytes, mtime_ns):
            raise FileChangedError((path,))
        tail = _read_from(descriptor, max(0, size_bytes - _TAIL_BYTES), size_bytes)
        footer_bytes = int.from_bytes(tail[-_FOOTER_END_BYTES:-4], "little") + _FOOTER_END_BYTES
        if len(tail) < footer_bytes <= size_bytes and tail.endswith(b"PAR1"):
            tail = _read_from(descriptor, size_bytes - footer_bytes, size_bytes)
        return tail
    finally:
        os.close(descriptor)


def _read_from(descriptor: int, start: int, end: int) -> bytes:
    parts = []
    while start < end and (part := os.pread(descriptor, end - start, start)):
        parts.append(part)
        start += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _parse(tail: bytes) -> Any:
    if not tail:
        raise ValueError("it is empty (0 bytes)")
    return pq.read_metadata(pa.BufferReader(tail))


def _start_offset(group: Any) -> int:
    if group.num_columns == 0:
        return 4
    column = group.column(0)
    start: int = column.data_page_offset
    dictionary = column.dictionary_page_offset
    # Some writers state 0 for a dictionary that is not there.
    return dictionary if dictionary is not None and 0 < dictionary < start else start
