"""Bloom filters of the values of one column in a file: may the file hold a given value?

They are Parquet's split-block Bloom filters: 256-bit blocks of eight words, where each value sets
one bit in each word of one block, after "Cache-, Hash- and Space-Efficient Bloom Filters" (Putze,
Sanders, Singler) and the Parquet format's `BloomFilter.md`. Values that compare equal have equal
hashes, whatever type the file stores them as: an int32 in a file matches the table's decimal.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt
import xxhash

from windrow_core.files.types import has_order, stored_as
from windrow_service.planner.pruning.expressions import Scalar

MAX_FILTER_BYTES = 32 * 1024
# 1 % of false positives: 8 / -ln(1 - 0.01 ** (1 / 8)) bits for each value.
_BITS_PER_VALUE = 9.682
_BLOCK_BYTES = 32
_BLOCK_BITS = 8 * _BLOCK_BYTES
MAX_VALUES = int(8 * MAX_FILTER_BYTES / _BITS_PER_VALUE)
# With more literals than this, at 1 % false positives each, a filter rarely rules out a file.
_MAX_PROBES = 64

_SALT = np.array(
    [
        0x47B6137B,
        0x44974D91,
        0x8824AD5B,
        0xA2B7289D,
        0x705495C7,
        0x2DF1424B,
        0x9EFC4947,
        0x5C6BFB31,
    ],
    np.uint32,
)
# More digits than any decimal column has, so that nothing is rounded.
_EXACT = Context(prec=100)
_DAY_US = 86_400_000_000
_US_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


def can_filter(type_: pa.DataType) -> bool:
    """Return whether there can be Bloom filters for columns of this type."""
    return has_order(type_) or bool(pt.is_date(type_)) or _is_bytes(type_)


def bloom_filter(values: pa.Array | pa.ChunkedArray) -> bytes:
    """Return the Bloom filter of a column's values; empty if there are too many values for one.

    Args:
        values: Values of a type that `can_filter` allows; nulls are ignored.
    """
    distinct = values.unique().drop_null()
    if len(distinct) > 2 * MAX_VALUES:
        return b""
    hashes = np.unique(_hashes(distinct))
    if len(hashes) > MAX_VALUES:
        return b""
    count = max(1, int(np.ceil(len(hashes) * _BITS_PER_VALUE / _BLOCK_BITS)))
    blocks = np.zeros((count, len(_SALT)), "<u4")
    np.bitwise_or.at(blocks, _blocks(hashes, np.array([count])), _bits(hashes))
    return blocks.tobytes()


class BloomColumn:
    """The Bloom filters of one column in n files.

    Args:
        filters: n filters, as returned by `bloom_filter`; null means unknown.
        type_: The type of the table's column.
    """

    def __init__(self, filters: pa.ChunkedArray, type_: pa.DataType) -> None:
        self._chunks = [_Filters(chunk) for chunk in filters.chunks]
        self._type = type_

    def may_hold(self, literals: Sequence[Scalar], first: Ints, last: Ints) -> Bools:
        """Return, for each file, whether it may hold any of `literals[first:last]`.

        Args:
            literals: At least one, of the column's kind.
            first: n positions in `literals`.
            last: n positions in `literals`; where it equals `first`, the answer is False.
        """
        hashes = _hashes(pa.array(literals, literal_type(self._type)))
        hits = last - first > _MAX_PROBES
        begin = 0
        for chunk in self._chunks:
            here = slice(begin, begin + len(chunk.known))
            begin = here.stop
            hits[here] |= ~chunk.known & (last[here] > first[here])
            rows = np.flatnonzero(~hits[here])
            at, end = first[here][rows], last[here][rows]
            while (left := at < end).any():
                rows, at, end = rows[left], at[left], end[left]
                hit = chunk.hold(rows, hashes[at] if len(hashes) > 1 else hashes)
                hits[here][rows[hit]] = True
                rows, at, end = rows[~hit], at[~hit] + 1, end[~hit]
        return hits


class _Filters:
    """Filters that are stored in one buffer, end to end.

    Attributes:
        known: Whether there is a filter at each position.
    """

    def __init__(self, filters: pa.LargeBinaryArray) -> None:
        _, offsets, data = filters.buffers()
        edges = np.frombuffer(offsets, np.int64)[filters.offset :][: len(filters) + 1]
        edges = edges // _BLOCK_BYTES
        self._first, self._count = edges[:-1], np.diff(edges)
        size = int(edges[-1]) if len(edges) else 0
        words = np.frombuffer(data, "<u4", size * len(_SALT)) if size else np.empty(0, "<u4")
        self._blocks = words.reshape(-1, len(_SALT))
        valid = filters.is_valid().to_numpy(zero_copy_only=False)
        self.known = np.asarray(valid & (self._count > 0), np.bool_)

    def hold(self, rows: Ints, hashes: Hashes) -> Bools:
        """Return whether the filters at `rows`, all known, may hold one hash each, or one for all."""
        bits = _bits(hashes)
        blocks = self._blocks[self._first[rows] + _blocks(hashes, self._count[rows])]
        return np.asarray(((blocks & bits) == bits).all(axis=1))


def _blocks(hashes: Hashes, counts: Ints) -> Ints:
    """Return the block, out of `counts` blocks, that each hash belongs to."""
    high = hashes >> np.uint64(32)
    return np.asarray((high * counts.astype(np.uint64)) >> np.uint64(32), np.int64)


def _bits(hashes: Hashes) -> npt.NDArray[np.uint32]:
    """Return the bit of each hash in each word of a block."""
    low = (hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    shifts = (low[:, None] * _SALT) >> np.uint32(27)
    return np.asarray(np.uint32(1) << shifts, np.uint32)


def _hashes(values: pa.Array) -> Hashes:
    """Return the hashes of values; a nanosecond time gets two, as it may be rounded up or down."""
    return np.array([xxhash.xxh64_intdigest(key) for key in _keys(values)], np.uint64)


def _keys(values: pa.Array) -> list[bytes]:
    """Return bytes that are the same for values that compare equal."""
    type_ = values.type
    if pt.is_dictionary(type_):
        return _keys(values.dictionary_decode())
    if _is_bytes(type_):
        keys: list[bytes] = values.cast(pa.large_binary()).to_pylist()
        return keys
    if pt.is_decimal(type_):
        return [_decimal_key(value) for value in values.to_pylist()]
    words = np.asarray(_words(values)).tobytes()
    return [words[at : at + 8] for at in range(0, len(words), 8)]


def _words(values: pa.Array) -> npt.NDArray[np.generic]:
    type_ = values.type
    if pt.is_floating(type_):
        return _float_words(values.cast(pa.float64()).to_numpy())
    if pt.is_timestamp(type_):
        ticks = values.cast(pa.int64()).to_numpy()
        if type_.unit != "ns":
            return np.asarray(ticks * _US_PER_UNIT[type_.unit])
        return np.concatenate([ticks // 1_000, -(-ticks[ticks % 1_000 != 0] // 1_000)])
    if pt.is_date(type_):
        days = values.cast(pa.date32()).cast(pa.int32()).cast(pa.int64()).to_numpy()
        return np.asarray(days * _DAY_US)
    target = pa.uint64() if pt.is_uint64(type_) else pa.int64()
    return np.asarray(values.cast(stored_as(type_)).cast(target).to_numpy(zero_copy_only=False))


def _float_words(values: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """Return the bits of whole numbers as integers, of others as doubles; all NaN are equal."""
    words = np.where(np.isnan(values), np.nan, values).view(np.uint64)
    whole = (values == np.floor(values)) & (np.abs(values) < 2.0**63)
    words[whole] = values[whole].astype(np.int64).view(np.uint64)
    return words


def _decimal_key(value: Decimal) -> bytes:
    if value == value.to_integral_value() and -(2**63) <= value < 2**64:
        return (int(value) % 2**64).to_bytes(8, "little")
    return format(value.normalize(_EXACT), "f").encode()


def literal_type(type_: pa.DataType) -> pa.DataType:
    """Return the type that holds every literal that is compared with columns of a type."""
    if pt.is_floating(type_):
        return pa.float64()
    if pt.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    return type_


def _is_bytes(type_: pa.DataType) -> bool:
    tests = (
        pt.is_string,
        pt.is_large_string,
        pt.is_string_view,
        pt.is_binary,
        pt.is_large_binary,
        pt.is_binary_view,
        pt.is_fixed_size_binary,
    )
    return any(is_a(type_) for is_a in tests)
