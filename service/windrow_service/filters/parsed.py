"""A filter that was read from text, with the places of its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from windrow.models import FilterTree

Kind: TypeAlias = Literal[
    "null", "boolean", "number", "double", "text", "binary", "date", "timestamp"
]


@dataclass(frozen=True, slots=True)
class Name:
    """A column's name, and its offset in the text."""

    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class Value:
    """A literal.

    Attributes:
        kind: What it was written as; a number with an exponent, in SQL, is a double.
        value: Numbers that float cannot hold exactly as written are text; binary is its
            hexadecimal digits.
        offset: Where it stands in the text; None for one from a tree.
        scale: Digits behind the point of a number, as written in SQL.
    """

    kind: Kind
    value: bool | int | float | str | None
    offset: int | None = None
    scale: int = 0

    @classmethod
    def of(cls, value: bool | int | float | str | None) -> Value:
        """Return a literal of a tree, whose text may stand for a date, timestamp or binary, too."""
        if value is None:
            return cls("null", None)
        if isinstance(value, bool):
            return cls("boolean", value)
        return cls("text" if isinstance(value, str) else "number", value)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the parts of one condition stand: its column, and its literals in order."""

    column: int
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class ParsedFilter:
    """A filter as a tree, and the text that it came from.

    Attributes:
        tree: What the text says.
        text: The text.
        places: One for each condition that names a column, in the order of the text.
    """

    tree: FilterTree
    text: str
    places: tuple[Place, ...]
