"""The memory that a published inventory takes, and its limit."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.types import has_order
from windrow_service.inventory.errors import InvalidInventoryError

_COUNT_BYTES = 8
_OFFSET_BYTES = 4


def refuse_beyond(size_bytes: int, max_bytes: int) -> None:
    """Check that a published inventory takes no more memory than allowed."""
    if size_bytes > max_bytes:
        raise InvalidInventoryError(
            f"decoded, it takes more than the allowed {max_bytes:,} bytes: send it as "
            "several deltas, or raise WINDROW_LIMITS__MAX_PUBLISH_DECODED_BYTES"
        )


def stats_bytes(file_count: int, columns: pa.Schema) -> int:
    """Return the least number of bytes that the statistics of files take, known or not.

    Args:
        file_count: Number of files.
        columns: Columns of the table.
    """
    ordered = [field.type for field in columns if has_order(field.type)]
    return file_count * sum(2 * _width(type_) + _COUNT_BYTES for type_ in ordered)


def _width(type_: pa.DataType) -> int:
    if pt.is_string(type_) or pt.is_binary(type_):
        return _OFFSET_BYTES
    return -(-int(type_.bit_width) // 8)
