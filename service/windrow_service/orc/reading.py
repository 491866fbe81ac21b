"""Reads the footers of a few ORC files, in processes whose loss does no harm.

Arrow's ORC library decompresses a footer. Its contents are then read as ORC's own messages, because
pyarrow gives neither the offsets of stripes nor the statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

# `pyarrow.orc.ORCFile` costs more than the footer of a small file.
from pyarrow._orc import ORCReader

from windrow_core.files.arrays import lists_of
from windrow_core.files.bounds import in_order, merge_row_groups
from windrow_core.files.chunks import (
    ChunkFooters,
    FooterGroup,
    Tail,
    footer_table,
    read_ones,
    read_tails,
)
from windrow_core.files.limits import USUAL_LIMITS, ReadLimits, refuse_wide
from windrow_core.files.schema import FileSchema
from windrow_core.files.status import FileStatus
from windrow_core.files.types import has_order
from windrow_service.orc.columns import Kind, OrcColumn, columns_of, has_row_names
from windrow_service.orc.messages import DecodeError, FileTail, PostScript
from windrow_service.orc.statistics import (
    are_alike,
    are_certain,
    arrow_bounds,
    fit_nanoseconds,
    null_count,
    proves_no_nan,
    raw_bounds,
)

_MAGIC = b"ORC"
# The versions that Spark's ORC library reads; the oldest files state none.
_VERSIONS = {(), (0, 11), (0, 12), (1, 9999)}
# A chunk of a compressed footer has no more bytes than its header can state.
_MAX_BLOCK_BYTES = 2**23
_NOT_ORC = "it is not ORC: its end is not that of an ORC file"


def footer_bytes_in(tail: bytes) -> int:
    """Return how many of a file's last bytes its footer needs; 0 if the file is not ORC."""
    if not tail or tail[-1] >= len(tail):
        return 0
    try:
        postscript = PostScript.FromString(tail[-1 - tail[-1] : -1])
    except DecodeError:
        return 0
    # ORC's library refuses a file of nothing but a footer.
    return int(postscript.footer_length) + tail[-1] + 1 + len(_MAGIC)


def read_chunk(
    location: str,
    first_row: int,
    paths: Sequence[str],
    states: Sequence[FileStatus],
    *,
    limits: ReadLimits = USUAL_LIMITS,
    names_rows: bool = False,
) -> ChunkFooters:
    """Read the footers of n ORC files, like `windrow_core.files.chunks.read_chunk` for Parquet.

    With `names_rows`, the files belong to a transactional table whose rows can be deleted: its columns
    lie beside the names of rows, if rows have names.
    """
    tails = read_tails(
        location, paths, states, limits.footer_bytes, footer_bytes_in=footer_bytes_in
    )
    return parse_tails(first_row, paths, states, tails, limits, names_rows=names_rows)


def parse_tails(
    first_row: int,
    paths: Sequence[str],
    states: Sequence[FileStatus],
    tails: Iterable[Tail],
    limits: ReadLimits = USUAL_LIMITS,
    *,
    names_rows: bool = False,
) -> ChunkFooters:
    """Decode the footers of n ORC files; run it in a process whose loss does no harm."""
    chunk = ChunkFooters()
    builders: dict[bytes, _GroupBuilder] = {}
    for index, path, tail in read_ones(chunk, paths, states, tails):
        try:
            file_tail = _parse(tail)
            refuse_wide(len(file_tail.footer.types) - 1, limits.fields)
            key = _schema_key(file_tail.footer)
            builder = builders.get(key)
            if builder is None:
                builder = builders[key] = _GroupBuilder(
                    file_tail.footer, path, names_rows=names_rows
                )
            builder.add(first_row + index, file_tail, states[index].size_bytes)
        except MemoryError:
            raise
        except (DecodeError, UnicodeDecodeError):
            chunk.blame(path, "its footer is damaged: it is not made of ORC's messages")
        except (pa.ArrowException, OSError, ValueError) as error:
            chunk.blame(path, error)
    if not chunk.unreadable:
        chunk.groups = [builder.finish() for builder in builders.values()]
    return chunk


def _parse(tail: bytes) -> Any:
    """Return a file's `FileTail`, decompressed."""
    if not footer_bytes_in(tail):
        raise ValueError(_NOT_ORC)
    postscript = PostScript.FromString(tail[-1 - tail[-1] : -1])
    # The first writers put the magic at the start of the file alone.
    if postscript.magic != _MAGIC and not (postscript.magic == b"" and tail[:3] == _MAGIC):
        raise ValueError(_NOT_ORC)
    if (version := tuple(postscript.version)) not in _VERSIONS:
        release = ".".join(map(str, version))
        raise ValueError(
            f"it is of version {release} of ORC, which Spark's ORC library does not read"
        )
    if postscript.block_size > _MAX_BLOCK_BYTES:
        raise ValueError(
            f"its footer is damaged: blocks of {postscript.block_size:,} bytes, "
            f"where ORC has at most {_MAX_BLOCK_BYTES:,}"
        )
    reader = ORCReader()
    reader.open(pa.BufferReader(tail))
    file_tail = FileTail.FromString(reader.serialized_file_tail())
    if file_tail.footer.encryption:
        raise ValueError("it is encrypted, and there are no keys for it here")
    return file_tail


