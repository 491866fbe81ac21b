"""Arrow arrays that pyarrow has no function for.

`pa.array`, `pa.scalar` and NumPy's `asarray` of an Arrow array import pandas, where it is installed,
to check whether values are pandas'. That takes longer than reading most tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
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


def array_of(numbers: npt.NDArray[Any]) -> pa.Array:
    """Return numbers as an Arrow array of the same memory, without pandas."""
    memory = pa.py_buffer(np.ascontiguousarray(numbers))
    type_ = pa.from_numpy_dtype(numbers.dtype)
    return pa.Array.from_buffers(type_, len(numbers), [None, memory])


def numbers_of(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return a column of numbers without nulls as an array of NumPy, without pandas."""
    return np.from_dlpack(flat(column))


def lists_of(values: pa.Array, count: int) -> pa.ListArray:
    """Return `count` lists of the same values."""
    offsets = np.arange(count + 1, dtype=np.int32) * len(values)
    repeated = values.take(pa.array(np.tile(np.arange(len(values)), count), pa.int64()))
    return pa.ListArray.from_arrays(pa.array(offsets), repeated)
