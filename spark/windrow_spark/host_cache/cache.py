"""The files that a host keeps on its local disk, shared by all tasks that run there.

An entry is a row of diskcache's database, with the content itself if it is small, and otherwise
the name of a separate file. Partly written files have no row. Content is verified with a checksum
that is seeded with the key, so that neither damaged nor swapped entries are taken for the file.

Reading writes nothing: each task records all its reads at once when it ends. With diskcache's own
bookkeeping a read takes 110 us, and up to 460 us if two tasks read; without, 15 us.
"""

from __future__ import annotations

import io
import json
import os
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from windrow_spark.host_cache.folders import CacheFolder

if TYPE_CHECKING:
    import sqlite3

# Larger content is kept in a separate file.
MAX_ROW_BYTES = 32 * 2**10
_PIECE_BYTES = 4 * 2**20
_MAX_CHECKED = 100_000
# Reads within this time count as one: recording a read takes longer than reading a file.
_SAME_TIME_S = 60.0

Write = Callable[[bytes], None]


class FileKey(NamedTuple):
    """A data file as it was when a plan was made; a changed file has another key.

    Attributes:
        table: Name of the table.
        location: Folder of the table.
        size_bytes: Size of the file.
        mtime_ns: Time of its last change, in nanoseconds since 1970.
        path: Path relative to `location`.
        etag: ETag of an object; empty if there is none, or it is unknown.
    """

    table: str
    location: str
    size_bytes: int
    mtime_ns: int
    path: str
    etag: str = ""

    def text(self) -> str:
        """Return the name of the entry; names of one table sort together."""
        return json.dumps(self if self.etag else self[:-1])

    @classmethod
    def of(cls, text: str) -> FileKey:
        """Return the key for the name of an entry."""
        return cls(*json.loads(text))


class CacheTroubleError(Exception):
    """The cache failed; read the file from its source."""


