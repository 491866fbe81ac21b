"""Edits the footers of Parquet files, to get what writers with other habits leave behind."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

# The fields of a struct in Thrift's compact protocol: for each number, the type and the value.
Fields = dict[int, tuple[int, Any]]

TRUE, FALSE, BYTE, SHORT, INT, LONG, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

# Numbers of fields. Of FileMetaData:
ROW_GROUPS, KEYS, CREATED_BY, COLUMN_ORDERS = 4, 5, 6, 7
# Of RowGroup, ColumnChunk and ColumnMetaData:
COLUMNS, METADATA, STATISTICS = 1, 3, 12
# Of Statistics; the first two are deprecated:
MAX, MIN, NULL_COUNT, MAX_VALUE, MIN_VALUE, MAX_IS_EXACT, MIN_IS_EXACT = 1, 2, 3, 5, 6, 7, 8

_MAGIC = b"PAR1"
_ONE_BIT = (TRUE, FALSE)


def edit(path: Path, change: Callable[[Fields], None]) -> None:
    """Change the footer of a file in place.

    Args:
        path: The file.
        change: Changes a decoded `FileMetaData`.
    """
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    begin = len(content) - 8 - length
    footer = _Reader(content[begin:-8]).struct()
    change(footer)
    encoded = _struct(footer)
    end = len(encoded).to_bytes(4, "little") + _MAGIC
    path.write_bytes(content[:begin] + encoded + end)


def edit_statistics(
    path: Path,
    change: Callable[[Fields], None] = lambda _: None,
    *,
    created_by: str | None = None,
    with_orders: bool = True,
    with_keys: bool = True,
) -> None:
    """Change the statistics of all column chunks of a file, and what the footer says of them.

    Args:
        path: The file.
        change: Changes decoded `Statistics`.
        created_by: The writer that the footer names; by default the one that wrote the file.
        with_orders: Whether the footer keeps the orders of columns.
        with_keys: Whether it keeps its metadata for readers, such as the schema in Arrow.
    """

    def changed(footer: Fields) -> None:
        for statistics in statistics_in(footer):
            change(statistics)
        if created_by is not None:
            footer[CREATED_BY] = BINARY, created_by.encode()
        if not with_orders:
            footer.pop(COLUMN_ORDERS, None)
        if not with_keys:
            footer.pop(KEYS, None)

    edit(path, changed)


def statistics_in(footer: Fields) -> Iterator[Fields]:
    """Yield the statistics of all column chunks that have any."""
    for group in footer[ROW_GROUPS][1][1]:
        for chunk in group[COLUMNS][1][1]:
            if STATISTICS in chunk[METADATA][1]:
                yield chunk[METADATA][1][STATISTICS][1]


def deprecate(statistics: Fields) -> None:
    """State the bounds in the deprecated fields alone."""
    for old, new in ((MAX, MAX_VALUE), (MIN, MIN_VALUE)):
        if new in statistics:
            statistics[old] = statistics.pop(new)


def swap(statistics: Fields) -> None:
    """Exchange the bounds."""
    for one, other in ((MAX, MIN), (MAX_VALUE, MIN_VALUE)):
        if one in statistics and other in statistics:
            statistics[one], statistics[other] = statistics[other], statistics[one]


def edit_at_random(footer: Fields, random: Random) -> None:
    """Change, drop or double some values, at any depth; types stay those of Thrift."""
    for _ in range(random.randint(1, 3)):
        places = list(_places(STRUCT, footer))
        holder, key, type_ = random.choice(places)
        kind = random.choice(["value", "value", "drop", "double"])
        if isinstance(holder, list):
            if kind == "value":
                holder[key] = _other_value(type_, holder[key], random)
            elif kind == "drop":
                del holder[key]
            else:
                holder.insert(key, holder[key])
        elif kind == "drop":
            del holder[key]
        elif kind == "double":
            holder.setdefault(key + random.randint(1, 3), holder[key])
        else:
            holder[key] = type_, _other_value(type_, holder[key][1], random)


def _places(type_: int, value: Any) -> Iterator[tuple[Any, int, int]]:
    """Yield where each value lies that is in another: its holder, its number there, its type."""
    if type_ == STRUCT:
        for number, (of, own) in value.items():
            yield value, number, of
            yield from _places(of, own)
    elif type_ in (LIST, SET):
        of, elements = value
        for number, own in enumerate(elements):
            yield elements, number, of
            yield from _places(of, own)


def _other_value(type_: int, value: Any, random: Random) -> Any:
    if type_ in _ONE_BIT:
        return not value
    if type_ == BYTE:
        return random.randrange(256)
    if type_ in (SHORT, INT, LONG):
        ends = (0, 1, -1, 2**7, 2**31 - 1, -(2**31), 2**62, -(2**63), value + 1, value - 1)
        return random.choice(ends)
    if type_ == DOUBLE:
        return float(random.randint(-5, 5))
    if type_ == BINARY:
        text = bytes(value)
        return random.choice([b"", b"\xff", text[:-1], text + b"x", text * 2, random.randbytes(9)])
    if type_ in (LIST, SET):
        of, elements = value
        return of, random.choice([[], elements[:1], elements * 2, elements[::-1]])
    return {}


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self) -> Fields:
        fields: Fields = {}
        number = 0
        while head := self._take(1)[0]:
            number = number + (head >> 4) if head >> 4 else self._integer()
            fields[number] = head & 15, self._value(head & 15)
        return fields

    def _value(self, type_: int) -> Any:
        if type_ in _ONE_BIT:
            return type_ == TRUE
        if type_ == BYTE:
            return self._take(1)[0]
        if type_ in (SHORT, INT, LONG):
            return self._integer()
        if type_ == DOUBLE:
            return struct.unpack("<d", self._take(8))[0]
        if type_ == BINARY:
            return self._take(self._varint())
        if type_ in (LIST, SET):
            head = self._take(1)[0]
            count = head >> 4 if head >> 4 < 15 else self._varint()
            of = head & 15
            if of in _ONE_BIT:
                return of, [one == TRUE for one in self._take(count)]
            return of, [self._value(of) for _ in range(count)]
        assert type_ == STRUCT, f"no footer has type {type_}"
        return self.struct()

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def _take(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]


def _struct(fields: Fields) -> bytes:
    encoded = bytearray()
    before = 0
    for number in sorted(fields):
        type_, value = fields[number]
        if type_ in _ONE_BIT:
            type_ = TRUE if value else FALSE
        if number - before < 16:
            encoded.append(number - before << 4 | type_)
        else:
            encoded += bytes([type_]) + _integer(number)
        encoded += _encoded(type_, value)
        before = number
    return bytes(encoded) + b"\0"


def _encoded(type_: int, value: Any) -> bytes:
    if type_ in _ONE_BIT:
        return b""
    if type_ == BYTE:
        return bytes([value])
    if type_ in (SHORT, INT, LONG):
        return _integer(value)
    if type_ == DOUBLE:
        return struct.pack("<d", value)
    if type_ == BINARY:
        return _varint(len(value)) + bytes(value)
    if type_ in (LIST, SET):
        of, elements = value
        count = len(elements)
        head = bytes([count << 4 | of]) if count < 15 else bytes([15 << 4 | of]) + _varint(count)
        if of in _ONE_BIT:
            return head + bytes(TRUE if one else FALSE for one in elements)
        return head + b"".join(_encoded(of, one) for one in elements)
    return _struct(value)


def _integer(value: int) -> bytes:
    return _varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])
