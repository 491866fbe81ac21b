"""Packs that readers could not read, until somebody has compared their bytes."""

from __future__ import annotations

from collections.abc import Iterable

# Far more than any table has.
_MOST = 10_000


class PackDoubts:
    """Paths of packs that readers report, which need not be packs of this coordinator at all."""

    def __init__(self) -> None:
        self._paths: set[str] = set()

    def add(self, paths: Iterable[str]) -> None:
        """Add paths."""
        if len(self._paths) < _MOST:
            self._paths.update(paths)

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def settle(self, path: str) -> None:
        """Forget a path, as its bytes have been compared."""
        self._paths.discard(path)
