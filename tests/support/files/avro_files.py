"""Avro files built byte by byte, so that tests can have any schema and any value."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from typing import Any

_SYNC = bytes(range(16))


def avro_file(
    schema: Any, rows: Iterable[Mapping[str, Any]], more: Mapping[str, bytes] = {}
) -> bytes:
    """Return a file of one block."""
    encoded = [encode(schema, row) for row in rows]
    metadata = {**more, "avro.codec": b"null", "avro.schema": json.dumps(schema).encode()}
    header = b"Obj\x01" + long(len(metadata))
    for name, value in metadata.items():
        header += block(name.encode()) + block(value)
    header += long(0) + _SYNC
    if not encoded:
        return header
    return header + long(len(encoded)) + block(b"".join(encoded)) + _SYNC


def long(number: int) -> bytes:
    """Return a number in zigzag encoding, with seven bits per byte."""
    left = (number << 1) ^ (number >> 63)
    encoding = bytearray()
    while left > 127:
        encoding.append(left & 127 | 128)
        left >>= 7
    return bytes(encoding) + bytes([left])


def block(content: bytes) -> bytes:
    """Return bytes preceded by their length."""
    return long(len(content)) + content


def encode(schema: Any, value: Any) -> bytes:
    """Return an encoded value; a union must be of `null` and one other type."""
    if isinstance(schema, list):
        at = (
            schema.index("null")
            if value is None
            else next(i for i, s in enumerate(schema) if s != "null")
        )
        return long(at) + encode(schema[at], value)
    kind = schema["type"] if isinstance(schema, Mapping) else schema
    if kind == "null":
        return b""
    if kind == "boolean":
        return bytes([value])
    if kind in ("int", "long"):
        return long(value)
    if kind in ("float", "double"):
        return struct.pack("<f" if kind == "float" else "<d", value)
    if kind in ("bytes", "string"):
        return block(value if isinstance(value, bytes) else value.encode())
    if kind == "array":
        items = b"".join(encode(schema["items"], item) for item in value)
        return (long(len(value)) + items if value else b"") + long(0)
    if kind == "record":
        return b"".join(encode(f["type"], value[f["name"]]) for f in schema["fields"])
    raise ValueError(kind)
