"""Bitmaps of row positions, the content of deletion vectors of Delta and Iceberg.

The format is the portable one of Roaring bitmaps of 64 bits
(https://github.com/RoaringBitmap/RoaringFormatSpec), after a magic number of Delta's protocol,
which Iceberg has adopted.
"""

from __future__ import annotations

import struct
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

_Ints: TypeAlias = npt.NDArray[np.int64]

_MAGIC = 1681511377
_WITH_RUNS, _WITHOUT_RUNS = 12347, 12346
# A container with more values is a bitmap of 8 KiB.
_MAX_ARRAY = 4096
_BITMAP_BYTES = 8192
_MAX_KEY = 2**31
# With runs, smaller bitmaps have no offsets of their containers.
_MIN_WITH_OFFSETS = 4


class BitmapError(ValueError):
    """The bytes are not such a bitmap."""


def positions_in(content: bytes, most: int) -> _Ints:
    """Return the positions in a bitmap, ascending.

    Args:
        content: The bitmap, from its magic number on.
        most: Positions must be below this number, which also bounds how many are decoded.
    """
    try:
        return _Cursor(content).positions(most)
    except (struct.error, ValueError) as error:
        reason = str(error) if isinstance(error, BitmapError) else "it ends too early"
        raise BitmapError(reason) from error


class _Cursor:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def positions(self, most: int) -> _Ints:
        if self._number("<I") != _MAGIC:
            raise BitmapError("it does not begin as a deletion vector does")
        parts: list[_Ints] = []
        last_key, left = -1, most
        for _ in range(self._number("<Q")):
            key = self._number("<I")
            if key <= last_key or key >= _MAX_KEY:
                raise BitmapError("its parts are not in order")
            low = self._bitmap(left)
            left -= len(low)
            parts.append((key << 32) + low)
            last_key = key
        if self._at != len(self._content):
            raise BitmapError("it has bytes after its end")
        positions = np.concatenate(parts) if parts else np.empty(0, np.int64)
        if len(positions) and positions[-1] >= most:
            raise BitmapError(f"it names row {positions[-1]:,}, but its file has {most:,} rows")
        return positions

    def _bitmap(self, left: int) -> _Ints:
        """Return the positions of one bitmap of 32 bits, at most `left`."""
        cookie = self._number("<I")
        if cookie & 0xFFFF == _WITH_RUNS:
            count = (cookie >> 16) + 1
            flags = np.unpackbits(self._array(np.uint8, -(-count // 8)), bitorder="little")[:count]
        elif cookie == _WITHOUT_RUNS:
            count = self._number("<I")
            flags = np.zeros(min(count, 2**16), np.uint8)
        else:
            raise BitmapError("one of its parts is not a bitmap")
        if count > 2**16:
            raise BitmapError("it has more containers than is possible")
        header = self._array(np.uint16, 2 * count).reshape(-1, 2).astype(np.int64)
        keys, sizes = header[:, 0], header[:, 1] + 1
        # Checked before decoding: a run of a few bytes may stand for 65,536 positions.
        if sizes.sum() > left:
            raise BitmapError("it names more rows than its file has")
        if (np.diff(keys) <= 0).any():
            raise BitmapError("its containers are not in order")
        if cookie == _WITHOUT_RUNS or count >= _MIN_WITH_OFFSETS:
            self._array(np.uint32, count)
        parts = [
            (key << 16) + self._container(size, bool(has_runs))
            for key, size, has_runs in zip(keys.tolist(), sizes.tolist(), flags, strict=True)
        ]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _container(self, size: int, has_runs: bool) -> _Ints:
        if has_runs:
            runs = self._array(np.uint16, 2 * self._number("<H")).reshape(-1, 2).astype(np.int64)
            starts, counts = runs[:, 0], runs[:, 1] + 1
            if counts.sum() != size:
                raise BitmapError("its runs do not hold as many rows as it says")
            before = np.cumsum(counts) - counts
            values = np.arange(size) + np.repeat(starts - before, counts)
        elif size > _MAX_ARRAY:
            bits = np.unpackbits(self._array(np.uint8, _BITMAP_BYTES), bitorder="little")
            values = np.flatnonzero(bits)
        else:
            values = self._array(np.uint16, size).astype(np.int64)
        if len(values) != size or (np.diff(values) <= 0).any() or values[-1] >= 2**16:
            raise BitmapError("the rows in a container do not match its header")
        return np.asarray(values, np.int64)

    def _number(self, format: str) -> int:
        (number,) = struct.unpack_from(format, self._content, self._at)
        self._at += struct.calcsize(format)
        return int(number)

    def _array(self, dtype: type[np.unsignedinteger[Any]], count: int) -> npt.NDArray[Any]:
        type_ = np.dtype(dtype).newbyteorder("<")
        if self._at + count * type_.itemsize > len(self._content):
            raise BitmapError("it ends too early")
        values = np.frombuffer(self._content, type_, count, self._at)
        self._at += values.nbytes
        return values
