"""Spark's hash of columns, as computed by `hash` and `repartition`, for many rows at once.

It is Murmur3 (x86, 32 bits), which differs in two ways from the implementations in libraries:
columns are chained, the hash of one being the seed of the next; and each of the last one to three
bytes of a text is mixed as a whole word. See `org.apache.spark.unsafe.hash.Murmur3_x86_32` and
`HashExpression`; the algorithm is by Austin Appleby.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.types import stored_as
from windrow_service.planner.splits import Ints
from windrow_service.planner.writes.errors import UnhashableTypeError

Words: TypeAlias = npt.NDArray[np.uint32]
Integers: TypeAlias = npt.NDArray[np.signedinteger[Any]]
Floating: TypeAlias = npt.NDArray[np.floating[Any]]

SEED = 42
_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_ADDED = np.uint32(0xE6546B64)
# A decimal of up to this many digits fits a long, and Spark hashes it as one.
_LONG_DIGITS = 18


def hash_columns(columns: Sequence[pa.Array], rows: int, seed: int = SEED) -> Words:
    """Return Spark's `hash` of each row, as unsigned; the caller reinterprets it as signed.

    Args:
        columns: Each with `rows` values, in the order of the arguments of `hash`.
        rows: Number of rows.
        seed: Seed of the first column.

    Complexity: O(n) per column, and for texts O(n) per 4 bytes of the longest one.
    """
    hashes: Words = np.full(rows, seed, np.uint32)
    for column in columns:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        # NULL leaves the hash unchanged.
        hashes = np.where(valid, _hash_column(column, hashes), hashes)
    return hashes


def hash_int(values: Integers, seeds: Words) -> Words:
    """Return the hash of an INT for each row, chained to the hashes so far."""
    return _finish(_mix(seeds, values.astype(np.int32, copy=False).view(np.uint32)), np.uint32(4))


def partition_of(hashes: Words, partitions: int) -> Ints:
    """Return the partition to which `repartition(partitions, …)` sends rows: `pmod(hash, n)`."""
    return np.mod(hashes.view(np.int32).astype(np.int64), partitions)


def _hash_column(column: pa.Array, seeds: Words) -> Words:
    type_ = column.type
    stored = stored_as(type_)
    if pt.is_boolean(stored) or (pt.is_signed_integer(stored) and stored.bit_width <= 32):
        return hash_int(_numbers(column.cast(stored), pa.int32()), seeds)
    if pt.is_int64(stored) and not (pt.is_timestamp(type_) and type_.unit != "us"):
        return _hash_long(_numbers(column.cast(stored), pa.int64()), seeds)
    if pt.is_float32(type_):
        return hash_int(_float_bits(column, np.float32).view(np.int32), seeds)
    if pt.is_float64(type_):
        return _hash_long(_float_bits(column, np.float64).view(np.int64), seeds)
    if pt.is_decimal128(type_):
        return _hash_decimal(column, seeds)
    if pt.is_string(type_):
        return _hash_bytes(column.cast(pa.large_binary()), seeds)
    raise UnhashableTypeError(str(type_))


def _numbers(column: pa.Array, type_: pa.DataType) -> Integers:
    numbers: Integers = column.cast(type_).fill_null(0).to_numpy(zero_copy_only=False)
    return numbers


def _float_bits(column: pa.Array, type_: type[np.float32] | type[np.float64]) -> Floating:
    values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(type_)
    # -0.0 equals 0.0, so Spark hashes it as 0.0, and all NaN as one value.
    bits: Floating = np.where(np.isnan(values), np.nan, values + 0).astype(type_)
    return bits


def _hash_long(values: Integers, seeds: Words) -> Words:
    bits = values.astype(np.int64, copy=False).view(np.uint64)
    hashes = _mix(seeds, (bits & np.uint64(0xFFFFFFFF)).astype(np.uint32))
    hashes = _mix(hashes, (bits >> np.uint64(32)).astype(np.uint32))
    return _finish(hashes, np.uint32(8))


def _hash_decimal(column: pa.Array, seeds: Words) -> Words:
    # The buffer holds the unscaled values, 16 bytes each, little-endian.
    raw = column.buffers()[1]
    if column.type.precision <= _LONG_DIGITS:
        low = np.frombuffer(raw, np.int64)[2 * column.offset :: 2][: len(column)]
        return _hash_long(low, seeds)
    data = raw.to_pybytes()
    places = range(16 * column.offset, 16 * (column.offset + len(column)), 16)
    numbers = (int.from_bytes(data[at : at + 16], "little", signed=True) for at in places)
    # Like BigInteger.toByteArray: big-endian, the fewest bytes that hold the number and its sign.
    texts = [
        number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)
        for number in numbers
    ]
    return _hash_bytes(pa.array(texts, pa.large_binary()), seeds)


def _hash_bytes(column: pa.Array, seeds: Words) -> Words:
    offsets = np.frombuffer(column.buffers()[1], np.int64)
    offsets = offsets[column.offset : column.offset + len(column) + 1]
    begin, lengths = offsets[:-1], np.diff(offsets)
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)
    hashes = seeds.copy()
    whole = lengths - lengths % 4
    for at in range(0, int(whole.max(initial=0)), 4):
        rows = np.flatnonzero(whole > at)
        first = begin[rows] + at
        word = np.zeros(len(rows), np.uint32)
        for byte in range(4):
            word |= data[first + byte].astype(np.uint32) << np.uint32(8 * byte)
        hashes[rows] = _mix(hashes[rows], word)
    for at in range(3):
        rows = np.flatnonzero(whole + at < lengths)
        signed = data[begin[rows] + whole[rows] + at].view(np.int8).astype(np.int32)
        hashes[rows] = _mix(hashes[rows], signed.view(np.uint32))
    return _finish(hashes, lengths.astype(np.uint32))


def _mix(hashes: Words, words: Words) -> Words:
    mixed = hashes ^ (_rotated(words * _C1, 15) * _C2)
    hashes = _rotated(mixed, 13) * np.uint32(5) + _ADDED
    return hashes


def _finish(hashes: Words, lengths: Words | np.uint32) -> Words:
    hashes = hashes ^ lengths
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    hashes = hashes ^ (hashes >> np.uint32(16))
    return hashes


def _rotated(words: Words, bits: int) -> Words:
    rotated: Words = (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
    return rotated
