"""Files that are read at any position, as Python and Arrow expect them."""

from __future__ import annotations

import io


class PositionedFile(io.RawIOBase):
    """A file of known size; `at` is the position of the next read.

    Args:
        size_bytes: Its length.
    """

    def __init__(self, size_bytes: int) -> None:
        super().__init__()
        self.size_bytes = size_bytes
        self.at = 0

    def end_of(self, size: int | None) -> int:
        """Return where a read of `size` bytes ends; None or -1 means all bytes that are left."""
        if size is None or size < 0:
            return self.size_bytes
        return min(self.at + size, self.size_bytes)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """See `io.IOBase.seek`."""
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.size_bytes}
        self.at = begin[whence] + offset
        return self.at

    def tell(self) -> int:
        """See `io.IOBase.tell`."""
        return self.at

    def readable(self) -> bool:
        """See `io.IOBase.readable`."""
        return True

    def seekable(self) -> bool:
        """See `io.IOBase.seekable`."""
        return True
