"""Arrow arrays that pyarrow has no function for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def make_struct(columns: list[pa.Array], fields: list[pa.Field], length: int) -> pa.StructArray:
    """Return a struct array without null structs, even if it has no fields."""
    if not fields:
        return pa.Array.from_buffers(pa.struct([]), length, [None])
    return pa.StructArray.from_arrays(columns, fields=fields)


def flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the values of a column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    array = column.combine_chunks()
    if isinstance(array, pa.Array):
        return array
    return pa.concat_arrays(array.chunks) if array.chunks else pa.array([], column.type)


def lists_of(values: pa.Array, count: int) -> pa.ListArray:
    """Return `count` lists of the same values."""
    offsets = np.arange(count + 1, dtype=np.int32) * len(values)
    repeated = values.take(pa.array(np.tile(np.arange(len(values)), count), pa.int64()))
    return pa.ListArray.from_arrays(pa.array(offsets), repeated)
