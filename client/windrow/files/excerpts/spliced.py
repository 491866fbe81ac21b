"""An excerpt too large for memory, as a file that is read where it lies."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from windrow.files.excerpts.excerpt import MAGIC, Excerpt


class SplicedFile(io.RawIOBase):
    """The ranges of an excerpt one after the other, between its first bytes and its footer.

    Args:
        excerpt: The excerpt.
        read: Returns the bytes of the file from one place to another, as a buffer.
    """

    def __init__(self, excerpt: Excerpt, read: Callable[[int, int], Any]) -> None:
        super().__init__()
        self._read = read
        self._at = 0
        # Where each part begins, and its bytes or the range that they lie in.
        self._parts: list[tuple[int, bytes | tuple[int, int]]] = []
        self._size_bytes = 0
        parts: list[bytes | tuple[int, int]] = [MAGIC, *excerpt.ranges, excerpt.tail]
        for part in parts:
            self._parts.append((self._size_bytes, part))
            self._size_bytes += len(part) if isinstance(part, bytes) else part[1] - part[0]

    def read(self, size: int | None = -1) -> bytes:
        """See `io.RawIOBase.read`."""
        end = self._size_bytes
        if size is not None and size >= 0:
            end = min(end, self._at + size)
        pieces = []
        for begin, part in self._parts:
            length = len(part) if isinstance(part, bytes) else part[1] - part[0]
            first, last = max(self._at - begin, 0), min(end - begin, length)
            if first >= last:
                continue
            if isinstance(part, bytes):
                pieces.append(part[first:last])
            else:
                pieces.append(self._read(part[0] + first, part[0] + last))
        self._at = max(self._at, end)
        return b"".join(pieces)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """See `io.IOBase.seek`."""
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size_bytes}
        self._at = begin[whence] + offset
        return self._at

    def tell(self) -> int:
        """See `io.IOBase.tell`."""
        return self._at

    def readable(self) -> bool:
        """See `io.IOBase.readable`."""
        return True

    def seekable(self) -> bool:
        """See `io.IOBase.seekable`."""
        return True