class FileCache:
    """Entries by the text of their `FileKey`; safe for use by several threads and processes.

    Args:
        folder: Folder of the cache.
        store: diskcache's `Cache` in `folder.files`.
        errors: Exceptions that the store raises.
    """

    def __init__(self, folder: CacheFolder, store: Any, errors: tuple[type[Exception], ...]):
        self.folder = folder
        self._store = store
        self._errors = errors
        self._checked: set[tuple[str, int, int]] = set()

    @property
    def connection(self) -> sqlite3.Connection:
        """This thread's connection to the database, for operations that diskcache lacks."""
        connection: sqlite3.Connection = self._store._con
        return connection

    def fits(self, size_bytes: int) -> bool:
        """Tell whether a file may be kept; one over half the capacity would evict most others."""
        return size_bytes <= self.folder.capacity_bytes // 2

    def holds(self, key: str) -> bool:
        """Tell whether there is an entry.

        Raises:
            CacheTroubleError: The cache cannot be read.
        """
        with self.translated():
            return key in self._store

    def get(self, key: str) -> bytes | None:
        """Return an entry's content, or None if there is none; a damaged entry is removed.

        Raises:
            CacheTroubleError: The cache cannot be read.
        """
        with self.translated():
            content, checksum = self._store.get(key, tag=True)
        if content is None:
            return None
        if isinstance(content, bytes) and zlib.crc32(content, _seed(key)) == checksum:
            return content
        self.drop(key)
        return None

    def open(self, key: str) -> BinaryIO | None:
        """Return an open file of an entry's content, or None if there is none or it is damaged.

        The content is verified when this process opens an entry for the first time.

        Raises:
            CacheTroubleError: The cache cannot be read.
        """
        with self.translated():
            file, checksum = self._store.get(key, read=True, tag=True)
            if file is None:
                return None
            if isinstance(file, bytes):
                # Small content is in the row itself.
                content, file = file, io.BytesIO(file)
                is_right = zlib.crc32(content, _seed(key)) == checksum
            else:
                is_right = self._is_checked(key, file, checksum)
        if is_right:
            opened: BinaryIO = file
            return opened
        file.close()
        self.drop(key)
        return None

    def keep(self, key: str, content: bytes) -> int:
        """Make an entry, and return how many others were removed to make room.

        Raises:
            CacheTroubleError: The entry could not be made.
        """
        if len(content) < MAX_ROW_BYTES:
            self._require_room(len(content))
            return self._keep(key, content, zlib.crc32(content, _seed(key)), read=False)
        return self.keep_copy(key, len(content), lambda write: write(content))

    def keep_copy(self, key: str, size_bytes: int, copy: Callable[[Write], object]) -> int:
        """Make an entry of the bytes that `copy` writes; return how many others were removed.

        Args:
            key: Name of the entry.
            size_bytes: Size of the content.
            copy: Called with a function that writes one piece; writes all pieces with it.

        Raises:
            CacheTroubleError: The entry could not be made.
        """
        self._require_room(size_bytes)
        incoming = os.path.join(self.folder.incoming, uuid.uuid4().hex)
        try:
            with self.translated():
                # Unbuffered, since copies come in large pieces.
                file = open(incoming, "xb", buffering=0)  # noqa: SIM115 - closed below
            with file:
                writer = _Writer(file, key, self.translated())
                copy(writer.write)
            return self._keep(key, incoming, writer.checksum, read=True)
        finally:
            with suppress(OSError):
                os.unlink(incoming)

    def drop(self, key: str) -> None:
        """Remove an entry if it exists.

        Raises:
            CacheTroubleError: The entry may still exist.
        """
        with self.translated():
            self._store.delete(key)

    def note(self, reads: Iterable[tuple[float, str]], counts: Mapping[str, int]) -> None:
        """Record reads, and add to the statistics.

        Args:
            reads: Time in seconds since 1970, and name of the entry.
            counts: Counts by the names in `windrow_core.models.CacheCounters`.

        Raises:
            CacheTroubleError: They could not be recorded.
        """
        with self.writing():
            self.connection.executemany(
                "UPDATE Cache SET access_time = ?1"
                " WHERE key = ?2 AND raw = 1 AND access_time < ?1 - ?3",
                ((at, key, _SAME_TIME_S) for at, key in reads),
            )
            self.connection.executemany(
                "INSERT INTO Counts VALUES (?, ?)"
                " ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
                [(name, count) for name, count in counts.items() if count],
            )

    def counts(self) -> dict[str, int]:
        """Return the statistics since the cache was made, by the names given to `note`.

        Raises:
            CacheTroubleError: The cache cannot be read.
        """
        with self.translated():
            return dict(self.connection.execute("SELECT name, value FROM Counts").fetchall())

    def volume(self) -> int:
        """Return the bytes that the cache takes on disk, without files being fetched.

        Raises:
            CacheTroubleError: The cache cannot be read.
        """
        with self.translated():
            return self._volume()

    def shrink(self) -> int:
        """Remove the least recently read entries until the cache is within its capacity.

        Returns:
            The number of removed entries.

        Raises:
            CacheTroubleError: The cache may still be too large.
        """
        with self.writing():
            return self._shrink()

    def translated(self) -> _Translated:
        """Turn exceptions of diskcache and SQLite into `CacheTroubleError`."""
        return _Translated(self.folder, self._errors)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep others from writing during the block.

        Raises:
            CacheTroubleError: Another writer took too long, or the disk is full.
        """
        with self.translated(), self._store.transact():
            yield

    def close(self) -> None:
        """Close this thread's connection."""
        self._store.close()

    def _keep(self, key: str, value: bytes | str, checksum: int, *, read: bool) -> int:
        with self.writing():
            self._store.set(key, value, tag=checksum, read=read)
            return self._shrink()

    def _is_checked(self, key: str, file: BinaryIO, checksum: object) -> bool:
        status = os.fstat(file.fileno())
        entry = (key, status.st_ino, status.st_mtime_ns)
        if entry not in self._checked:
            if _checksum(file, key) != checksum:
                return False
            if len(self._checked) >= _MAX_CHECKED:
                self._checked.clear()
            self._checked.add(entry)
        return True

    def _require_room(self, size_bytes: int) -> None:
        if not self.fits(size_bytes):
            raise CacheTroubleError(
                f"a file of {size_bytes:,} bytes is too large for a cache of "
                f"{self.folder.capacity_bytes:,}"
            )

    def _shrink(self) -> int:
        gone = 0
        oldest = "SELECT key FROM Cache WHERE raw = 1 ORDER BY access_time LIMIT 1"
        while self._volume() > self.folder.capacity_bytes and (
            row := self.connection.execute(oldest).fetchone()
        ):
            self._store.delete(row[0])
            gone += 1
        return gone

    def _volume(self) -> int:
        # Pages freed by a transaction leave the database only when it ends.
        pages, free, page_bytes, files_bytes = (
            int(self.connection.execute(question).fetchone()[0])
            for question in (
                "PRAGMA page_count",
                "PRAGMA freelist_count",
                "PRAGMA page_size",
                "SELECT value FROM Settings WHERE key = 'size'",
            )
        )
        return (pages - free) * page_bytes + files_bytes


class _Translated:
    """Turns exceptions of diskcache into `CacheTroubleError`.

    A class, since a generator would be too slow: it is entered for every file.
    """

    def __init__(self, folder: CacheFolder, errors: tuple[type[Exception], ...]) -> None:
        self._folder = folder
        self._errors = errors

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, self._errors):
            return
        mark_if_damaged(self._folder, error)
        raise CacheTroubleError(str(error) or type(error).__name__) from error


class _Writer:
    """Writes a file and computes its checksum."""

    def __init__(self, file: io.FileIO, key: str, translated: _Translated) -> None:
        self._file = file
        self._translated = translated
        self.checksum = _seed(key)

    def write(self, piece: bytes) -> None:
        """Write a piece completely."""
        self.checksum = zlib.crc32(piece, self.checksum)
        left = memoryview(piece)
        # Only errors of writing are the cache's faults; `copy` may raise others.
        with self._translated:
            while left:
                left = left[self._file.write(left) :]


def mark_if_damaged(folder: CacheFolder, error: BaseException | None) -> None:
    """Ask the agent to replace the cache if its database is damaged."""
    # Exactly sqlite3's class: its subclasses are temporary faults, such as a lock or a full disk.
    if type(error).__name__ == "DatabaseError":
        # If this fails, the next task that finds the damage sets the mark.
        with suppress(OSError):
            os.close(os.open(folder.damaged, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def _seed(key: str) -> int:
    return zlib.crc32(key.encode())


def _checksum(file: BinaryIO, key: str) -> int:
    checksum = _seed(key)
    while piece := file.read(_PIECE_BYTES):
        checksum = zlib.crc32(piece, checksum)
    file.seek(0)
    return checksum
