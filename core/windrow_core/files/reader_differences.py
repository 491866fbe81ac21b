"""Finds columns of a file that Spark's own Parquet reader may not read as the grouped reader does.

Judged by the footer: both readers agree on plain types, if nothing in the column can be decoded by
only one of them. Whether a column has the table's own type is checked elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.schema import fields_in

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
_ARROW_SCHEMA = b"ARROW:schema"


class GroupedOnly:
    """Names the columns that only the grouped reader reads, for files of one Parquet schema."""

    def __init__(self) -> None:
        self._told: tuple[object, bool] | None = None
        self._names: list[str] = []
        self._odd: list[bool] = []
        self._columns: list[int] = []

    def names_in(self, metadata: Any) -> list[str]:
        """Return the names in lower case; includes columns whose names differ only by case.

        Args:
            metadata: A `pyarrow.parquet.FileMetaData`.
        """
        metadata_keys = metadata.metadata or {}
        key = (metadata_keys.get(_ARROW_SCHEMA), _WRITTEN_BY_SPARK in metadata_keys)
        if key != self._told:
            self._learn(metadata.schema, by_spark=key[1])
            self._told = key
        odd = self._odd
        if not all(map(_is_decodable, _chunks(metadata))):
            odd = odd.copy()
            for at, chunk in enumerate(_chunks(metadata)):
                odd[self._columns[at % len(self._columns)]] |= not _is_decodable(chunk)
        return [name for name, is_odd in zip(self._names, odd, strict=True) if is_odd]

    def _learn(self, parquet: Any, *, by_spark: bool) -> None:
        leaves = iter(range(len(parquet.names)))
        self._names, self._odd, self._columns = [], [], []
        schema = parquet.to_arrow_schema()
        lower = [name.lower() for name in schema.names]
        for at, field in enumerate(schema):
            own = list(_leaves_of(field.type, leaves))
            plain = all(_is_plain(type_, parquet.column(leaf)) for leaf, type_ in own)
            is_known = by_spark or not pt.is_nested(field.type)
            self._names.append(lower[at])
            self._odd.append(not (plain and is_known) or lower.count(lower[at]) > 1)
            self._columns += [at] * len(own)


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


def _chunks(metadata: Any) -> Iterator[Any]:
    for at in range(metadata.num_row_groups):
        group = metadata.row_group(at)
        yield from map(group.column, range(group.num_columns))


def _is_decodable(chunk: Any) -> bool:
    return chunk.compression in _CODECS and _ENCODINGS.issuperset(chunk.encodings)
