"""Arrow columns in one piece."""

from __future__ import annotations

import pyarrow as pa


def flat(column: pa.ChunkedArray) -> pa.Array:
    """Return the values of a column as one array."""
    combined = column.combine_chunks()
    if isinstance(combined, pa.Array):
        return combined
    return pa.concat_arrays(combined.chunks) if combined.chunks else pa.array([], column.type)
