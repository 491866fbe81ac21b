"""Column names, looked up as in Spark: case-insensitively."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from heapq import nsmallest

from windrow_service.filters.errors import quote

_MAX_NAMES_SHOWN = 10
# Comparing two names takes up to a millisecond, and a table may have thousands of columns.
_COMPARED = 200
_MAX_CHARACTERS = 128


class TableColumns:
    """The names of a table's columns."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(names)
        self._known = set(self._names)
        self._folded: dict[str, list[str]] = {}
        for name in self._names:
            self._folded.setdefault(name.lower(), []).append(name)

    def find(self, name: str) -> str | None:
        """Return the column with exactly this name, else the only one that differs only in case."""
        if name in self._known:
            return name
        matches = self._folded.get(name.lower(), [])
        return matches[0] if len(matches) == 1 else None

    def why_none(self, name: str) -> str:
        """Return why no column has this name, and which columns may be meant."""
        if matches := self._folded.get(name.lower(), []):
            return f"column {quote(name)} may be {' or '.join(matches)}: write the exact case"
        near = difflib.get_close_matches(name.lower(), self._comparable(name), n=3)
        names = [match for folded in near for match in self._folded[folded]]
        if names:
            return f"no column {quote(name)}: did you mean {' or '.join(names)}?"
        more = ", …" if len(self._names) > _MAX_NAMES_SHOWN else ""
        some = ", ".join(self._names[:_MAX_NAMES_SHOWN])
        return f"no column {quote(name)}: the table has {some}{more}"

    def _comparable(self, name: str) -> list[str]:
        """Return the names, in lower case, that `name` is compared with."""
        if len(name) > _MAX_CHARACTERS:
            return []
        return nsmallest(_COMPARED, self._folded, key=lambda other: abs(len(other) - len(name)))
