"""Reads the footers of a few data files, in processes that may crash without harm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windrow_core.files.arrays import lists_of
from windrow_core.files.bounds import (
    BoundedColumn,
    bounded_columns,
    in_order,
    merge_row_groups,
    typed_bounds,
)
from windrow_core.files.calendars import has_calendar, is_certain, widened
from windrow_core.files.errors import RESTORE
from windrow_core.files.excerpts.chunk_ranges import WHOLE_FILE_BYTES, chunk_ranges_in
from windrow_core.files.excerpts.outlines import Outlines
from windrow_core.files.footers import (
    TAIL_BYTES,
    SchemaLimit,
    footer_bytes_in,
    footer_in,
    row_group_start,
    rows_in,
)
from windrow_core.files.layouts import Layouts
from windrow_core.files.limits import USUAL_LIMITS, ReadLimits, TooWideError
from windrow_core.files.meanings import told_by_spark
from windrow_core.files.objects.troubles import ChangedObjectError
from windrow_core.files.places import place_of, read_file, why_unread
from windrow_core.files.reader_differences import GroupedOnly
from windrow_core.files.rows import FOOTER_COLUMNS, ROW_COLUMN
from windrow_core.files.schema import FileSchema, file_schema
from windrow_core.files.status import FileStatus
from windrow_core.files.table_paths import absolute_path, home_for, home_of
from windrow_core.files.trust import Trust

# Longer footers are read one at a time.
_SHORT_FOOTER_BYTES = 2**20

# The end of a file; or why it cannot be read; or None if it has changed since it was listed.
Tail: TypeAlias = bytes | str | None
# Returns the length of the footer in the last bytes of a file; 0 if there is none.
FooterBytes: TypeAlias = Callable[[bytes], int]


@dataclass(frozen=True, slots=True)
class FooterGroup:
    """Footers of files that share a schema.

    Attributes:
        files: The schema, and the first file that has it.
        bounded: Names and types of the columns that have bounds.
        table: `row` (number of the file), `FOOTER_COLUMNS`, and for the i-th bounded column
            `<i>.min`, `<i>.max`, `<i>.nulls`.
    """

    files: FileSchema
    bounded: pa.Schema
    table: pa.Table

    def at_rows(self, rows: pa.Array) -> FooterGroup:
        """Return the group with its `row`s renumbered: number i becomes `rows[i]`."""
        numbers = pc.cast(rows.take(self.table["row"]), pa.int64())
        return FooterGroup(self.files, self.bounded, self.table.set_column(0, "row", numbers))


def footer_table(rows: Sequence[int], columns: Mapping[str, pa.Array]) -> pa.Table:
    """Return a `FooterGroup.table`; those of `FOOTER_COLUMNS` that are not given are unknown.

    Args:
        rows: Numbers of n files.
        columns: Columns of n values.
    """
    unknown = {name: ROW_COLUMN[name].unknown(len(rows)) for name in FOOTER_COLUMNS}
    return pa.table({"row": pa.array(rows, pa.int64()), **unknown, **columns})


def unread_rows(rows: Sequence[int]) -> pa.Table:
    """Return a `FooterGroup.table` of files whose rows are unknown, and that all readers read alike.

    Args:
        rows: Numbers of the files.
    """
    return footer_table(rows, {"grouped_columns": lists_of(pa.array([], pa.string()), len(rows))})


def joined(groups: Iterable[FooterGroup]) -> list[FooterGroup]:
    """Join groups of one schema, so that later steps run once per schema."""
    by_schema: dict[bytes, list[FooterGroup]] = {}
    for group in groups:
        schemas = (group.files.schema, group.bounded)
        key = b"".join(schema.serialize().to_pybytes() for schema in schemas)
        by_schema.setdefault(key, []).append(group)
    return [
        FooterGroup(same[0].files, same[0].bounded, pa.concat_tables([g.table for g in same]))
        for same in by_schema.values()
    ]


@dataclass(slots=True)
class ChunkFooters:
    """Footers of a few files, by schema, and the files whose footers could not be read.

    Attributes:
        groups: The footers; files of 0 bytes have none. Not complete if a file is unreadable.
        unreadable: Paths and reasons, with what to do.
        changed: Paths of files that have changed since they were listed.
    """

    groups: list[FooterGroup] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)

    def blame(self, path: str, reason: object) -> None:
        """Record a file that was read, but cannot be understood."""
        if isinstance(reason, TooWideError):
            self.unreadable.append((path, f"it has {reason}"))
            return
        # Arrow's messages may have several lines.
        self.unreadable.append((path, f"{' '.join(str(reason).split())}: {RESTORE}"))


def read_ones(
    chunk: ChunkFooters, paths: Sequence[str], states: Sequence[FileStatus], read: Iterable[Tail]
) -> Iterator[tuple[int, str, bytes]]:
    """Yield the number, the path and the content read of each file that is not empty.

    Args:
        chunk: Files that could not be read, or have changed, are added to it.
        paths: n paths.
        states: n states, as listed.
        read: n contents.
    """
    for index, (path, content) in enumerate(zip(paths, read, strict=True)):
        if isinstance(content, str):
            chunk.unreadable.append((path, content))
        elif content is None:
            chunk.changed.append(path)
        elif states[index].size_bytes:
            yield index, path, content


class _GroupBuilder:
    """Gathers, as lists, the footers of files that share a Parquet schema."""

    def __init__(
        self,
        parquet: Any,
        meanings: Mapping[str, str],
        path: str,
        footer: bytes,
        *,
        excerpted: bool,
    ) -> None:
        self.files = FileSchema(file_schema(parquet, meanings), path)
        self.bounded: list[BoundedColumn] = bounded_columns(parquet, self.files.schema)
        self._leaves = len(parquet.names)
        self._trust = Trust(parquet, [column.leaf for column in self.bounded])
        self.rows: list[int] = []
        self.row_counts: list[int] = []
        self.offsets: list[list[int]] = []
        self.see_nan: list[bool] = []
        self.grouped_only = GroupedOnly()
        self.grouped_columns: list[list[str]] = []
        self._excerpted = excerpted
        self._outlines = Outlines()
        self.outlines: list[str | None] = []
        self.chunks: list[list[int] | None] = []
        self._layouts = Layouts(parquet, footer)
        self.layouts: list[str] = []
        self.group_files: list[int] = []
        self.group_row_counts: list[int] = []
        self.has_calendar = any(has_calendar(column.type) for column in self.bounded)
        self.uncertain: list[bool] = []
        self.raw: list[tuple[list[Any], list[Any], list[int | None]]] = [
            ([], [], []) for _ in self.bounded
        ]

    def add(self, row: int, metadata: Any, size_bytes: int, tail: bytes) -> None:
        file = len(self.rows)
        offsets = []
        footer = footer_in(tail)
        verdict = self._trust.in_file(footer, metadata)
        uncertain = self.has_calendar and not is_certain(metadata.metadata)
        for index in range(metadata.num_row_groups):
            group = metadata.row_group(index)
            if group.num_columns != self._leaves:
                raise ValueError(
                    "its footer is damaged: the number of columns of a row group is "
                    f"{group.num_columns:,}, and that of the schema {self._leaves:,}"
                )
            if min(group.num_rows, group.total_byte_size, row_group_start(group)) < 0:
                raise ValueError(
                    "its footer is damaged: the number of rows of a row group, its size or its "
                    "offset is negative"
                )
            offsets.append(row_group_start(group))
            if offsets[-1] >= size_bytes:
                raise ValueError("its footer points past its end: part of the file is missing")
            self.group_files.append(file)
            self.group_row_counts.append(group.num_rows)
            self.uncertain.append(uncertain)
            for column, is_trusted, (lower, upper, nulls) in zip(
                self.bounded, verdict.bounds, self.raw, strict=True
            ):
                stats = group.column(column.leaf).statistics
                has_bounds = is_trusted and stats is not None and stats.has_min_max
                lower.append(stats.min_raw if has_bounds else None)
                upper.append(stats.max_raw if has_bounds else None)
                count = stats.null_count if stats is not None else None
                nulls.append(0 if column.required else count)
        self.rows.append(row)
        self._add_chunks(metadata, size_bytes, footer, offsets)
        self.row_counts.append(rows_in(metadata))
        miscounts = metadata.num_rows != self.row_counts[-1]
        self.layouts.append(self._layouts.of(metadata.metadata, miscounts=miscounts))
        self.offsets.append(sorted(offsets))
        self.see_nan.append(verdict.sees_nan)
        self.grouped_columns.append(self.grouped_only.names_in(metadata))
        for at in verdict.only_by_spark:
            self._keep_from_spark(file, self.bounded[at])

    def _keep_from_spark(self, file: int, column: BoundedColumn) -> None:
        """Note a column in which Spark's own reader would skip row groups by wrong bounds."""
        names = self.grouped_columns[file]
        if column.name.lower() not in names:
            names.append(column.name.lower())

    def _add_chunks(
        self, metadata: Any, size_bytes: int, footer: bytes, offsets: Sequence[int]
    ) -> None:
        """Record where the file's column chunks lie, if there will be excerpts of it."""
        outline = ranges = None
        # Splits identify row groups by their offsets.
        in_order = all(one < next_ for one, next_ in pairwise(offsets))
        if self._excerpted and size_bytes > WHOLE_FILE_BYTES and in_order:
            ranges = chunk_ranges_in(metadata, size_bytes)
        if ranges is not None:
            outline = self._outlines.of(footer, metadata, ranges.codecs)
        self.outlines.append(outline)
        self.chunks.append(ranges.numbers if ranges and outline is not None else None)

    def finish(self) -> FooterGroup:
        row_counts = np.array(self.group_row_counts, np.int64)
        files = np.array(self.group_files, np.int64)
        uncertain = np.array(self.uncertain, np.bool_)
        columns = {
            "row_count": pa.array(self.row_counts, pa.int64()),
            "row_group_offsets": pa.array(self.offsets, pa.list_(pa.int64())),
            "stats_see_nan": pa.array(self.see_nan, pa.bool_()),
            "outline": pa.array(self.outlines, pa.string()).dictionary_encode(),
            "chunks": pa.array(self.chunks, ROW_COLUMN["chunks"].type),
            "layout": pa.array(self.layouts, pa.string()).dictionary_encode(),
        }
        for index, (column, (lower, upper, nulls)) in enumerate(
            zip(self.bounded, self.raw, strict=True)
        ):
            least = typed_bounds(column, lower, upper=False)
            greatest = typed_bounds(column, upper, upper=True)
            if has_calendar(column.type) and uncertain.any():
                least = widened(least, uncertain, upper=False)
                greatest = widened(greatest, uncertain, upper=True)
            least, greatest, contradicts = in_order(least, greatest)
            for file in np.unique(files[np.asarray(contradicts)]).tolist():
                self._keep_from_spark(file, column)
            by_file = merge_row_groups(
                least,
                greatest,
                pa.array(nulls, pa.int64()),
                row_counts,
                files,
                len(self.rows),
            )
            columns |= dict(
                zip((f"{index}.min", f"{index}.max", f"{index}.nulls"), by_file, strict=True)
            )
        columns["grouped_columns"] = pa.array(self.grouped_columns, pa.list_(pa.string()))
        schema = pa.schema([(column.name, column.type) for column in self.bounded])
        return FooterGroup(self.files, schema, footer_table(self.rows, columns))


