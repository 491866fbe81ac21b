"""Batches as bytes, from which `PackedRows.java` reads rows in place.

From an Arrow batch, Spark would make a row of its own of each row, with all values, before a query
asks for them. For a sum of two columns that took as long as decoding their files.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.types import has_order

_NONE = -1


def is_packable(type_: pa.DataType) -> bool:
    """Return whether a column of this type can be packed."""
    is_table_type = not (pt.is_unsigned_integer(type_) or pt.is_float16(type_))
    return is_table_type and has_order(type_) and not pt.is_decimal256(type_)


def packed(batch: pa.RecordBatch) -> bytes:
    """Return a batch as a head and the buffers of its arrays.

    The head consists of 32-bit numbers in this machine's byte order: the number of rows, and for
    each column the bit of the first row in its bitmaps, and the sizes in bytes of its three
    buffers. These are: which values are not null (-1 if none is null), where each value begins (-1
    if all have the same length), and the values. The buffers follow in that order.

    Args:
        batch: Not empty, with columns for which `is_packable` is true.
    """
    head = [batch.num_rows]
    content = []
    for array in batch.columns:
        buffers = _buffers(array)
        head += [array.offset % 8, *(_NONE if b is None else b.size for b in buffers)]
        content += [buffer for buffer in buffers if buffer is not None]
    return b"".join([np.array(head, np.int32).tobytes(), *content])


def _buffers(array: pa.Array) -> tuple[pa.Buffer | None, pa.Buffer | None, pa.Buffer]:
    """Return an array's buffers, cut to its own values."""
    validity, *rest = array.buffers()
    start, rows = array.offset, len(array)
    present = _bits(validity, start, rows) if array.null_count else None
    if len(rest) > 1:
        offsets, values = rest
        offsets = offsets.slice(4 * start, 4 * (rows + 1))
        ends = np.frombuffer(offsets, np.int32)
        first, size = int(ends[0]), int(ends[-1] - ends[0])
        # Arrow may have no buffer for values that are all empty.
        return present, offsets, values.slice(first, size) if size else pa.py_buffer(b"")
    (values,) = rest
    if pt.is_boolean(array.type):
        return present, None, _bits(values, start, rows)
    width = array.type.byte_width
    return present, None, values.slice(width * start, width * rows)


def _bits(bitmap: pa.Buffer, start: int, rows: int) -> pa.Buffer:
    first = start // 8
    return bitmap.slice(first, -(-(start + rows) // 8) - first)
