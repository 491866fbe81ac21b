"""The contents of a cache and its changes, for the agent's reports.

Database triggers record every added or removed entry, whichever process makes the change, so that
the agent's work depends only on the number of changes.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import NamedTuple

from windrow_core.files.roots.disks import Root
from windrow_core.files.roots.proofs import NotOursError
from windrow_tables.host_cache.cache import FileCache, mark_if_damaged
from windrow_tables.host_cache.folders import CACHED, CacheFolder, UnusableFolderError, announce
from windrow_tables.host_cache.opening import attach

_log = logging.getLogger("windrow.host_cache")

# Below 1/16 of the capacity, the cache holds too little to estimate its overhead.
_TELLING_PART = 16
# Large pages halve the time for small files; pages that are freed return to the disk.
_SCHEMA = """
PRAGMA page_size = 16384;
PRAGMA auto_vacuum = FULL;
PRAGMA journal_mode = WAL;
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS Entries (
    key TEXT NOT NULL UNIQUE, checksum INTEGER NOT NULL, read_at REAL NOT NULL,
    size_bytes INTEGER NOT NULL, file TEXT, content BLOB
);
CREATE INDEX IF NOT EXISTS Entries_read_at ON Entries (read_at);
CREATE TABLE IF NOT EXISTS Counts (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS Changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, held INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS Held (bytes INTEGER NOT NULL, file_bytes INTEGER NOT NULL);
INSERT INTO Held SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM Held);
CREATE TRIGGER IF NOT EXISTS Held_insert AFTER INSERT ON Entries FOR EACH ROW BEGIN
    INSERT INTO Changes (key, held) VALUES (NEW.key, 1);
    UPDATE Held SET bytes = bytes + NEW.size_bytes,
        file_bytes = file_bytes + NEW.size_bytes * (NEW.file IS NOT NULL);
END;
CREATE TRIGGER IF NOT EXISTS Held_delete AFTER DELETE ON Entries FOR EACH ROW BEGIN
    INSERT INTO Changes (key, held) VALUES (OLD.key, 0);
    UPDATE Held SET bytes = bytes - OLD.size_bytes,
        file_bytes = file_bytes - OLD.size_bytes * (OLD.file IS NOT NULL);
END;
COMMIT;
"""


class EntryChanges(NamedTuple):
    """Entries added or removed since the last report.

    Attributes:
        presence: Whether the cache now holds each entry, by key.
        upto: Number of the last of these changes.
    """

    presence: dict[str, bool]
    upto: int


def open_contents(folder: CacheFolder) -> FileCache:
    """Prepare the cache in a folder for executors and return it; only for its agent.

    Removes leftovers of interrupted processes and entries beyond the capacity.
    """
    _make_database(folder)
    cache = attach(folder)
    cache.shrink()
    _remove_orphans(cache)
    announce(folder)
    return cache


def _make_database(folder: CacheFolder) -> None:
    if not os.path.exists(folder.database) and os.path.exists(folder.files):
        _log.warning(
            "making an empty cache beside the files of an earlier version in %s: remove those yourself",
            folder.path,
        )
        _remove_files(folder)
    try:
        os.makedirs(folder.files, 0o700, exist_ok=True)
        with closing(sqlite3.connect(folder.database)) as connection:
            connection.executescript(_SCHEMA)
    except (OSError, sqlite3.Error) as error:
        mark_if_damaged(folder, error)
        raise UnusableFolderError(f"cache folder {folder.path!r}: {error}") from error


def make_anew(folder: CacheFolder) -> FileCache:
    """Discard a cache, and return an empty one.

    Tasks that have the old one open use it until they end; entries that they add are lost.
    """
    _remove_files(folder)
    folder.root().remove_file(os.path.basename(folder.damaged), CACHED)
    return open_contents(folder)


def _remove_files(folder: CacheFolder) -> None:
    """Remove the database and the files of entries; whatever else lies there stays."""
    root = folder.root()
    for path in _paths_below(root, os.path.basename(folder.files)):
        with suppress(OSError):
            root.remove_file(path, CACHED)


def _paths_below(root: Root, folder: str) -> Iterator[str]:
    """Yield the paths of files in a folder and its subfolders."""
    for name, status in root.entries(folder):
        if not stat.S_ISDIR(status.st_mode):
            yield f"{folder}/{name}"
            continue
        for one, _ in root.entries(f"{folder}/{name}"):
            yield f"{folder}/{name}/{one}"


def held_bytes(cache: FileCache) -> int:
    """Return the bytes of the files that a cache holds, without its overhead."""
    with cache.translated():
        (size_bytes,) = cache.connection.execute("SELECT bytes FROM Held").fetchone()
    return int(size_bytes)


def room_bytes(cache: FileCache) -> int:
    """Estimate how many bytes of files a full cache can hold, from its current contents.

    Small files take up to 50 % more than their length, and the coordinator assigns files by length:
    if slightly more than the cache can hold were read repeatedly in the same order, each file
    would be evicted before its next read.
    """
    capacity_bytes, volume = cache.folder.capacity_bytes, cache.volume()
    if volume * _TELLING_PART < capacity_bytes:
        return capacity_bytes
    return min(capacity_bytes, capacity_bytes * held_bytes(cache) // volume)


def all_keys(cache: FileCache, page: int) -> Iterator[list[str]]:
    """Yield the keys of all entries in pages, sorted so that those of a table are adjacent."""
    last = ""
    while True:
        with cache.translated():
            rows = cache.connection.execute(
                "SELECT key FROM Entries WHERE key > ? ORDER BY key LIMIT ?", (last, page)
            ).fetchall()
        if not rows:
            return
        yield [key for (key,) in rows]
        last = rows[-1][0]


def changes(cache: FileCache, limit: int) -> EntryChanges:
    """Return the first changes that have not been settled."""
    with cache.translated():
        rows = cache.connection.execute(
            "SELECT key, held, id FROM Changes ORDER BY id LIMIT ?", (limit,)
        ).fetchall()
    return EntryChanges(
        {key: bool(is_held) for key, is_held, _ in rows}, rows[-1][2] if rows else 0
    )


def last_change(cache: FileCache) -> int:
    """Return the number of the last change."""
    with cache.translated():
        (last,) = cache.connection.execute("SELECT max(id) FROM Changes").fetchone()
    return int(last or 0)


def settle(cache: FileCache, upto: int) -> None:
    """Delete the changes up to `upto`, since they have been reported."""
    with cache.translated():
        cache.connection.execute("DELETE FROM Changes WHERE id <= ?", (upto,))


def _remove_orphans(cache: FileCache) -> None:
    folder, root = cache.folder, cache.folder.root()
    orphans = {path for path in _paths_below(root, "files") if path.count("/") > 1}
    # Files are moved into place and get their rows in one write transaction.
    with cache.writing():
        rows = cache.connection.execute("SELECT file FROM Entries WHERE file IS NOT NULL")
        orphans.difference_update(folder.below(name) for (name,) in rows)
    for path in (*orphans, *_paths_below(root, "incoming")):
        # What has no name of the cache's is not its own.
        with suppress(NotOursError):
            root.remove_file(path, CACHED)
