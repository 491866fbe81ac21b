"""An excerpt too large for memory, as a file whose parts are read on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from windrow_core.files.excerpts.excerpt import MAGIC, ExcerptFile
from windrow_core.files.positions import PositionedFile


class SplicedFile(PositionedFile):
    """The ranges of an excerpt one after the other, between its first bytes and its footer.

    Args:
        excerpt: The excerpt.
        read: Returns the bytes of the source file from one offset to another, as a buffer.
    """

    def __init__(self, excerpt: ExcerptFile, read: Callable[[int, int], Any]) -> None:
        super().__init__(0)
        self._read = read
        # Where each part begins, and its bytes or the range that they lie in.
        self._parts: list[tuple[int, bytes | tuple[int, int]]] = []
        self.size_bytes = 0
        parts: list[bytes | tuple[int, int]] = [MAGIC, *excerpt.ranges, excerpt.tail]
        for part in parts:
            self._parts.append((self.size_bytes, part))
            self.size_bytes += len(part) if isinstance(part, bytes) else part[1] - part[0]

    def read(self, size: int | None = -1) -> bytes:
        """See `io.RawIOBase.read`."""
        end = self.end_of(size)
        pieces = []
        for begin, part in self._parts:
            length = len(part) if isinstance(part, bytes) else part[1] - part[0]
            first, last = max(self.at - begin, 0), min(end - begin, length)
            if first >= last:
                continue
            if isinstance(part, bytes):
                pieces.append(part[first:last])
            else:
                pieces.append(self._read(part[0] + first, part[0] + last))
        self.at = max(self.at, end)
        return b"".join(pieces)