def read_chunk(
    location: str,
    first_row: int,
    paths: Sequence[str],
    states: Sequence[FileStatus],
    *,
    limits: ReadLimits = USUAL_LIMITS,
) -> ChunkFooters:
    """Read the footers of n files; files of 0 bytes have none, and are in no group.

    Some damaged footers make Arrow end the process: call this where that does no harm.

    Args:
        location: Absolute path of the table's folder, or its URI.
        first_row: Number of the first file, for `FooterGroup.table`.
        paths: n paths, as in inventories.
        states: n states, as listed.
        limits: A file with a longer footer, or a larger schema, is unreadable.
    """
    tails = read_tails(location, paths, states, limits.footer_bytes)
    has_excerpts = place_of(location).has_excerpts
    return parse_tails(first_row, paths, states, tails, limits, excerpted=has_excerpts)


def read_tails(
    location: str,
    paths: Sequence[str],
    states: Sequence[FileStatus],
    max_footer_bytes: int,
    footer_bytes_in: FooterBytes = footer_bytes_in,
) -> Iterator[Tail]:
    """Yield the ends of n files, with the footers in them; see `read_chunk`.

    Long footers are read one by one when the caller asks for them, so that only one is in memory.
    """
    read_tail = partial(_read_tail, location, home_of(location), footer_bytes_in)
    short_bytes = min(_SHORT_FOOTER_BYTES, max_footer_bytes)
    with ThreadPoolExecutor(min(place_of(location).footers, len(paths))) as threads:
        short = list(threads.map(partial(read_tail, short_bytes), paths, states))
    for tail, path, state in zip(short, paths, states, strict=True):
        read = read_tail(max_footer_bytes, path, state) if isinstance(tail, int) else tail
        yield _too_long(read, max_footer_bytes) if isinstance(read, int) else read


