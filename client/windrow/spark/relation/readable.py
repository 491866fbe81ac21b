"""Which files Spark's own reader gives the same rows of as the grouped reader does.

The footers tell: columns in the table's own types, and nothing that only one of the two can decode.
All other files stay grouped, and so do files that are not as planned, which their task will name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.types as pt

from windrow.files.footers import rows_in
from windrow.files.schema import fields_in, file_schema
from windrow.spark.executor.errors import TaskReadError
from windrow.spark.executor.files import PARQUET_ERRORS, open_stream

_PLAIN = {
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
}
_CODECS = {"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"}
_ENCODINGS = {
    "PLAIN",
    "PLAIN_DICTIONARY",
    "RLE",
    "RLE_DICTIONARY",
    "BIT_PACKED",
    "DELTA_BINARY_PACKED",
    "DELTA_BYTE_ARRAY",
    "DELTA_LENGTH_BYTE_ARRAY",
}
_WRITTEN_BY_SPARK = b"org.apache.spark.version"

# The type of each column by its name in lower case; None where only the grouped reader knows it.
_Columns = dict[str, pa.DataType | None]


class _Footer(NamedTuple):
    row_count: int
    columns: _Columns


def is_readable(
    home: str, path: str, size_bytes: int, mtime_ns: int, row_count: int, wanted: pa.Schema
) -> bool:
    """Tell whether Spark's reader gives the same columns of a file as the grouped reader.

    Args:
        home: Real path of the table's location.
        path: Absolute path of the file.
        size_bytes: As planned.
        mtime_ns: As planned.
        row_count: As planned.
        wanted: The columns to read, with the table's types.
    """
    try:
        found = os.stat(path)
    except OSError:
        return False
    if (found.st_size, found.st_mtime_ns) != (size_bytes, mtime_ns):
        return False
    footer = _footer_of(home, path, size_bytes, mtime_ns)
    return (
        footer is not None
        and footer.row_count == row_count
        and all(
            footer.columns.get(field.name.lower(), field.type) == field.type for field in wanted
        )
    )


@lru_cache(maxsize=65_536)
def _footer_of(home: str, path: str, size_bytes: int, mtime_ns: int) -> _Footer | None:
    """Return what a file's footer says; None if the file cannot be read as planned."""
    try:
        with open_stream(home, path, size_bytes, mtime_ns) as reader:
            return _Footer(rows_in(reader.metadata), _columns_in(reader.metadata))
    except (TaskReadError, *PARQUET_ERRORS):
        return None


def _columns_in(metadata: Any) -> _Columns:
    parquet = metadata.schema
    held, table_types = parquet.to_arrow_schema(), file_schema(parquet).types
    leaves = iter(range(len(parquet.names)))
    columns: _Columns = {}
    for field, table_type in zip(held, table_types, strict=True):
        own = list(_leaves_of(field.type, leaves))
        plain = all(
            _is_plain(leaf, parquet.column(at)) and _is_decodable(metadata, at) for at, leaf in own
        )
        known = not pt.is_nested(field.type) or _WRITTEN_BY_SPARK in (metadata.metadata or {})
        name = field.name.lower()
        # Of two names that differ by case alone, neither is taken here.
        columns[name] = table_type if plain and known and name not in columns else None
    return columns


def _leaves_of(type_: pa.DataType, leaves: Iterator[int]) -> Iterator[tuple[int, pa.DataType]]:
    if not pt.is_nested(type_):
        yield next(leaves), type_
        return
    for field in fields_in(type_):
        yield from _leaves_of(field.type, leaves)


def _is_plain(type_: pa.DataType, leaf: Any) -> bool:
    if type_ in _PLAIN:
        return True
    if pt.is_timestamp(type_):
        return bool(leaf.physical_type == "INT96" or type_.unit != "ns")
    return bool(pt.is_decimal128(type_))


def _is_decodable(metadata: Any, leaf: int) -> bool:
    if not metadata.num_row_groups:
        return True
    chunk = metadata.row_group(0).column(leaf)
    return chunk.compression in _CODECS and _ENCODINGS.issuperset(chunk.encodings)
