"""Arrow IPC streams from callers: their decoded size is computed before anything is decoded.

A stream of a few kilobytes can decode to gigabytes: buffers are compressed, dictionaries and runs
repeat a value, null columns have a length but no bytes, and one text of a schema can be referenced
a million times. So pyarrow only gets streams whose messages were checked here first. Nothing in a
message is trusted: invalid offsets end the check, and anything that may be shared is counted
each time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from windrow_service.inventory.errors import InvalidInventoryError
from windrow_service.inventory.published.size import refuse_beyond

# Columns, including the fields of their structs and lists.
_MAX_FIELDS = 50_000
_MAX_DEPTH = 8
# One message without its body: names, metadata, and the positions of buffers.
_MAX_METADATA_BYTES = 32 * 2**20
# Memory of an array in addition to its buffers.
_ARRAY_BYTES = 512
# Memory of a value in an inventory, however narrow it was sent.
_VALUE_BYTES = 8

# Slots of the tables of Arrow's Message.fbs and Schema.fbs: the n-th member is at 4 + 2n.
_HEADER_TYPE, _HEADER, _BODY_LENGTH, _MESSAGE_TEXTS = 6, 8, 10, 12
_FIELDS, _SCHEMA_TEXTS = 6, 8
_NAME, _CHILDREN, _FIELD_TEXTS = 4, 14, 16
_KEY, _VALUE = 4, 6
_NODES, _BUFFERS, _COMPRESSION = 6, 8, 10
_SCHEMA, _RECORD_BATCH = 1, 3

# Errors raised by following an offset that points outside a message.
_LEADS_NOWHERE = (IndexError, ValueError, struct.error)

_PLAIN = (
    pt.is_null,
    pt.is_boolean,
    pt.is_integer,
    pt.is_floating,
    pt.is_decimal,
    pt.is_temporal,
    pt.is_string,
    pt.is_large_string,
    pt.is_binary,
    pt.is_large_binary,
    pt.is_fixed_size_binary,
)


def read_stream(stream: bytes, max_bytes: int) -> pa.Table:
    """Decode an Arrow IPC stream of plain columns.

    Args:
        stream: The bytes that a caller sent.
        max_bytes: Most bytes that it may decode to.

    Raises:
        InvalidInventoryError: The bytes are not a complete Arrow stream, decode to too much, or
            have a column whose type is not plain.
    """
    try:
        _check_declared(stream, max_bytes)
        with pa.ipc.open_stream(stream) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, *_LEADS_NOWHERE) as error:
        raise InvalidInventoryError(f"it is not an Arrow IPC stream: {error}") from error
    return table


def _refuse_unless_plain(name: str, type_: pa.DataType) -> None:
    # Extension types count as not plain. A name that is not UTF-8 raises.
    if pt.is_struct(type_):
        for field in type_:
            _refuse_unless_plain(f"{name}.{field.name}", field.type)
    elif pt.is_list(type_) or pt.is_large_list(type_):
        _refuse_unless_plain(f"{name}.{type_.value_field.name}", type_.value_type)
    elif not any(is_plain(type_) for is_plain in _PLAIN):
        raise InvalidInventoryError(
            f"column {name!r} is {type_}; send plain numbers, texts, bytes and times, or lists and "
            "structs of them"
        )


def _check_declared(stream: bytes, max_bytes: int) -> None:
    messages = _messages(stream)
    schema = next(messages, None)
    if schema is None or schema.kind != _SCHEMA:
        raise InvalidInventoryError(
            "it is not an Arrow IPC stream: it does not begin with a schema"
        )
    size_bytes = _declared_in_schema(schema, max_bytes)
    for field in pa.ipc.read_schema(pa.py_buffer(stream)):
        _refuse_unless_plain(field.name, field.type)
    for message in messages:
        if message.kind != _RECORD_BATCH:
            raise InvalidInventoryError("it has messages other than record batches: leave them out")
        size_bytes += _declared_in_batch(message)
        refuse_beyond(size_bytes, max_bytes)


@dataclass(frozen=True, slots=True)
class _Table:
    """A flatbuffer table, wherever it claims to be."""

    metadata: memoryview
    start: int

    def number(self, slot: int, form: str) -> int:
        """Return a number, or 0 if it is missing."""
        at = self._at(slot)
        return int(struct.unpack_from(form, self.metadata, at)[0]) if at else 0

    def table(self, slot: int) -> _Table | None:
        """Return a nested table."""
        at = self._follow(slot)
        return _Table(self.metadata, at) if at else None

    def text_bytes(self, slot: int) -> int:
        """Return the length of a text."""
        at = self._follow(slot)
        return _offset(self.metadata, at) if at else 0

    def tables(self, slot: int) -> Iterator[_Table]:
        """Yield the tables of a vector; refuse more than a schema may have."""
        at = self._follow(slot)
        count = _offset(self.metadata, at) if at else 0
        if count > _MAX_FIELDS:
            raise InvalidInventoryError(f"it has more than {_MAX_FIELDS:,} columns or entries")
        for entry in range(at + 4, at + 4 + 4 * count, 4):
            yield _Table(self.metadata, entry + _offset(self.metadata, entry))

    def pairs(self, slot: int) -> npt.NDArray[np.int64]:
        """Return a vector of pairs of 64-bit integers."""
        at = self._follow(slot)
        if not at:
            return np.empty((0, 2), np.int64)
        count = 2 * _offset(self.metadata, at)
        return np.frombuffer(self.metadata, "<i8", count, at + 4).reshape(-1, 2)

    def _follow(self, slot: int) -> int:
        at = self._at(slot)
        return at + _offset(self.metadata, at) if at else 0

    def _at(self, slot: int) -> int:
        """Return the position of a member, or 0 if it is missing."""
        (back,) = struct.unpack_from("<i", self.metadata, self.start)
        slots = self.start - back
        (size,) = struct.unpack_from("<H", self.metadata, slots)
        if slot >= size:
            return 0
        (away,) = struct.unpack_from("<H", self.metadata, slots + slot)
        return self.start + int(away) if away else 0


@dataclass(frozen=True, slots=True)
class _Message:
    kind: int
    header: _Table
    body: memoryview


def _messages(stream: bytes) -> Iterator[_Message]:
    """Yield the messages of a stream."""
    view = memoryview(stream)
    at = 0
    while at < len(view):
        (length,) = struct.unpack_from("<i", view, at)
        at += 4
        if length == -1:
            (length,) = struct.unpack_from("<i", view, at)
            at += 4
        if length == 0:
            return
        if not 0 < length <= min(_MAX_METADATA_BYTES, len(view) - at):
            raise InvalidInventoryError(
                "it is not an Arrow IPC stream: the metadata of a message is cut short, or has more "
                f"than {_MAX_METADATA_BYTES:,} bytes"
            )
        metadata = view[at : at + length]
        at += length
        message = _Table(metadata, _offset(metadata, 0))
        header = message.table(_HEADER)
        body_bytes = message.number(_BODY_LENGTH, "<q")
        if not 0 <= body_bytes <= len(view) - at or header is None:
            raise InvalidInventoryError(
                "it is not an Arrow IPC stream: the body of a message is cut short"
            )
        if list(message.tables(_MESSAGE_TEXTS)):
            raise InvalidInventoryError("a message has its own metadata; only a schema may have it")
        yield _Message(message.number(_HEADER_TYPE, "<B"), header, view[at : at + body_bytes])
        at += body_bytes


def _declared_in_schema(message: _Message, max_bytes: int) -> int:
    """Return the memory of a schema in bytes."""
    size_bytes = _texts_bytes(message.header, _SCHEMA_TEXTS)
    fields = [(field, 1) for field in message.header.tables(_FIELDS)]
    count = 0
    while fields:
        field, depth = fields.pop()
        count += 1
        if count > _MAX_FIELDS or depth > _MAX_DEPTH:
            raise InvalidInventoryError(
                f"its schema has more than {_MAX_FIELDS:,} fields, or fields nested {_MAX_DEPTH} deep"
            )
        size_bytes += _ARRAY_BYTES + field.text_bytes(_NAME) + _texts_bytes(field, _FIELD_TEXTS)
        refuse_beyond(size_bytes, max_bytes)
        fields += [(child, depth + 1) for child in field.tables(_CHILDREN)]
    return size_bytes


def _declared_in_batch(message: _Message) -> int:
    """Return the bytes that a record batch decodes to, or the bytes of its values if more."""
    lengths = message.header.pairs(_NODES)[:, 0]
    buffers = message.header.pairs(_BUFFERS)
    if (lengths < 0).any() or (buffers < 0).any():
        raise InvalidInventoryError("a record batch states a negative length")
    sizes = buffers[:, 1]
    if message.header.table(_COMPRESSION) is not None:
        sizes = _uncompressed_sizes(message.body, buffers[sizes > 0])
    # In floating point, because the sum may exceed 64 bits.
    size_bytes = max(float(sizes.sum(dtype=float)), _VALUE_BYTES * float(lengths.sum(dtype=float)))
    return int(size_bytes) + _ARRAY_BYTES * len(lengths)


def _uncompressed_sizes(body: memoryview, buffers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the number before each compressed buffer: its size, or -1 if it is not compressed."""
    starts = buffers[:, 0]
    if not len(buffers):
        return starts
    if starts.max() > len(body) - _VALUE_BYTES:
        raise InvalidInventoryError("a buffer lies outside its message")
    prefixes = np.frombuffer(body, np.uint8)[starts[:, None] + np.arange(8)]
    sizes = np.ascontiguousarray(prefixes).view("<i8")[:, 0]
    if (sizes < -1).any():
        raise InvalidInventoryError("a record batch states a negative length")
    return np.where(sizes == -1, buffers[:, 1] - 8, sizes)


def _texts_bytes(table: _Table, slot: int) -> int:
    """Return the total length of the keys and values of metadata, in bytes."""
    return sum(
        _ARRAY_BYTES + pair.text_bytes(_KEY) + pair.text_bytes(_VALUE)
        for pair in table.tables(slot)
    )


def _offset(metadata: memoryview, at: int) -> int:
    (offset,) = struct.unpack_from("<I", metadata, at)
    return int(offset)
