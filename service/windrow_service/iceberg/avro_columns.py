"""Reads Avro files of Iceberg's metadata into columns: a list of values for each field id.

PyIceberg makes objects of each entry; its decoder alone takes a quarter of the time. That decoder
reads past the end of damaged data, so this code must run in a process that may be lost, and must
consume each block exactly.
"""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Callable, Mapping
from operator import methodcaller
from typing import Any

import pyarrow as pa
from pyiceberg.avro.decoder import BinaryDecoder, new_decoder

from windrow_core.files.limits import MAX_FIELDS, refuse_wide_json
from windrow_service.avro.headers import header_of, read_long

Columns = Mapping[int, list[Any]]
_Read = Callable[[BinaryDecoder], Any]

_MARKER_BYTES = 16
MAX_BLOCK_BYTES = 256 * 2**20
_MAX_DEPTH = 20
_PRIMITIVES: Mapping[str, _Read] = {
    "null": lambda _: None,
    "boolean": methodcaller("read_boolean"),
    "int": methodcaller("read_int"),
    "long": methodcaller("read_int"),
    "float": methodcaller("read_float"),
    "double": methodcaller("read_double"),
    "bytes": methodcaller("read_bytes"),
    "string": methodcaller("read_utf8"),
}


class DamagedFileError(ValueError):
    """An Avro file is not part of Iceberg's metadata, or is damaged."""


def read_columns(content: bytes) -> Columns:
    """Return the values in an Avro file by field id.

    Records nested up to two levels deep are flattened. A list of numbers is the bytes of 64-bit
    integers, and so is a map from numbers to numbers, with keys and values in turn. Dates, times,
    decimals and UUIDs are as stored.

    Raises:
        ArithmeticError, EOFError, LookupError, OSError, RecursionError, SystemError, TypeError,
            ValueError, zlib.error: The file is damaged, or is not part of Iceberg's metadata.
    """
    metadata, at = header_of(content)
    columns: dict[int, list[Any]] = {}
    schema = metadata[b"avro.schema"]
    refuse_wide_json(schema, MAX_FIELDS)
    read = _record(json.loads(schema), columns, 0)
    codec = metadata.get(b"avro.codec", b"null").decode()
    marker = content[at : at + _MARKER_BYTES]
    at += _MARKER_BYTES
    while at < len(content):
        count, at = read_long(content, at)
        length, at = read_long(content, at)
        end = at + length
        if min(count, length) < 0 or end + _MARKER_BYTES > len(content):
            raise DamagedFileError("a block is cut off")
        if content[end : end + _MARKER_BYTES] != marker:
            raise DamagedFileError("a block does not end where it should")
        _read_block(_decompressed(content[at:end], codec), count, read)
        at = end + _MARKER_BYTES
    return columns


def _read_block(data: bytes, count: int, read: _Read) -> None:
    if count > len(data):
        raise DamagedFileError("a block declares more entries than it has bytes")
    decoder = new_decoder(data)
    for _ in range(count):
        read(decoder)
    if decoder.tell() != len(data):
        raise DamagedFileError("a block has more or fewer bytes than its entries")


def _decompressed(data: bytes, codec: str) -> bytes:
    if codec == "null":
        return data
    if codec == "deflate":
        inflating = zlib.decompressobj(-zlib.MAX_WBITS)
        content = inflating.decompress(data, MAX_BLOCK_BYTES)
        if not inflating.eof:
            raise DamagedFileError("a block is cut off, or too large")
        return content
    if codec == "zstandard":
        with pa.input_stream(pa.py_buffer(data), compression="zstd") as stream:
            plain: bytes = stream.read(MAX_BLOCK_BYTES)
            if stream.read(1):
                raise DamagedFileError("a block is too large")
        return plain
    if codec == "snappy":
        # A checksum of four bytes follows, and the length comes first.
        length = _varint(data)
        if length > MAX_BLOCK_BYTES:
            raise DamagedFileError("a block is too large")
        plain = pa.decompress(data[:-4], length, codec="snappy", asbytes=True)
        if zlib.crc32(plain) != int.from_bytes(data[-4:], "big"):
            raise DamagedFileError("a block differs from its checksum")
        return bytes(plain)
    raise DamagedFileError(f"its codec {codec!r} is not known: use deflate, zstd or snappy")


def _varint(data: bytes) -> int:
    number = 0
    for at, byte in enumerate(data[:5]):
        number |= (byte & 127) << 7 * at
        if byte < 128:
            break
    return number


