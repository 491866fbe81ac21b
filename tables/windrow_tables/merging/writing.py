"""How merged files are written and sorted, so that they are like the files they are made of."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from windrow_tables.executor.sorting import keys_of
from windrow_tables.executor.spec import SortKey
from windrow_tables.merging.footers import INT96, Footer, file_of
from windrow_tables.merging.physical import PhysicalSchema
from windrow_tables.merging.sources import UnfitFileError

# Names of codecs by their number in Parquet. Hadoop's LZ4 (5) can be read, but not written.
_CODECS = {0: "none", 1: "snappy", 2: "gzip", 4: "brotli", 5: "lz4", 6: "zstd", 7: "lz4"}
_SNAPPY, ZSTD = 1, 6
# Spark's level; Arrow's is lower.
_ZSTD_LEVEL = 3

_DAY_US = 86_400_000_000
CAN_WRITE_BLOOMS = "bloom_filter_options" in inspect.signature(pq.ParquetWriter.__init__).parameters


@dataclass(frozen=True, slots=True)
class Writing:
    """How files are written.

    Attributes:
        schema: The physical schema, as Arrow reads it.
        codecs: Codec of each leaf, by its path in the physical schema.
        leaves_with_bounds: Paths of leaves that get bounds.
        leaves_with_blooms: Paths of leaves that get Bloom filters.
        has_index: Whether pages get an index.
    """

    schema: pa.Schema
    codecs: dict[str, int]
    leaves_with_bounds: list[str]
    leaves_with_blooms: list[str]
    has_index: bool

    @classmethod
    def of(cls, footer: Footer, physical: PhysicalSchema) -> Writing:
        """Return how to write files like the one with a footer."""
        metadata = pq.read_metadata(pa.BufferReader(file_of(physical.footer(footer.data))))
        schema = metadata.schema.to_arrow_schema()
        paths = _paths(schema, metadata.schema)
        # Those of a file without rows do not tell.
        chunks = footer.chunks[0] if footer.chunks else []
        codecs = [chunk.codec for chunk in chunks] or [_SNAPPY] * len(paths)
        if unknown := set(codecs) - _CODECS.keys():
            raise UnfitFileError(f"Arrow cannot write its codec (number {min(unknown)})")
        leaves_with_blooms = [
            path for path, chunk in zip(paths, chunks, strict=False) if chunk.has_bloom
        ]
        if leaves_with_blooms and not CAN_WRITE_BLOOMS:
            raise UnfitFileError(
                f"it has Bloom filters, which pyarrow {pa.__version__} cannot write: install "
                "pyarrow 26 or newer for Spark's tasks"
            )
        return cls(
            schema,
            dict(zip(paths, codecs, strict=True)),
            [
                path
                for path, is_bounded in zip(paths, physical.has_bounds, strict=True)
                if is_bounded
            ],
            leaves_with_blooms,
            any(chunk.has_index for chunk in chunks),
        )

    def options(self, rows: int) -> dict[str, Any]:
        """Return the options of Arrow's writer for a file of some rows."""
        options: dict[str, Any] = {
            "compression": {path: _CODECS[codec] for path, codec in self.codecs.items()},
            "compression_level": {
                path: _ZSTD_LEVEL for path, codec in self.codecs.items() if codec == ZSTD
            }
            or None,
            "write_statistics": self.leaves_with_bounds or False,
            "write_page_index": self.has_index,
            "write_page_checksum": True,
            "store_schema": False,
        }
        if self.leaves_with_blooms:
            options["bloom_filter_options"] = {
                path: {"ndv": max(rows, 1)} for path in self.leaves_with_blooms
            }
        return options


@dataclass(frozen=True, slots=True)
class Sorting:
    """What rows are sorted by.

    Attributes:
        keys: Keys, with columns named as in the physical schema.
        int96: Those that hold INT96.
    """

    keys: Sequence[SortKey]
    int96: frozenset[str]

    @classmethod
    def of(cls, physical: PhysicalSchema, keys: Sequence[SortKey]) -> Sorting | None:
        """Return what the rows of files are sorted by; None if by nothing.

        Args:
            physical: The physical schema of the files.
            keys: Keys; those with columns that the files lack are ignored.
        """
        head = physical.head
        columns = head.columns
        leaf_of = {id(element): at for at, (element, _) in enumerate(head.leaves)}
        own, int96 = [], set()
        for key in keys:
            at = columns.get(key.name.lower())
            if at is None:
                continue
            element, name = head.elements[at], str(at)
            if element.type == INT96:
                int96.add(name)
            elif element.type is None or not physical.has_bounds[leaf_of[id(element)]]:
                raise UnfitFileError(f"rows cannot be sorted by column {key.name!r} of its type")
            own.append(SortKey(name=name, descending=key.descending, nulls_first=key.nulls_first))
        return cls(own, frozenset(int96)) if own else None

    def order(self, table: pa.Table) -> pa.Array:
        """Return the numbers of a table's rows in sorted order; rows that tie keep their order."""
        columns = {}
        for key in self.keys:
            column = table[key.name].combine_chunks()
            columns[key.name] = _microseconds(column) if key.name in self.int96 else column
        try:
            return keys_of(pa.table(columns), self.keys).order()
        except pa.ArrowException as error:
            raise UnfitFileError(f"its rows cannot be sorted ({error})") from error


def _paths(schema: pa.Schema, source: Any) -> list[str]:
    """Return the paths of leaves in files that Arrow writes of a schema."""
    sink = pa.BufferOutputStream()
    try:
        pq.write_table(schema.empty_table(), sink, store_schema=False)
        copy = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    except pa.ArrowException as error:
        raise UnfitFileError(f"Arrow cannot write its columns ({error})") from error
    leaves = [[of.column(at) for at in range(len(of.names))] for of in (source, copy)]
    shapes = [
        [
            (leaf.physical_type, leaf.length, leaf.max_definition_level, leaf.max_repetition_level)
            for leaf in some
        ]
        for some in leaves
    ]
    if shapes[0] != shapes[1]:
        raise UnfitFileError("Arrow would nest its columns otherwise")
    return [leaf.path for leaf in leaves[1]]


def _microseconds(values: pa.Array) -> pa.Array:
    """Return INT96, which is nanoseconds of a day and the day, as microseconds."""
    content = np.frombuffer(values.fill_null(bytes(12)).buffers()[1], np.uint8)
    content = content[12 * values.offset :][: 12 * len(values)].reshape(-1, 12)
    nanoseconds = np.ascontiguousarray(content[:, :8]).view(np.int64)[:, 0]
    days = np.ascontiguousarray(content[:, 8:]).view(np.int32)[:, 0].astype(np.int64)
    microseconds = days * _DAY_US + nanoseconds // 1_000
    return pa.array(microseconds, mask=np.asarray(values.is_null()))
