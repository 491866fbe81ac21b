"""The files that a host keeps on its local disk, shared by all tasks that run there.

An entry is a row of an SQLite database, with the content itself if it is small, and otherwise the
name of a separate file. Partly written files have no row. Content is verified with a checksum that
is seeded with the key, so that neither damaged nor swapped entries are taken for the file.

Reading writes nothing: each task records all its reads at once when it ends.
"""

from __future__ import annotations

import io
import json
import os
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from windrow_core.files.roots.proofs import NotOursError, OutsideError
from windrow_tables.host_cache.folders import CACHED, CacheFolder

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
        mark: What tells the file from another one of equal size and time: see
            `executor.files.source_mark`. Empty if nothing does.
    """

    table: str
    location: str
    size_bytes: int
    mtime_ns: int
    path: str
    mark: str = ""

    def text(self) -> str:
        """Return the name of the entry; names of one table sort together."""
        return json.dumps(self if self.mark else self[:-1])

    @classmethod
    def of(cls, text: str) -> FileKey:
        """Return the key for the name of an entry."""
        return cls(*json.loads(text))


class CacheTroubleError(Exception):
    """The cache failed; read the file from its source."""


class FileCache:
    """Entries by the text of their `FileKey`; safe for use by several threads and processes.

    Its methods raise `CacheTroubleError` if the database or a file fails.

    Args:
        folder: Folder of the cache.
        connect: Opens the database.
        errors: Exceptions that the cache's files and database raise.
    """

    def __init__(
        self,
        folder: CacheFolder,
        connect: Callable[[], sqlite3.Connection],
        errors: tuple[type[Exception], ...],
    ) -> None:
        self.folder = folder
        self._connect = connect
        self._errors = errors
        self._local = threading.local()
        self._checked: set[tuple[str, int, int]] = set()

    @property
    def connection(self) -> sqlite3.Connection:
        """This thread's connection to the database; a forked process opens its own."""
        local = self._local
        if getattr(local, "pid", None) != os.getpid():
            local.connection, local.pid = self._connect(), os.getpid()
        connection: sqlite3.Connection = local.connection
        return connection

    def fits(self, size_bytes: int) -> bool:
        """Return whether a file may be kept; one over half the capacity would evict most others."""
        return size_bytes <= self.folder.capacity_bytes // 2

    def holds(self, key: str) -> bool:
        """Return whether there is an entry."""
        with self.translated():
            question = "SELECT 1 FROM Entries WHERE key = ?"
            return self.connection.execute(question, (key,)).fetchone() is not None

    def get(self, key: str) -> bytes | None:
        """Return an entry's content, or None if there is none; a damaged entry is removed."""
        with self.translated():
            file, checksum = self._entry(key)
            if file is None:
                return None
            with file:
                content = file.read()
        if zlib.crc32(content, _seed(key)) == checksum:
            return content
        self.drop(key)
        return None

    def open(self, key: str) -> BinaryIO | None:
        """Return an open file of an entry's content, or None if there is none or it is damaged.

        The content is verified when this process opens an entry for the first time.
        """
        with self.translated():
            file, checksum = self._entry(key)
            if file is None or self._is_right(key, file, checksum):
                return file
        file.close()
        self.drop(key)
        return None

    def keep(self, key: str, content: bytes) -> int:
        """Make an entry, and return how many others were removed to make room."""
        if len(content) < MAX_ROW_BYTES:
            self._require_room(len(content))
            return self._insert(key, zlib.crc32(content, _seed(key)), content)
        return self.keep_copy(key, len(content), lambda write: write(content))

    def keep_copy(self, key: str, size_bytes: int, copy: Callable[[Write], object]) -> int:
        """Make an entry of the bytes that `copy` writes; return how many others were removed.

        Args:
            key: Name of the entry.
            size_bytes: Size of the content.
            copy: Called with a function that writes one piece; writes all pieces with it.
        """
        self._require_room(size_bytes)
        name = uuid.uuid4().hex
        try:
            with self.translated():
                # Unbuffered, since copies come in large pieces.
                path = os.path.join(self.folder.incoming, name)
                file = open(path, "xb", buffering=0)  # noqa: SIM115 - closed below
            with file:
                writer = _Writer(file, key, self.translated())
                copy(writer.write)
            return self._insert(key, writer.checksum, None, name)
        finally:
            with suppress(OSError):
                self.folder.root().remove_file(f"incoming/{name}", CACHED)

    def drop(self, key: str) -> None:
        """Remove an entry if it exists."""
        with self.writing() as old_files:
            self._delete(key, old_files)

    def note(self, reads: Iterable[tuple[float, str]], counts: Mapping[str, int]) -> None:
        """Record reads, and add to the statistics.

        Args:
            reads: Time in seconds since 1970, and name of the entry.
            counts: Counts by the names in `windrow_core.models.CacheCounters`.
        """
        with self.writing():
            self.connection.executemany(
                "UPDATE Entries SET read_at = ?1 WHERE key = ?2 AND read_at < ?1 - ?3",
                ((at, key, _SAME_TIME_S) for at, key in reads),
            )
            self.connection.executemany(
                "INSERT INTO Counts VALUES (?, ?)"
                " ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
                [(name, count) for name, count in counts.items() if count],
            )

    def counts(self) -> dict[str, int]:
        """Return the statistics since the cache was made, by the names given to `note`."""
        with self.translated():
            return dict(self.connection.execute("SELECT name, value FROM Counts").fetchall())

    def volume(self) -> int:
        """Return the bytes that the cache takes on disk, without files being fetched."""
        with self.translated():
            return self._volume()

    def shrink(self) -> int:
        """Remove the least recently read entries until the cache is within its capacity.

        Returns:
            The number of removed entries.
        """
        with self.writing() as old_files:
            return self._shrink(old_files)

    def translated(self) -> _Translated:
        """Turn exceptions of files and SQLite into `CacheTroubleError`."""
        return _Translated(self.folder, self._errors)

    @contextmanager
    def writing(self) -> Iterator[list[str]]:
        """Keep others from writing during the block; all its changes are made, or none.

        Yields:
            A list for the names of files to be removed once the changes are made.
        """
        old_files: list[str] = []
        with self.translated():
            with self.connection as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield old_files
            for name in old_files:
                # A row may have been changed by somebody else.
                with suppress(NotOursError, OutsideError):
                    self.folder.root().remove_file(self.folder.below(name), CACHED)

    def close(self) -> None:
        """Close this thread's connection; the next use opens another."""
        self.connection.close()
        del self._local.pid

    def _entry(self, key: str) -> tuple[BinaryIO | None, object]:
        """Return an open file of an entry's content, not verified, and its checksum."""
        question = "SELECT content, file, checksum FROM Entries WHERE key = ?"
        content, name, checksum = self.connection.execute(question, (key,)).fetchone() or [None] * 3
        if type(content) is bytes:
            return io.BytesIO(content), checksum
        if type(name) is str:
            # Others may remove an entry at any time.
            with suppress(FileNotFoundError):
                return open(self.folder.file(name), "rb"), checksum
        return None, None

    def _insert(
        self, key: str, checksum: int, content: bytes | None, name: str | None = None
    ) -> int:
        """Make an entry of its content or of a complete file, which is moved into place.

        Args:
            key: Its name.
            checksum: The checksum of the content.
            content: The content; None if it is in a file.
            name: Name of the file among those that are being fetched.
        """
        with self.writing() as old_files:
            self._delete(key, old_files)
            size_bytes = len(content or b"")
            if name is not None:
                size_bytes = os.stat(os.path.join(self.folder.incoming, name)).st_size
                target = self.folder.below(name)
                self.folder.root().make_folder(os.path.dirname(target), 0o700)
                self.folder.root().move(f"incoming/{name}", target, CACHED)
            self.connection.execute(
                "INSERT INTO Entries (key, checksum, read_at, size_bytes, file, content)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (key, checksum, time.time(), size_bytes, name, content),
            )
            return self._shrink(old_files)

    def _delete(self, key: str, old_files: list[str]) -> None:
        rows = self.connection.execute(
            "SELECT file FROM Entries WHERE key = ? AND file IS NOT NULL", (key,)
        )
        old_files.extend(name for (name,) in rows)
        self.connection.execute("DELETE FROM Entries WHERE key = ?", (key,))

    def _is_right(self, key: str, file: BinaryIO, checksum: object) -> bool:
        if isinstance(file, io.BytesIO):
            return zlib.crc32(file.getbuffer(), _seed(key)) == checksum
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

    def _shrink(self, old_files: list[str]) -> int:
        count = 0
        oldest = "SELECT key FROM Entries ORDER BY read_at LIMIT 1"
        while self._volume() > self.folder.capacity_bytes and (
            row := self.connection.execute(oldest).fetchone()
        ):
            self._delete(row[0], old_files)
            count += 1
        return count

    def _volume(self) -> int:
        # Pages freed by a transaction leave the database only when it ends.
        pages, free, page_bytes, files_bytes = (
            int(self.connection.execute(question).fetchone()[0])
            for question in (
                "PRAGMA page_count",
                "PRAGMA freelist_count",
                "PRAGMA page_size",
                "SELECT file_bytes FROM Held",
            )
        )
        return (pages - free) * page_bytes + files_bytes


class _Translated:
    """Turns exceptions of files and SQLite into `CacheTroubleError`.

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

    def __init__(self, file: io.FileIO, key: str, translation: _Translated) -> None:
        self._file = file
        self._translated = translation
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