def _record(schema: Any, columns: dict[int, list[Any]], depth: int) -> _Read:
    """Return a function that reads a record and appends its values to columns."""
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise DamagedFileError("it does not hold records")
    fields: list[_Read] = []
    for field in schema["fields"]:
        type_ = field["type"]
        if isinstance(type_, dict) and type_.get("type") == "record" and depth < 2:
            fields.append(_record(type_, columns, depth + 1))
            continue
        number = field.get("field-id")
        if not isinstance(number, int):
            raise DamagedFileError(f"its field {field['name']!r} has no id")
        if number in columns:
            raise DamagedFileError(f"two of its fields have id {number}")
        columns[number] = []
        fields.append(_appending(_value(type_, depth), columns[number].append))
    readers = tuple(fields)

    def read(decoder: BinaryDecoder) -> None:
        for reader in readers:
            reader(decoder)

    return read


def _appending(read: _Read, append: Callable[[Any], None]) -> _Read:
    return lambda decoder: append(read(decoder))


def _value(schema: Any, depth: int) -> _Read:
    """Return a function that reads one value."""
    if depth > _MAX_DEPTH:
        raise DamagedFileError(f"its schema is nested more than {_MAX_DEPTH} levels deep")
    if isinstance(schema, list):
        return _union(schema, depth)
    kind = schema if isinstance(schema, str) else schema["type"]
    if isinstance(kind, str) and kind in _PRIMITIVES:
        return _PRIMITIVES[kind]
    if kind == "fixed":
        size = schema["size"]
        if not isinstance(size, int) or not 0 < size <= 1024:
            raise DamagedFileError("its schema has a type of an impossible size")
        return lambda decoder: decoder.read(size)
    if kind == "array":
        return _array(schema["items"], depth)
    if kind == "map":
        return _items(_both(methodcaller("read_utf8"), _value(schema["values"], depth + 1)))
    if kind == "record":
        readers = [_value(field["type"], depth + 1) for field in schema["fields"]]
        return lambda decoder: [read(decoder) for read in readers]
    if isinstance(kind, (dict, list)):
        return _value(kind, depth + 1)
    raise DamagedFileError(f"its schema has an unknown type {kind!r}")


def _union(schemas: list[Any], depth: int) -> _Read:
    readers = [_value(schema, depth + 1) for schema in schemas]

    def read(decoder: BinaryDecoder) -> Any:
        at = decoder.read_int()
        if not 0 <= at < len(readers):
            raise DamagedFileError("a value has none of the types of its union")
        return readers[at](decoder)

    return read


def _both(one: _Read, other: _Read) -> _Read:
    return lambda decoder: (one(decoder), other(decoder))


def _array(items: Any, depth: int) -> _Read:
    kinds = [_plain(items)]
    if isinstance(items, dict) and items.get("type") == "record":
        kinds = [_plain(field["type"]) for field in items["fields"]]
    if kinds == ["int", "bytes"]:
        return _numbered_bytes
    if all(kind in ("int", "long") for kind in kinds):
        return _numbers(len(kinds))
    return _items(_value(items, depth + 1))


def _plain(schema: Any) -> str | None:
    """Return the name of a primitive type, which DuckDB writes as `{"type": name}`."""
    while isinstance(schema, dict):
        schema = schema.get("type")
    return schema if isinstance(schema, str) and schema in _PRIMITIVES else None


def _items(read: _Read) -> _Read:
    def read_all(decoder: BinaryDecoder) -> list[Any]:
        values: list[Any] = []
        while count := _block_count(decoder):
            at = decoder.tell()
            values.append(read(decoder))
            if decoder.tell() == at and count > 1:
                # Nothing bounds how many there are.
                raise DamagedFileError("it has a list of values that take no bytes")
            values.extend(read(decoder) for _ in range(count - 1))
        return values

    return read_all


def _numbered_bytes(decoder: BinaryDecoder) -> dict[int, bytes]:
    entries: dict[int, bytes] = {}
    while count := _block_count(decoder):
        decoder.read_int_bytes_dict(count, entries)
    return entries


def _numbers(width: int) -> _Read:
    def read(decoder: BinaryDecoder) -> bytes:
        content = b""
        while count := _block_count(decoder):
            numbers: Any = decoder.read_ints(count * width)
            # PyIceberg's decoder in C returns an array, its decoder in Python a tuple.
            content += (array("q", numbers) if isinstance(numbers, tuple) else numbers).tobytes()
        return content

    return read


def _block_count(decoder: BinaryDecoder) -> int:
    count = decoder.read_int()
    if count < 0:
        # Then the size of the block follows, which is not needed.
        decoder.read_int()
    return abs(count)
