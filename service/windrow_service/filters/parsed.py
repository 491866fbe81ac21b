"""A filter parsed from text, with the positions of its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from windrow_core.models import FilterTree

LiteralKind: TypeAlias = Literal[
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
        kind: How it was written; in SQL, a number with an exponent is a double.
        value: Numbers that a float cannot represent exactly are text; binary is its hexadecimal
            digits.
        offset: Position in the text; None for a literal from a tree.
        scale: Digits after the decimal point of a number, as written in SQL.
    """

    kind: LiteralKind
    value: bool | int | float | str | None
    offset: int | None = None
    scale: int = 0

    @classmethod
    def of(cls, value: bool | int | float | str | None) -> Value:
        """Return a literal of a tree, where text may also mean a date, a timestamp or binary."""
        if value is None:
            return cls("null", None)
        if isinstance(value, bool):
            return cls("boolean", value)
        return cls("text" if isinstance(value, str) else "number", value)


@dataclass(frozen=True, slots=True)
class Position:
    """The positions of one condition: its column, and its literals in order."""

    column: int
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class ParsedFilter:
    """A filter as a tree, and the text that it came from.

    Attributes:
        tree: The filter as a tree.
        text: The text.
        positions: One for each condition that names a column, in text order.
    """

    tree: FilterTree
    text: str
    positions: tuple[Position, ...]
