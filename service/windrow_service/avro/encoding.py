"""Writes Avro files from columns: each value's bytes in an Arrow array, joined row by row."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_MAGIC = b"Obj\x01"
_MARKER_BYTES = 16
# Blocks are joined in 32-bit offsets: a row of 5,000 columns with bounds takes 200 KB.
BLOCK_ROWS = 2_048
_FASTEST = 1


def longs(values: npt.NDArray[np.int64]) -> pa.Array:
    """Return the encodings of n whole numbers, of `int` or `long`."""
    values = np.asarray(values, np.int64)
    zigzag = (values.astype(np.uint64) << np.uint64(1)) ^ (values >> 63).astype(np.uint64)
    lengths = np.ones(len(values), np.int32)
    for count in range(1, 10):
        lengths += (zigzag >> np.uint64(7 * count)) != 0
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    content = np.empty(offsets[-1], np.uint8)
    for at in range(int(lengths.max(initial=0))):
        rows = np.flatnonzero(lengths > at)
        septet = (zigzag[rows] >> np.uint64(7 * at)).astype(np.uint8) & 127
        more = (lengths[rows] > at + 1).astype(np.uint8) << 7
        content[offsets[rows] + at] = septet | more
    return _binary(offsets, content)


def long(value: int) -> bytes:
    """Return the encoding of a whole number."""
    return bytes(longs(np.array([value], np.int64))[0].as_py())


def data(values: pa.Array) -> pa.Array:
    """Return the encodings of n byte strings or texts; null stays null."""
    values = values.cast(pa.binary())
    lengths = longs(np.asarray(pc.fill_null(pc.binary_length(values), 0), np.int64))
    return pc.binary_join_element_wise(lengths, values, b"")


def datum(value: bytes) -> bytes:
    """Return the encoding of a byte string."""
    return long(len(value)) + value


def fixed(values: npt.NDArray[Any]) -> pa.Array:
    """Return n numbers of one width as little-endian bytes."""
    width = values.dtype.itemsize
    offsets = np.arange(len(values) + 1, dtype=np.int32) * width
    content = values.astype(values.dtype.newbyteorder("<")).view(np.uint8)
    return _binary(offsets, content)


def optional(values: pa.Array) -> pa.Array:
    """Return the encodings of a union of null and another type, from those of that type."""
    present = pc.binary_join_element_wise(pa.scalar(b"\x02"), values, b"")
    return pc.fill_null(present, b"\x00")


def number_map(entries: Sequence[tuple[int, pa.Array]], count: int) -> pa.Array:
    """Return the encodings of n maps with whole numbers as keys, as Iceberg keeps them.

    Args:
        entries: Keys, and for each the encodings of n values; null where a map lacks the key.
        count: n.
    """
    if not entries:
        return pa.array([b"\x00"] * count, pa.binary())
    present = np.array([np.asarray(values.is_valid()) for _, values in entries])
    sizes = present.sum(0, np.int64).reshape(count)
    parts: list[Any] = [pc.if_else(pa.array(sizes > 0), longs(sizes), b"")]
    for key, values in entries:
        pair = pc.binary_join_element_wise(pa.scalar(long(key)), values, b"")
        parts.append(pc.fill_null(pair, b""))
    return pc.binary_join_element_wise(*parts, pa.scalar(b"\x00"), b"")


def rows(columns: Sequence[pa.Array | bytes]) -> pa.Array:
    """Return the encodings of n records, from those of their fields; bytes are in each record."""
    fields = [pa.scalar(one) if isinstance(one, bytes) else one for one in columns]
    return pc.binary_join_element_wise(*fields, b"")


def avro_file(
    schema: Mapping[str, Any], metadata: Mapping[str, str], blocks: Iterable[pa.Array]
) -> bytes:
    """Return an Avro file.

    Args:
        schema: Schema of its records.
        metadata: What else its header says.
        blocks: The encodings of its records.
    """
    header = {"avro.schema": json.dumps(schema), "avro.codec": "deflate", **metadata}
    entries = [datum(key.encode()) + datum(text.encode()) for key, text in header.items()]
    head = _MAGIC + long(len(entries)) + b"".join(entries) + b"\x00"
    # The same file has the same bytes.
    marker = hashlib.sha256(head).digest()[:_MARKER_BYTES]
    parts = [head, marker]
    for block in blocks:
        if not len(block):
            continue
        content = _content(block)
        deflate = zlib.compressobj(_FASTEST, zlib.DEFLATED, -zlib.MAX_WBITS)
        body = deflate.compress(content) + deflate.flush()
        parts += [long(len(block)), long(len(body)), body, marker]
    return b"".join(parts)


def _content(block: pa.Array) -> bytes:
    _, offsets, content = block.buffers()
    edges = np.frombuffer(offsets, np.int32)[block.offset : block.offset + len(block) + 1]
    return bytes(memoryview(content)[edges[0] : edges[-1]]) if content is not None else b""


def _binary(offsets: npt.NDArray[np.int32], content: npt.NDArray[np.uint8]) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(content))]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)
