"""Compiled classes of the JVM, as far as the names that they use."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_UTF8, _LONG, _DOUBLE, _CLASS, _STRING, _NAME_AND_TYPE = 1, 5, 6, 7, 8, 12
_MEMBERS = (9, 10, 11)
# Bytes of a constant after its tag, for all but texts.
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4}
_SIZES |= {18: 4, 19: 2, 20: 2}

# Bytes of instructions that have operands; the two switches and `wide` are longer.
_LENGTHS = {16: 2, 17: 3, 18: 2, 19: 3, 20: 3, 132: 3, 169: 2, 185: 5, 186: 5, 188: 2, 197: 4}
_LENGTHS |= dict.fromkeys((*range(21, 26), *range(54, 59)), 2)
_LENGTHS |= dict.fromkeys((*range(153, 169), *range(178, 185), 187, 189, 192, 193, 198, 199), 3)
_LENGTHS |= dict.fromkeys((200, 201), 5)
_TABLE_SWITCH, _LOOKUP_SWITCH, _WIDE, _IINC = 170, 171, 196, 132
_LDC, _LDC_W = 18, 19
_FIELD_OR_CALL = range(178, 186)
PUTS = (179, 181)


class Member(NamedTuple):
    """A field or method of a class, with its descriptor."""

    owner: str
    name: str
    type: str


class Step(NamedTuple):
    """An instruction that loads a text, or uses a field or method."""

    code: int
    text: str | None
    member: Member | None


class ClassFile:
    """A compiled class.

    Args:
        content: The bytes of a `.class` file.
    """

    def __init__(self, content: bytes) -> None:
        self._bytes = content
        count = self._short(8)
        self._constants: list[tuple[int, int]] = [(0, 0)] * count
        at, number = 10, 1
        while number < count:
            tag = content[at]
            self._constants[number] = (tag, at + 1)
            at += 1 + (2 + self._short(at + 1) if tag == _UTF8 else _SIZES[tag])
            number += 2 if tag in (_LONG, _DOUBLE) else 1
        self._end = at

    def members(self) -> Iterator[Member]:
        """Yield the fields and methods that the class uses."""
        for number, (tag, _) in enumerate(self._constants):
            if tag in _MEMBERS:
                yield self._member(number)

    def texts(self) -> Iterator[str]:
        """Yield the texts that the class uses."""
        for number, (tag, _) in enumerate(self._constants):
            if tag == _STRING:
                yield self._named(number)

    def methods(self) -> Iterator[tuple[str, list[Step]]]:
        """Yield the methods of the class by name, with what they do."""
        at = self._end + 6
        at += 2 + 2 * self._short(at)
        for are_methods in (False, True):
            count = self._short(at)
            at += 2
            for _ in range(count):
                name, attributes = self._text(self._short(at + 2)), self._short(at + 6)
                at += 8
                for _ in range(attributes):
                    attribute, length = self._text(self._short(at)), self._int(at + 2)
                    if are_methods and attribute == "Code":
                        yield name, list(self._steps(at + 14, self._int(at + 10)))
                    at += 6 + length

    def _steps(self, start: int, length: int) -> Iterator[Step]:
        at = 0
        while at < length:
            place = start + at
            code = self._bytes[place]
            if code in (_LDC, _LDC_W):
                number = self._bytes[place + 1] if code == _LDC else self._short(place + 1)
                is_text = self._constants[number][0] == _STRING
                yield Step(code, self._named(number) if is_text else None, None)
            elif code in _FIELD_OR_CALL:
                yield Step(code, None, self._member(self._short(place + 1)))
            if code == _TABLE_SWITCH:
                operands = (at + 4) & ~3
                low, high = struct.unpack_from(">ii", self._bytes, start + operands + 4)
                at = operands + 12 + 4 * (high - low + 1)
            elif code == _LOOKUP_SWITCH:
                operands = (at + 4) & ~3
                at = operands + 8 + 8 * self._int(start + operands + 4)
            elif code == _WIDE:
                at += 6 if self._bytes[place + 1] == _IINC else 4
            else:
                at += _LENGTHS.get(code, 1)

    def _member(self, number: int) -> Member:
        place = self._constants[number][1]
        owner, pair = self._short(place), self._constants[self._short(place + 2)][1]
        name, type_ = self._text(self._short(pair)), self._text(self._short(pair + 2))
        return Member(self._named(owner), name, type_)

    def _named(self, number: int) -> str:
        """Return the text of a class or a text."""
        return self._text(self._short(self._constants[number][1]))

    def _text(self, number: int) -> str:
        place = self._constants[number][1]
        return self._bytes[place + 2 : place + 2 + self._short(place)].decode(errors="replace")

    def _short(self, at: int) -> int:
        return int.from_bytes(self._bytes[at : at + 2], "big")

    def _int(self, at: int) -> int:
        return int.from_bytes(self._bytes[at : at + 4], "big")
