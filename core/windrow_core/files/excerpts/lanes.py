"""Thrift's compact protocol, for many messages of the same shape at a time.

Each step handles one field of all messages, so that its cost in Python is shared by all of them.
The first message leads: messages whose fields differ from its fields, in kind or number, drop out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from windrow_core.files.excerpts.thrift import (
    BINARY,
    BOOLEANS,
    BYTE,
    FIXED_BYTES,
    INTEGERS,
    LIST,
    MAX_DEPTH,
    SET,
    STRUCT,
    ThriftError,
)

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

# Longer numbers are of no use in Parquet.
_MAX_VARINT_BITS = 63


class Lanes:
    """Goes through the fields of n messages.

    Args:
        data: Bytes with all the messages.
        at: Where each begins; n offsets.
        ends: Where each ends at the latest; n offsets.

    Attributes:
        at: Where each message goes on; without meaning for those that dropped out.
        alike: Which messages have had the shape of the first one so far.
    """

    def __init__(self, data: Bytes, at: Ints, ends: Ints) -> None:
        self._data = data
        self._ends = ends
        self.at = at.copy()
        self.alike = np.ones(len(at), np.bool_)

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield the number and type of each field; the caller takes or skips its values."""
        number = 0
        while head := self.same_byte():
            number = number + (head >> 4) if head >> 4 else self.same_integer()
            yield number, head & 15

    def integers(self) -> Ints:
        """Take an integer of each message."""
        values = self._varints()
        integers: Ints = (values >> 1) ^ -(values & 1)
        return integers

    def same_integer(self) -> int:
        """Take an integer that is the same in all messages."""
        return self._same(self.integers())

    def same_bytes(self, count: int) -> None:
        """Pass over bytes that are the same in all messages."""
        if not 0 <= count <= self._ends[0] - self.at[0]:
            raise ThriftError
        self._pass(np.full(len(self.at), count))
        if count:
            own = sliding_window_view(self._data, count)[np.maximum(self.at - count, 0)]
            self.alike &= (own == own[0]).all(axis=1)

    def same_rest(self) -> None:
        """Pass over all that is left, which is the same in all messages."""
        self.same_bytes(int(self._ends[0] - self.at[0]))
        self.alike &= self.at == self._ends

    def listed(self) -> tuple[int, int]:
        """Take the head of a list: how many elements of which type follow."""
        head = self.same_byte()
        count = head >> 4 if head >> 4 < 15 else self._same(self._varints())
        if count > self._ends[0] - self.at[0]:
            raise ThriftError
        return count, head & 15

    def skip(self, type_: int, depth: int = 0) -> None:
        """Pass over a value."""
        if depth > MAX_DEPTH:
            raise ThriftError
        if type_ in INTEGERS:
            self._varints()
        elif type_ == BINARY:
            self._pass(self._varints())
        elif type_ in FIXED_BYTES:
            self._pass(np.full(len(self.at), FIXED_BYTES[type_]))
        elif type_ in (LIST, SET):
            count, of = self.listed()
            for _ in range(count):
                # Only in lists does a boolean take a byte.
                self.skip(BYTE if of in BOOLEANS else of, depth + 1)
        elif type_ == STRUCT:
            for _, of in self.fields():
                self.skip(of, depth + 1)
        elif type_ not in BOOLEANS:
            # Parquet has no maps.
            raise ThriftError

    def same_byte(self) -> int:
        """Take a byte that is the same in all messages."""
        return self._same(self._bytes())

    def _same(self, values: Bytes | Ints) -> int:
        self.alike &= values == values[0]
        return int(values[0])

    def _bytes(self) -> Bytes:
        inside = self.at < self._ends
        if not inside.all():
            self._drop(inside)
        values: Bytes = self._data[self.at]
        self.at += 1
        return values

    def _pass(self, counts: Ints) -> None:
        inside = (counts >= 0) & (counts <= self._ends - self.at)
        if inside.all():
            self.at += counts
        else:
            self._drop(inside)
            self.at += np.where(inside, counts, 0)

    def _drop(self, inside: Mask) -> None:
        """Drop the messages that have come to an end; they stay where all may read."""
        self.alike &= inside
        if not self.alike[0]:
            raise ThriftError
        self.at[~inside] = self.at[0]

    def _varints(self) -> Ints:
        first = self._bytes()
        values = (first & 127).astype(np.int64)
        more = first > 127
        shift = 7
        while more.any():
            if shift >= _MAX_VARINT_BITS:
                self.alike &= ~more
                if not self.alike[0]:
                    raise ThriftError
                break
            inside = self.at < self._ends
            if not inside.all():
                self._drop(inside)
            bytes_ = self._data[self.at]
            values |= np.where(more, bytes_ & 127, 0).astype(np.int64) << shift
            self.at += more
            more &= bytes_ > 127
            shift += 7
        return values