def parse_tails(
    first_row: int,
    paths: Sequence[str],
    states: Sequence[FileStatus],
    tails: Iterable[Tail],
    limits: ReadLimits = USUAL_LIMITS,
    *,
    excerpted: bool = False,
) -> ChunkFooters:
    """Parse the footers of n files; see `read_chunk`.

    With `excerpted`, also record where the column chunks of large files lie.

    Some damaged footers make Arrow end the process: call this where that does no harm.
    """
    chunk = ChunkFooters()
    builders: dict[tuple[str, frozenset[tuple[str, str]]], _GroupBuilder] = {}
    schema_limit = SchemaLimit(limits.fields)
    for index, path, tail in read_ones(chunk, paths, states, tails):
        try:
            metadata = _parse(tail, schema_limit)
            # Compared as text, as `ParquetSchema.equals` ignores the names of nested columns; the
            # first line contains a memory address.
            meanings = told_by_spark(metadata)
            key = str(metadata.schema).partition("\n")[2], frozenset(meanings.items())
            builder = builders.get(key)
            if builder is None:
                footer = footer_in(tail)
                builder = _GroupBuilder(
                    metadata.schema, meanings, path, footer, excerpted=excerpted
                )
                builders[key] = builder
            builder.add(first_row + index, metadata, states[index].size_bytes, tail)
        except MemoryError:
            # Arrow's MemoryError is an ArrowException too. Earlier files may have used the memory.
            raise
        except UnicodeDecodeError:
            chunk.blame(path, "its footer is damaged: a name in it is not UTF-8")
        except (pa.ArrowException, OSError, ValueError) as error:
            chunk.blame(path, error)
    # A file that failed halfway leaves lists of different lengths; the inventory fails anyway.
    if not chunk.unreadable:
        chunk.groups = [builder.finish() for builder in builders.values()]
    return chunk


