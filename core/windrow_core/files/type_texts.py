"""The syntax of Spark SQL's types, read in one pass over their words.

A general parser of SQL tries several readings of nested types, so that a text of some kilobytes takes
minutes. Here each word is looked at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.types as pt

from windrow_core.files.errors import UnknownTypeError
from windrow_core.files.limits import MAX_LEVELS
from windrow_core.files.types import arrow_types

# As many as the longest `varchar` needs.
_MAX_DIGITS = 10
_WORD = re.compile(
    r"`(?:[^`]|``)*`|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|\w+|[<>(),:]|\s+|.", re.DOTALL
)
_QUOTES = ("`", "'", '"')
_AFTER_FIELD = ("NOT", "COMMENT")
_PLAIN = arrow_types("name")
# Of a decimal.
_NUMBERS = re.compile(r"\(\s*\d+\s*,\s*\d+\s*\)")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def most_fields(text: str) -> int:
    """Return how many fields a type may have at most, before it is read."""
    words = _NUMBERS.sub("", text)
    return 1 + words.count("<") + words.count(",")


def canonical_type(text: str) -> pa.DataType:
    """Return the Arrow type of a type as `windrow_core.files.types.spark_type` writes it.

    Raises:
        UnknownTypeError: The text is not such a type.
    """
    return read_type(text, _canonical_scalar)


def _canonical_scalar(name: str, text: str) -> pa.DataType:
    if (decimal := _DECIMAL.fullmatch(name)) is not None:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if name not in _PLAIN:
        raise UnknownTypeError(text, f"{name} is not a type for columns")
    return _PLAIN[name]


def read_type(text: str, scalar: Callable[[str, str], pa.DataType]) -> pa.DataType:
    """Return the Arrow type of a type in Spark SQL's syntax.

    Args:
        text: The type.
        scalar: Returns a type without parts, given its words in lower case and the whole text.
    """
    reader = _Reader(text, scalar)
    type_ = reader.type(1)
    if reader.word:
        raise reader.error()
    return type_


class _Reader:
    def __init__(self, text: str, scalar: Callable[[str, str], pa.DataType]) -> None:
        self._text = text
        self._scalar = scalar
        # The empty word marks the end.
        self._words = [*self._split(), ""]
        self._at = 0

    @property
    def word(self) -> str:
        """The next word; empty after the last one."""
        return self._words[self._at]

    def _split(self) -> Iterator[str]:
        for match in _WORD.finditer(self._text):
            word = str(match[0])
            if word in _QUOTES:
                # Searching for the ends of many quotes would take long.
                raise self.error(f"the {word} is never closed")
            if not word.isspace():
                yield word

    def error(self, reason: str = "it cannot be parsed") -> UnknownTypeError:
        return UnknownTypeError(self._text, reason)

    def type(self, depth: int) -> pa.DataType:
        if depth > MAX_LEVELS + 1:
            raise self.error(f"it is nested more than {MAX_LEVELS} levels deep")
        kind = self.word.lower()
        if self._words[self._at + 1 : self._at + 2] == ["<"]:
            if kind == "array":
                return pa.list_(self._parts(1, depth)[0])
            if kind == "map":
                key, item = self._parts(2, depth)
                if pt.is_null(key):
                    raise self.error("the keys of a map cannot be void")
                return pa.map_(key, item)
            if kind == "struct":
                return self._struct(depth)
        return self._scalar(self._leaf(), self._text)

    def _parts(self, count: int, depth: int) -> list[pa.DataType]:
        self._at += 2
        parts = [self.type(depth + 1)]
        while len(parts) < count:
            self._expect(",")
            parts.append(self.type(depth + 1))
        self._expect(">")
        return parts

    def _struct(self, depth: int) -> pa.DataType:
        self._at += 2
        fields = []
        while self.word != ">":
            fields.append(self._field(depth))
            if self.word != ">":
                self._expect(",")
        self._expect(">")
        return pa.struct(fields)

    def _field(self, depth: int) -> pa.Field:
        name = self._next()
        if name.startswith(_QUOTES):
            name = name[1:-1].replace(2 * name[0], name[0])
        elif not _is_plain(name):
            raise self.error("each field of a struct is written `name:type`")
        if self.word in (",", ">"):
            raise self.error("each field of a struct is written `name:type`")
        if self.word == ":":
            self._at += 1
        type_ = self.type(depth + 1)
        if self.word.upper() == "NOT":
            self._at += 1
            if self._next().upper() != "NULL":
                raise self.error()
        if self.word.upper() == "COMMENT":
            self._at += 1
            if not self._next().startswith(_QUOTES[1:]):
                raise self.error()
        return pa.field(name, type_)

    def _leaf(self) -> str:
        """Return the words of a type without parts, such as `decimal(10,2)`."""
        words: list[str] = []
        while _is_plain(self.word) and not (words and self.word.upper() in _AFTER_FIELD):
            words.append(self._next().lower())
        if not words:
            if not self.word.startswith("`"):
                raise self.error()
            words.append(self._next()[1:-1].lower())
        numbers: list[str] = []
        if self.word == "(":
            self._at += 1
            while self.word != ")":
                numbers.append(self._next())
                if not numbers[-1].isdecimal() or len(numbers[-1]) > _MAX_DIGITS:
                    raise self.error()
                if self.word != ")":
                    self._expect(",")
            self._at += 1
        return " ".join(words) + (f"({','.join(numbers)})" if numbers else "")

    def _next(self) -> str:
        word = self.word
        if word:
            self._at += 1
        return word

    def _expect(self, word: str) -> None:
        if self._next() != word:
            raise self.error()


def _is_plain(word: str) -> bool:
    return word[:1].isalnum() or word[:1] == "_"
