"""Parquet files of every kind that Arrow writes, and in what two of them differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

FILES = 3
MOMENT = datetime.fromisoformat("2026-11-01T01:02:03.456789")
STRUCT = pa.struct([("a", pa.int32()), pa.field("b", pa.list_(pa.string()), nullable=False)])
# Signalling and negative NaN, whose bits programs that compute with them do not keep.
NANS = pa.py_buffer(b"\x01\x00\x00\x00\x00\x00\xf0\x7f\x00\x00\x00\x00\x00\x00\xf8\xff")

# Two values of each type.
VALUES = [
    pa.nulls(2),
    pa.array([True, False]),
    pa.array([-(2**7), None], pa.int8()),
    pa.array([2**15 - 1, 0], pa.int16()),
    pa.array([2**31 - 1, 0], pa.int32()),
    pa.array([-(2**63), 2**63 - 1], pa.int64()),
    pa.array([0, 2**8 - 1], pa.uint8()),
    pa.array([0, 2**16 - 1], pa.uint16()),
    pa.array([0, 2**32 - 1], pa.uint32()),
    pa.array([0, 2**64 - 1], pa.uint64()),
    pa.array([1.5, -2.5]).cast(pa.float16()),
    pa.array([math.nan, -0.0], pa.float32()),
    pa.array([math.inf, 5e-324], pa.float64()),
    pa.Array.from_buffers(pa.float64(), 2, [None, NANS]),
    pa.array(["", "naïve\0"]),
    pa.array(["", "x"], pa.large_string()),
    pa.array(["a text that does not fit into a view", "x"], pa.string_view()),
    pa.array([b"\xff", b""]),
    pa.array([b"\xff", None], pa.large_binary()),
    pa.array([b"\xff", None], pa.binary_view()),
    pa.array([b"abcd", b"\xff\xfe\xfd\xfc"], pa.binary(4)),
    pa.array([Decimal("-9.99"), None], pa.decimal128(3, 2)),
    pa.array([Decimal(10) ** 37, -(Decimal(10) ** 37)], pa.decimal128(38, 0)),
    pa.array([Decimal(10) ** 60, None], pa.decimal256(76, 0)),
    pa.array([Decimal("0.1"), None], pa.decimal32(4, 1)),
    pa.array([Decimal("0.1"), None], pa.decimal64(14, 1)),
    pa.array([date(1, 1, 1), date(9999, 12, 31)]),
    pa.array([1, None]).cast(pa.date64()),
    pa.array([time(1), None], pa.time32("s")),
    pa.array([1_001, None], pa.time32("ms")),
    pa.array([1_001, None], pa.time64("us")),
    pa.array([1_001, None], pa.time64("ns")),
    pa.array([1, 2], pa.timestamp("s")),
    pa.array([1, 2], pa.timestamp("ms", "Europe/Berlin")),
    pa.array([-(62 * 10**15), 2**57], pa.timestamp("us")),
    pa.array([MOMENT, None], pa.timestamp("us", "UTC")),
    pa.array([1_001, 2_002], pa.timestamp("ns")),
    pa.array([1_001, 2_002], pa.timestamp("ns", "+01:30")),
    pa.array([1_001, None], pa.duration("ns")),
    pa.array(["x", "y"]).dictionary_encode(),
    pa.array([1, None, 1], pa.int16()).dictionary_encode().slice(1),
    pa.array([b"0123456789abcdef", None], pa.uuid()),
    pa.array(['{"a": 1}', None], pa.json_()),
    pa.array([{"a": None, "b": ["x", None]}, {"a": 1, "b": []}], STRUCT),
    pa.array([None, {"a": None, "b": []}], STRUCT),
    pa.array([[None, [1]], None], pa.list_(pa.list_(pa.int64()))),
    pa.array([[1, 2], None], pa.large_list(pa.uint32())),
    pa.array([[1, 2], [3, None]], pa.list_(pa.int8(), 2)),
    pa.array([[("x", None)], []], pa.map_(pa.string(), pa.timestamp("ns"))),
    pa.array(
        [[({"k": 1}, [2**64 - 1])], None],
        pa.map_(pa.struct([("k", pa.int8())]), pa.list_(pa.uint64())),
    ),
    pa.array([{"t": 1_001}, None], pa.struct([("t", pa.timestamp("ns"))])),
]
ID, KEYS = {b"PARQUET:field_id": b"7"}, {"batch": "1", "org.apache.spark.legacyINT96": ""}


def every_kind_of_file(keys: Mapping[str, str] | None = None) -> dict[str, list[bytes]]:
    """Return, for each kind of file, three of that kind, all with some metadata."""
    wide = {f"c{at}": values for at, values in enumerate(VALUES)}
    plain = {"moment": wide["c34"], "text": ["a", None]}
    required = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False, metadata=ID),
            pa.field("Ünï cöde.dotted", pa.list_(pa.field("e", pa.int8(), False, ID)), False),
        ]
    )
    kinds: dict[str, list[tuple[pa.Table, dict[str, Any]]]] = {
        "every type": _files(wide),
        "every type, with other options": _files(
            wide,
            version="2.4",
            coerce_timestamps="us",
            allow_truncated_timestamps=True,
            data_page_version="2.0",
            compression="zstd",
            use_dictionary=False,
            write_page_index=True,
            use_compliant_nested_type=False,
        ),
        # Such files have no metadata, so none that states the calendar of old dates.
        "without a schema of Arrow": _files(
            {name: values for name, values in wide.items() if name not in ("c26", "c34")},
            store_schema=False,
        ),
        "an old version": _files(plain, version="1.0"),
        "INT96": _files({"t": wide["c36"], **plain}, use_deprecated_int96_timestamps=True),
        "decimals as integers": _files({"d": wide["c21"]}, store_decimal_as_integer=True),
        "Bloom filters": _files(plain, bloom_filter_options={"text": {"ndv": 100}}),
        "several codecs": _files(plain, compression={"id": "gzip", "moment": "brotli"}),
        "no codec and no bounds": _files(plain, compression="none", write_statistics=False),
        "metadata": _files(plain, metadata=KEYS),
        "required fields with ids": [
            (pa.table([[at], pa.array([[1, at]])], schema=required), {}) for at in range(FILES)
        ],
        "pandas": [
            (pa.Table.from_pandas(pd.DataFrame({"id": range(at, at + 3)})), {})
            for at in range(FILES)
        ],
    }
    return {
        kind: [_file(table, keys or {}, options) for table, options in some]
        for kind, some in kinds.items()
    }


def differences(before: Sequence[pq.ParquetFile], after: pq.ParquetFile) -> list[str]:
    """Return in what a file differs from those whose rows it should have, as Arrow reads them."""
    differing = []
    first = before[0]
    if _told(after.schema) != _told(first.schema):
        differing.append(f"schema: {after.schema} for {first.schema}")
    schemas = [_without_rows(file.schema_arrow) for file in (first, after)]
    if not schemas[1].equals(schemas[0], check_metadata=True):
        differing.append(f"Arrow's schema: {schemas[1]} for {schemas[0]}")
    keys = [dict(file.metadata.metadata or {}) for file in (first, after)]
    for own in keys:
        own.pop(b"ARROW:schema", None)
        own.pop(b"pandas", None)
    if keys[0] != keys[1]:
        differing.append(f"keys: {keys[1]} for {keys[0]}")
    same = ("created_by", "format_version")
    differing += [
        name for name in same if getattr(first.metadata, name) != getattr(after.metadata, name)
    ]
    expected = pa.concat_tables([file.read() for file in before])
    rows = after.read()
    if len(rows) != len(expected):
        return [*differing, f"{len(rows)} rows for {len(expected)}"]
    for name in expected.column_names:
        if _comparable(rows[name]) != _comparable(expected[name]):
            differing.append(f"{name}: {rows[name]} for {expected[name]}")
    if first.num_row_groups and after.num_row_groups:
        groups = (file.metadata.row_group(0) for file in (first, after))
        differing += _lost_statistics(*groups)
    return differing


def _lost_statistics(before: Any, after: Any) -> list[str]:
    losses = []
    for at in range(before.num_columns):
        one, other = before.column(at), after.column(at)
        # Arrow does not write the LZ4 of Hadoop, which it calls unknown.
        if one.compression not in (other.compression, "UNKNOWN"):
            losses.append(f"{one.path_in_schema}: {other.compression} for {one.compression}")
        if (
            one.is_stats_set
            and one.statistics.has_min_max
            and (not other.is_stats_set or not other.statistics.has_min_max)
        ):
            losses.append(f"{one.path_in_schema}: bounds")
        if one.has_column_index and not other.has_column_index:
            losses.append(f"{one.path_in_schema}: index of pages")
    return losses


def _comparable(column: pa.ChunkedArray) -> Any:
    values = column.combine_chunks()
    if pt.is_floating(values.type):
        # NaN differs from itself.
        return values.view(f"int{values.type.bit_width}")
    return values if not values.type.num_fields else repr(values.to_pylist())


def _told(schema: Any) -> str:
    # The first line holds an address in memory.
    return str(schema).partition("\n")[2]


def _without_rows(schema: pa.Schema) -> pa.Schema:
    metadata = dict(schema.metadata or {})
    metadata.pop(b"pandas", None)
    return schema.with_metadata(metadata or None)


def _files(
    columns: dict[str, Any], metadata: dict[str, str] | None = None, **options: Any
) -> list[tuple[pa.Table, dict[str, Any]]]:
    tables = [pa.table({"id": [2 * at, 2 * at + 1], **columns}) for at in range(FILES)]
    return [(table.replace_schema_metadata(metadata), options) for table in tables]


def _file(table: pa.Table, keys: Mapping[str, str], options: Mapping[str, Any]) -> bytes:
    sink = pa.BufferOutputStream()
    all_keys = {**(table.schema.metadata or {}), **keys}
    pq.write_table(table.replace_schema_metadata(all_keys or None), sink, **options)
    return bytes(sink.getvalue())