def alike_in(reader: ORCReader) -> pa.Schema:
    """Return the columns of an open file that Arrow reads as Spark's ORC reader does."""
    file_tail = FileTail.FromString(reader.serialized_file_tail())
    statistics = _certain_statistics(file_tail)
    return pa.schema([c.field for c in columns_of(file_tail.footer) if _are_alike(c, statistics)])


def _certain_statistics(file_tail: Any) -> Any:
    return (
        file_tail.footer.statistics if are_certain(file_tail.postscript, file_tail.footer) else None
    )


def _schema_key(footer: Any) -> bytes:
    types = (message.SerializeToString(deterministic=True) for message in footer.types)
    return b"\0".join([bytes([footer.writer != 0]), *types])


class _GroupBuilder:
    """Gathers the footers of files with the same types, in lists."""

    def __init__(self, footer: Any, path: str, *, names_rows: bool) -> None:
        self.names_rows, self.has_names = names_rows, names_rows and has_row_names(footer)
        self.columns = columns_of(footer, within_rows=self.has_names)
        self.files = FileSchema(pa.schema([column.field for column in self.columns]), path)
        self.bounded = [column for column in self.columns if has_order(column.field.type)]
        self.floats = [
            column.nodes[0].number
            for column in self.bounded
            if column.nodes[0].kind in (Kind.FLOAT, Kind.DOUBLE)
        ]
        self.rows: list[int] = []
        self.row_counts: list[int] = []
        self.offsets: list[list[int]] = []
        self.see_nan: list[bool] = []
        self.native_columns: list[list[str]] = []
        self.raw: list[tuple[list[Any], list[Any], list[int | None]]] = [
            ([], [], []) for _ in self.bounded
        ]

    def add(self, row: int, file_tail: Any, size_bytes: int) -> None:
        footer = file_tail.footer
        offsets = _stripe_offsets(footer, size_bytes)
        # Rows are named by their place in a file, so the file is read whole.
        self.offsets.append([] if self.names_rows else offsets)
        self.rows.append(row)
        self.row_counts.append(footer.row_count)
        statistics = _certain_statistics(file_tail)
        self.see_nan.append(
            statistics is not None and all(proves_no_nan(statistics[at]) for at in self.floats)
        )
        self.native_columns.append(
            sorted(
                column.field.name.lower()
                for column in self.columns
                if not (
                    _are_alike(column, statistics)
                    or (self.names_rows and _are_wall_times(column, statistics))
                )
            )
        )
        for column, (lower, upper, nulls) in zip(self.bounded, self.raw, strict=True):
            node = column.nodes[0]
            own = None if statistics is None else statistics[node.number]
            least, greatest = (None, None) if own is None else raw_bounds(node, own)
            lower.append(least)
            upper.append(greatest)
            nulls.append(None if own is None else null_count(own, footer.row_count))

    def finish(self) -> FooterGroup:
        count = len(self.rows)
        row_counts = np.array(self.row_counts, np.int64)
        columns = {
            "row_count": pa.array(self.row_counts, pa.int64()),
            "row_group_offsets": pa.array(self.offsets, pa.list_(pa.int64())),
            "stats_see_nan": pa.array(self.see_nan, pa.bool_()),
            # None: Spark's own reader is the reference, and can read all columns of all files.
            "grouped_columns": lists_of(pa.array([], pa.string()), count),
            "native_columns": pa.array(self.native_columns, pa.list_(pa.string())),
            "first_row_id": pa.array(
                np.zeros(count, np.int64),
                mask=np.full(count, self.has_names or not self.names_rows),
            ),
        }
        for index, (column, (lower, upper, nulls)) in enumerate(
            zip(self.bounded, self.raw, strict=True)
        ):
            node = column.nodes[0]
            least, greatest, _ = in_order(
                arrow_bounds(node, lower, upper=False), arrow_bounds(node, upper, upper=True)
            )
            by_file = merge_row_groups(
                least,
                greatest,
                pa.array(nulls, pa.int64()),
                row_counts,
                np.arange(count),
                count,
            )
            columns |= dict(
                zip((f"{index}.min", f"{index}.max", f"{index}.nulls"), by_file, strict=True)
            )
        schema = pa.schema([(column.field.name, column.field.type) for column in self.bounded])
        return FooterGroup(self.files, schema, footer_table(self.rows, columns))


def _are_alike(column: OrcColumn, statistics: Any) -> bool:
    return column.alike and all(
        are_alike(node, None if statistics is None else statistics[node.number])
        for node in column.nodes
    )


def _are_wall_times(column: OrcColumn, statistics: Any) -> bool:
    """Return whether Arrow reads times as a clock in the writer's time zone showed them."""
    top = column.nodes[0]
    return (
        top.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_INSTANT)
        and not top.meaning
        and "." not in column.field.name
        and fit_nanoseconds(None if statistics is None else statistics[top.number])
    )


def _stripe_offsets(footer: Any, size_bytes: int) -> list[int]:
    """Return the offsets of stripes."""
    offsets = []
    end = rows = 0
    for stripe in footer.stripes:
        if stripe.offset < end:
            raise ValueError("its footer is damaged: stripes overlap")
        offsets.append(stripe.offset)
        end = stripe.offset + stripe.index_length + stripe.data_length + stripe.footer_length
        rows += stripe.row_count
    if end > size_bytes:
        raise ValueError("its footer points past its end: part of the file is missing")
    if rows != footer.row_count or rows >= 2**63:
        raise ValueError(
            f"its footer is damaged: it states {footer.row_count:,} rows, its stripes {rows:,}"
        )
    return offsets
