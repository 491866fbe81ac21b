"""Errors raised by the filters."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from windrow_core.errors import Fault, StatedError

_EXCERPT_CHARACTERS = 100
_QUOTED_CHARACTERS = 60


def quote(text: str) -> str:
    """Return text as quoted in a message: printable, and not too long."""
    if len(text) > _QUOTED_CHARACTERS:
        text = text[:_QUOTED_CHARACTERS] + "…"
    return repr(text)


@dataclass(eq=False)
class InvalidFilterError(StatedError):
    """Filter is not valid.

    A filter cannot be read, or cannot be planned.

    Attributes:
        reason: What is wrong, and the remedy.
        text: The filter as SQL text; None for a filter that is a tree.
        offset: Position of the error in `text`, in characters.
    """

    fault = Fault.INVALID
    reason: str
    text: str | None = None
    offset: int | None = None

    @property
    def line(self) -> int | None:
        """The line of the error, from 1."""
        if self.text is None or self.offset is None:
            return None
        return self.text.count("\n", 0, self.offset) + 1

    @property
    def column(self) -> int | None:
        """The character in that line, from 1."""
        if self.text is None or self.offset is None:
            return None
        return self.offset - self.text.rfind("\n", 0, self.offset)

    def __str__(self) -> str:
        if self.text is None or self.offset is None:
            return self.reason
        begin = self.text.rfind("\n", 0, self.offset) + 1
        end = self.text.find("\n", self.offset)
        line = self.text[begin : end if end >= 0 else None]
        at = self.offset - begin
        first = max(0, at - _EXCERPT_CHARACTERS // 2)
        excerpt = line[first : first + _EXCERPT_CHARACTERS]
        before = "… " if first else ""
        after = " …" if first + _EXCERPT_CHARACTERS < len(line) else ""
        visible = "".join(c if c.isprintable() else " " for c in excerpt)
        indent = sum(
            2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in visible[: at - first]
        )
        return (
            f"{self.reason}\nline {self.line}, column {self.column}:\n"
            f"  {before}{visible}{after}\n"
            f"  {' ' * (len(before) + indent)}^"
        )
