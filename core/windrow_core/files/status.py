"""The state of a file, and how two states differ."""

from __future__ import annotations

from typing import NamedTuple


class FileStatus(NamedTuple):
    """A file as it was listed, or as it was found when it was read.

    Attributes:
        size_bytes: Its length.
        mtime_ns: Time of its last change, nanoseconds since 1970; None if it is not compared,
            because the file never changes once it is written.
        etag: An object store's identifier of its content, without quotes; None if unknown.
    """

    size_bytes: int
    mtime_ns: int | None
    etag: str | None = None

    def difference(self, now: FileStatus) -> tuple[str, int | str | None, int | str | None] | None:
        """Return what differs, and both values; None if it is the same file.

        Equal ETags prove equal content, so the time does not matter then: a copy of a file over
        itself changes nothing but the time.

        Args:
            now: The file as it was found.
        """
        if self.size_bytes != now.size_bytes:
            return "size in bytes", self.size_bytes, now.size_bytes
        if self.etag is not None and now.etag is not None:
            same = self.etag == now.etag
            return None if same else ("ETag", self.etag, now.etag)
        if self.mtime_ns not in (None, now.mtime_ns):
            return "modification time in ns", self.mtime_ns, now.mtime_ns
        return None
