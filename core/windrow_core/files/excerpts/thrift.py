"""The part of Thrift's compact protocol that Parquet footers need.

Bytes from files are skimmed: only the values asked for are decoded, and every length is compared
with the number of bytes that are left.
"""

from __future__ import annotations

from collections.abc import Iterator

BYTE, INT, LONG, BINARY, LIST, SET, STRUCT = 3, 5, 6, 8, 9, 10, 12
_TRUE, _FALSE, _SHORT, _DOUBLE, _UUID = 1, 2, 4, 7, 13
BOOLEANS = (_TRUE, _FALSE)
INTEGERS = (_SHORT, INT, LONG)
FIXED_BYTES = {BYTE: 1, _DOUBLE: 8, _UUID: 16}
MAX_DEPTH = 16
_MAX_VARINT_BITS = 70

END = b"\0"


class ThriftError(ValueError):
    """The bytes are not Thrift's compact protocol."""

    def __init__(self) -> None:
        super().__init__("its footer is damaged: its fields cannot be told apart")


class Skimmer:
    """Goes through the fields of a message.

    Args:
        data: The message.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield the number and type of each field; the caller takes or skips its value."""
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self.integer()
            yield number, head & 15

    def integer(self) -> int:
        """Take an integer."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def text(self) -> bytes:
        """Take a string."""
        length = self._varint()
        self._pass(length)
        return self.data[self.at - length : self.at]

    def listed(self) -> tuple[int, int]:
        """Take the head of a list: how many elements of which type follow."""
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._varint()
        if count > len(self.data) - self.at:
            raise ThriftError
        return count, head & 15

    def skip(self, type_: int, depth: int = 0) -> None:
        """Pass over a value."""
        if depth > MAX_DEPTH:
            raise ThriftError
        if type_ in INTEGERS:
            self._varint()
        elif type_ == BINARY:
            self._pass(self._varint())
        elif type_ in FIXED_BYTES:
            self._pass(FIXED_BYTES[type_])
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

    def _byte(self) -> int:
        self._pass(1)
        return self.data[self.at - 1]

    def _pass(self, count: int) -> None:
        if count > len(self.data) - self.at:
            raise ThriftError
        self.at += count

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift >= _MAX_VARINT_BITS:
                raise ThriftError


def field(type_: int, after: int = 1) -> bytes:
    """Return the head of a field, whose number is larger by `after` than the one before."""
    return bytes([after << 4 | type_])


def integer(value: int) -> bytes:
    """Return a non-negative number of 32 or 64 bits."""
    return _varint(value << 1)


def text(value: bytes) -> bytes:
    """Return a string."""
    return _varint(len(value)) + value


def list_head(type_: int, count: int) -> bytes:
    """Return the head of a list, which its elements follow."""
    return bytes([count << 4 | type_]) if count < 15 else bytes([15 << 4 | type_]) + _varint(count)


def listed(type_: int, elements: list[bytes]) -> bytes:
    """Return a list."""
    return list_head(type_, len(elements)) + b"".join(elements)


def _varint(value: int) -> bytes:
    if value < 128:
        return bytes([value])
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)
