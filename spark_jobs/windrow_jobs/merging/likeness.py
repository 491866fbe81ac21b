"""Which Parquet files can be merged: those that readers would read alike, but for their rows."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from windrow.files.calendars import VERSION
from windrow_jobs.merging.footers import Footer, KeyValue

# Spark and Hive read old times of files by this writer differently.
_MR = b"parquet-mr"
# Since then, versions of Spark differ in nothing that readers ask for; other keys tell calendars.
_SPARK_3 = re.compile(rb"[3-9]\.|[1-9]\d+\.")
_PANDAS = b"pandas"
_ARROW_SCHEMA = b"ARROW:schema"


def likeness(footer: Footer) -> tuple[object, ...]:
    """Return what files have in common that can be merged, as a key of dictionaries."""
    keys = sorted((one.key, _likeness_of(one)) for one in footer.keys)
    return tuple(footer.raw), tuple(keys), footer.created_by.startswith(_MR)


def unlike(one: Footer, other: Footer) -> str:
    """Return in what two files differ that cannot be merged, after `in`."""
    if list(one.raw) != list(other.raw):
        names = [[b".".join(path) for _, path in each.leaves] for each in (one, other)]
        alone = sorted(set(names[0]) ^ set(names[1]))
        if alone:
            return f"column {alone[0].decode(errors='replace')!r}, which only some have"
        first = next(a for a, b in zip(one.raw, other.raw, strict=False) if a != b)
        name = one.elements[list(one.raw).index(first)].name
        return f"the type or a property of column {name.decode(errors='replace')!r}"
    values = [{key.key: _likeness_of(key) for key in each.keys} for each in (one, other)]
    # Arrow's schema last, as it repeats the others.
    for key in sorted(
        values[0].keys() | values[1].keys(), key=lambda one: (one == _ARROW_SCHEMA, one)
    ):
        if values[0].get(key) != values[1].get(key):
            return f"the metadata key {key.decode(errors='replace')!r}"
    return f"their writers ({one.created_by.decode(errors='replace')!r} and another)"


def merged_keys(footers: Sequence[Footer], rows: int) -> list[KeyValue]:
    """Return the metadata of a file that some files are merged into.

    Args:
        footers: At least one, all alike.
        rows: Number of the file's rows.
    """
    merged = []
    for one in footers[0].keys:
        value = one.value
        if one.key == _PANDAS:
            value = _pandas_with(value, rows) or value
        elif one.key == _ARROW_SCHEMA:
            value = _arrow_schema_with(value, rows) or value
        merged.append(one if value == one.value else one.with_value(value))
    return merged


def _likeness_of(one: KeyValue) -> bytes:
    """Return an entry's value without what may differ: counts of rows, and versions of Spark."""
    if one.key == VERSION and _SPARK_3.match(one.value):
        return b""
    if one.key == _PANDAS:
        return _pandas_with(one.value, 0) or one.value
    if one.key == _ARROW_SCHEMA:
        return _arrow_schema_with(one.value, 0) or one.value
    return one.value


def _pandas_with(note: bytes, rows: int) -> bytes | None:
    """Return pandas' note with another number of rows; None if it does not number them from 0."""
    try:
        content = json.loads(note)
        (index,) = content["index_columns"]
        if (index["kind"], index["start"], index["step"]) != ("range", 0, 1):
            return None
    except (LookupError, RecursionError, TypeError, ValueError):
        return None
    index["stop"] = rows
    return json.dumps(content).encode()


def _arrow_schema_with(value: bytes, rows: int) -> bytes | None:
    """Return Arrow's schema with another number of rows; None if it does not tell any."""
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(value)))
    except (ValueError, OSError, pa.ArrowException):
        return None
    metadata: dict[bytes, Any] = dict(schema.metadata or {})
    note = metadata.get(_PANDAS)
    if note is None or (changed := _pandas_with(note, rows)) is None:
        return None
    return base64.b64encode(
        schema.with_metadata({**metadata, _PANDAS: changed}).serialize().to_pybytes()
    )