def _read_tail(
    location: str,
    home: str,
    footer_bytes_in: FooterBytes,
    max_footer_bytes: int,
    path: str,
    state: FileStatus,
) -> Tail | int:
    """Return the end of a file, including the whole footer if there is one.

    If the footer exceeds the limit, return its length instead.
    """
    absolute = absolute_path(location, path)
    size_bytes = state.size_bytes
    if not size_bytes and place_of(absolute).request_s:
        # A request for no bytes would be refused.
        return b""
    beneath = home_for(location, home, absolute)

    def read(start: int, end: int) -> bytes:
        part = read_file(beneath, absolute, state, start, end)
        if state.difference(part.state):
            raise ChangedObjectError
        return bytes(part.content)

    try:
        tail = read(max(0, size_bytes - TAIL_BYTES), size_bytes)
        footer_bytes = footer_bytes_in(tail)
        if len(tail) < footer_bytes <= size_bytes:
            if footer_bytes > max_footer_bytes:
                return footer_bytes
            tail = read(size_bytes - footer_bytes, size_bytes)
        return tail
    except (FileNotFoundError, ChangedObjectError):
        return None
    except OSError as error:
        return why_unread(absolute, error)


def _too_long(footer_bytes: int, max_footer_bytes: int) -> str:
    return (
        f"its footer has {footer_bytes:,} bytes, but at most {max_footer_bytes:,} are read: "
        "rewrite it with larger row groups, or raise WINDROW_LIMITS__MAX_FOOTER_BYTES"
    )


def _parse(tail: bytes, schema_limit: SchemaLimit) -> Any:
    if tail.endswith(b"PARE"):
        raise ValueError("it is encrypted, and there are no keys for it here")
    schema_limit.check(footer_in(tail))
    return pq.read_metadata(pa.BufferReader(tail))
