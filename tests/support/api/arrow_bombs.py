"""Small Arrow IPC streams that decode to gigabytes, as a hostile publisher would send them."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable

import flatbuffers
import numpy as np
import pyarrow as pa

_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_FILES = {"path": ["a"], "size_bytes": [1], "mtime_ns": [1], "row_count": [1]}


def stream_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _with(**columns: pa.Array) -> pa.Table:
    return pa.table({**_FILES, **columns})


def zeros() -> bytes:
    """A hundred batches of 16 MB of zeros each, compressed."""
    column = pa.Array.from_buffers(pa.int64(), 2_000_000, [None, pa.py_buffer(bytes(16_000_000))])
    table = pa.table({"size_bytes": column})
    whole, empty = stream_of(table), stream_of(table.slice(0, 0))
    return _before_batches(empty) + whole[len(_before_batches(empty)) : -8] * 100 + _END


def dictionary() -> bytes:
    """A dictionary with one text of 16 MB, which is the path of 400 files."""
    paths = pa.DictionaryArray.from_arrays(pa.array([0] * 400, pa.int16()), ["x" * 16_000_000])
    return stream_of(pa.table({"path": paths}))


def dictionary_within() -> bytes:
    """The same for the hosts of files."""
    hosts = pa.DictionaryArray.from_arrays(pa.array([0] * 400, pa.int16()), ["x" * 16_000_000])
    return stream_of(_with(hosts=pa.ListArray.from_arrays(pa.array([0, 400], pa.int32()), hosts)))


def runs() -> bytes:
    """One run of 2³¹ - 1 rows."""
    ends = pa.array([2**31 - 1], pa.int32())
    return stream_of(pa.table({"row_count": pa.RunEndEncodedArray.from_arrays(ends, [1])}))


def nulls() -> bytes:
    """A column of 2³¹ - 1 nulls, which takes no bytes."""
    return stream_of(pa.table({"path": _nulls(2**31 - 1)}))


def nulls_within() -> bytes:
    """A file with 2³¹ - 1 hosts, all null."""
    offsets = pa.array([0, 2**31 - 1], pa.int32())
    return stream_of(_with(hosts=pa.ListArray.from_arrays(offsets, _nulls(2**31 - 1))))


def fixed_lists() -> bytes:
    """Lists of 2³¹ - 1 nulls each."""
    type_ = pa.list_(pa.null(), 2**31 - 1)
    lists = pa.Array.from_buffers(type_, 1, [None], children=[_nulls(2**31 - 1)])
    return stream_of(_with(hosts=lists))


def views() -> bytes:
    """50,000 paths that are views of one text of 1 MB."""
    text = b"x" * 1_000_000
    view = struct.pack("<i4sii", len(text), text[:4], 0, 0)
    buffers = [None, pa.py_buffer(view * 50_000), pa.py_buffer(text)]
    return stream_of(pa.table({"path": pa.Array.from_buffers(pa.string_view(), 50_000, buffers)}))


def deep() -> bytes:
    """A column of structs of structs, 60 deep."""
    array = pa.array([1])
    for _ in range(60):
        array = pa.StructArray.from_arrays([array], names=["x"])
    return stream_of(_with(stats=array))


def overlapping() -> bytes:
    """2,000 columns that share the same 8 MB."""
    body = bytes(8_000_000)
    return _schema_of_columns(2_000) + _batch(1_000_000, [(0, len(body))] * 2_000, body)


def shared_fields() -> bytes:
    """Eight levels of structs with 1,000 references to the same field."""
    return _schema(fields=1_000, depth=8)


def shared_texts() -> bytes:
    """Metadata of 40,000 pairs that refer to the same 1 MB."""
    return _schema(texts=40_000)


def message_texts() -> bytes:
    """The same in the message's metadata instead of the schema's."""
    return _schema(message_texts=40_000)


def short_buffers() -> bytes:
    """A batch that claims 20 million rows but has three."""
    return _schema_of_columns(1) + _batch(20_000_000, [(0, 24)], bytes(24))


def many_columns() -> bytes:
    """20,000 files of a table of 10,000 columns without any statistics."""
    columns = [{"name": f"c{n}", "type": "bigint"} for n in range(10_000)]
    numbers = pa.array(np.arange(20_000))
    facts = dict.fromkeys(("size_bytes", "mtime_ns", "row_count"), numbers)
    table = pa.table({"path": numbers.cast(pa.string()), **facts})
    return stream_of(table.replace_schema_metadata({"windrow:columns": json.dumps(columns)}))


BOMBS: tuple[Callable[[], bytes], ...] = (
    zeros,
    dictionary,
    dictionary_within,
    runs,
    nulls,
    nulls_within,
    fixed_lists,
    views,
    deep,
    overlapping,
    shared_fields,
    shared_texts,
    message_texts,
    short_buffers,
    many_columns,
)


def _nulls(count: int) -> pa.Array:
    return pa.Array.from_buffers(pa.null(), count, [None])


def _schema_of_columns(count: int) -> bytes:
    table = pa.table({f"c{n}": pa.array([], pa.int64()) for n in range(count)})
    return _before_batches(stream_of(table))


def _before_batches(stream: bytes) -> bytes:
    """Return the schema message of a stream."""
    (metadata_bytes,) = struct.unpack_from("<i", stream, 4)
    return stream[: 8 + metadata_bytes]


def _schema(fields: int = 1, depth: int = 1, texts: int = 0, message_texts: int = 0) -> bytes:
    """Return a stream of only a schema, whose parts are written once and referenced many times."""
    builder = flatbuffers.Builder()
    name = builder.CreateString("x")
    pair = _table(builder, [builder.CreateString("k"), builder.CreateString("v" * 1_000_000)])
    type_ = _table(builder, [])
    child: int | None = None
    for _ in range(depth):
        children = _vector(builder, [] if child is None else [child] * fields)
        builder.StartObject(7)
        builder.PrependUOffsetTRelativeSlot(0, name, 0)
        builder.PrependUint8Slot(2, 13, 0)  # Struct_
        builder.PrependUOffsetTRelativeSlot(3, type_, 0)
        builder.PrependUOffsetTRelativeSlot(5, children, 0)
        child = builder.EndObject()
    assert child is not None
    top = _vector(builder, [child] * fields)
    pairs = _vector(builder, [pair] * texts)
    beside = _vector(builder, [pair] * message_texts)
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(1, top, 0)
    builder.PrependUOffsetTRelativeSlot(2, pairs, 0)
    header = builder.EndObject()
    return _message(builder, 1, header, 0, beside) + _END


def _batch(rows: int, buffers: list[tuple[int, int]], body: bytes) -> bytes:
    """Return a record batch of int64 columns without nulls, and the end of the stream."""
    builder = flatbuffers.Builder()
    pairs = []
    for start, length in buffers:
        pairs += [(0, 0), (start, length)]
    places = _structs(builder, pairs)
    nodes = _structs(builder, [(rows, 0)] * len(buffers))
    builder.StartObject(5)
    builder.PrependInt64Slot(0, rows, 0)
    builder.PrependUOffsetTRelativeSlot(1, nodes, 0)
    builder.PrependUOffsetTRelativeSlot(2, places, 0)
    header = builder.EndObject()
    return _message(builder, 3, header, len(body)) + body + _END


def _message(
    builder: flatbuffers.Builder, kind: int, header: int, body_bytes: int, texts: int = 0
) -> bytes:
    builder.StartObject(5)
    builder.PrependInt16Slot(0, 4, 0)  # V5
    builder.PrependUint8Slot(1, kind, 0)
    builder.PrependUOffsetTRelativeSlot(2, header, 0)
    builder.PrependInt64Slot(3, body_bytes, 0)
    builder.PrependUOffsetTRelativeSlot(4, texts, 0)
    builder.Finish(builder.EndObject())
    metadata = bytes(builder.Output())
    metadata += bytes(-len(metadata) % 8)
    return struct.pack("<ii", -1, len(metadata)) + metadata


def _table(builder: flatbuffers.Builder, members: list[int]) -> int:
    builder.StartObject(len(members))
    for slot, member in enumerate(members):
        builder.PrependUOffsetTRelativeSlot(slot, member, 0)
    return int(builder.EndObject())


def _vector(builder: flatbuffers.Builder, offsets: list[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def _structs(builder: flatbuffers.Builder, pairs: list[tuple[int, int]]) -> int:
    builder.StartVector(16, len(pairs), 8)
    for one, other in reversed(pairs):
        builder.PrependInt64(other)
        builder.PrependInt64(one)
    return int(builder.EndVector())
