"""Which Parquet files can be merged: those that readers would read alike, but for their rows."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import pyarrow as pa

from windrow_core.files.calendars import VERSION
from windrow_tables.merging.footers import Head, KeyValue

# Spark and Hive read old times of files by this writer differently.
_MR = "parquet-mr"
# Since then, versions of Spark differ in nothing that readers ask for; other keys tell calendars.
_SPARK_3 = re.compile(rb"[3-9]\.|[1-9]\d+\.")
_PANDAS = b"pandas"
_ARROW_SCHEMA = b"ARROW:schema"


class Described(Protocol):
    """What a file says of itself."""

    @property
    def head(self) -> Head:
        """The head of its footer."""

    @property
    def keys(self) -> Mapping[bytes, bytes]:
        """Its metadata."""

    @property
    def created_by(self) -> str:
        """Its writer."""


def likeness(source: Described) -> tuple[object, ...]:
    """Return what files have in common that can be merged, as a key of dictionaries."""
    keys = sorted((key, _likeness_of(key, value)) for key, value in source.keys.items())
    return source.head.data, tuple(keys), source.created_by.startswith(_MR)


def unlike(one: Described, other: Described) -> str:
    """Return in what two files differ that cannot be merged, after `in`."""
    raw = [list(each.head.raw) for each in (one, other)]
    if raw[0] != raw[1]:
        names = [[b".".join(path) for _, path in each.head.leaves] for each in (one, other)]
        alone = sorted(set(names[0]) ^ set(names[1]))
        if alone:
            return f"column {alone[0].decode(errors='replace')!r}, which only some have"
        at = next(at for at, (a, b) in enumerate(zip(*raw, strict=False)) if a != b)
        if not at:
            return "the root of their schemas, as files of different writers do"
        name = one.head.elements[at].name.decode(errors="replace")
        return f"the type or a property of column {name!r}"
    values = [{k: _likeness_of(k, v) for k, v in each.keys.items()} for each in (one, other)]
    # Arrow's schema last, as it repeats the others.
    for key in sorted(values[0].keys() | values[1].keys(), key=lambda k: (k == _ARROW_SCHEMA, k)):
        if values[0].get(key) != values[1].get(key):
            return f"the metadata key {key.decode(errors='replace')!r}"
    return f"the version of the format, or their writers ({one.created_by!r} is one)"


def merged_keys(keys: Sequence[KeyValue], rows: int) -> list[KeyValue]:
    """Return the metadata of a file that some files are merged into.

    Args:
        keys: The metadata of one of the files, which are all alike.
        rows: Number of the new file's rows.
    """
    new_keys = []
    for one in keys:
        value = one.value
        if one.key == _PANDAS:
            value = _pandas_with(value, rows) or value
        elif one.key == _ARROW_SCHEMA:
            value = _arrow_schema_with(value, rows) or value
        new_keys.append(one if value == one.value else one.with_value(value))
    return new_keys


@lru_cache(maxsize=256)
def _likeness_of(key: bytes, value: bytes) -> bytes:
    """Return a value of metadata without what may differ: counts of rows, versions of Spark."""
    if key == VERSION and _SPARK_3.match(value):
        return b""
    if key == _PANDAS:
        return _pandas_with(value, 0) or value
    if key == _ARROW_SCHEMA:
        return _arrow_schema_with(value, 0) or value
    return value


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
    if note is None or (new_note := _pandas_with(note, rows)) is None:
        return None
    return base64.b64encode(
        schema.with_metadata({**metadata, _PANDAS: new_note}).serialize().to_pybytes()
    )
