"""What a cache holds, as its agent follows it: all of it, and then what changes.

Triggers of the database write down each entry that comes or goes, whichever process does it, so
that following a cache takes work for what changes alone.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import NamedTuple

from windrow.host_cache.cache import FileCache
from windrow.host_cache.folders import CacheFolder, UnusableFolderError, announce
from windrow.host_cache.opening import attach

# A cache that is less full does not tell yet how long its files are.
_TELLING_PART = 16
_PAGE_BYTES = 16 * 2**10
_BYTES = "({0}.size + coalesce(length({0}.value), 0))"
_PREPARATIONS = (
    "CREATE TABLE IF NOT EXISTS Counts (name TEXT PRIMARY KEY, value INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS Changes (id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL,"
    " held INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS Held (bytes INTEGER NOT NULL)",
    "INSERT INTO Held SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM Held)",
    "CREATE TRIGGER IF NOT EXISTS Held_insert AFTER INSERT ON Cache FOR EACH ROW BEGIN"
    " INSERT INTO Changes (key, held) VALUES (NEW.key, 1);"
    f" UPDATE Held SET bytes = bytes + {_BYTES.format('NEW')}; END",
    "CREATE TRIGGER IF NOT EXISTS Held_update AFTER UPDATE OF size, value ON Cache FOR EACH ROW"
    f" BEGIN UPDATE Held SET bytes = bytes + {_BYTES.format('NEW')} - {_BYTES.format('OLD')}; END",
    "CREATE TRIGGER IF NOT EXISTS Held_delete AFTER DELETE ON Cache FOR EACH ROW BEGIN"
    " INSERT INTO Changes (key, held) VALUES (OLD.key, 0);"
    f" UPDATE Held SET bytes = bytes - {_BYTES.format('OLD')}; END",
    "CREATE INDEX IF NOT EXISTS Cache_access_time ON Cache (access_time)",
)


class Changes(NamedTuple):
    """What came or went since the last time.

    Attributes:
        held: Whether the cache holds an entry now, by its key.
        upto: The last change among them.
    """

    held: dict[str, bool]
    upto: int


def open_contents(folder: CacheFolder) -> FileCache:
    """Return the cache in a folder, ready to be used by executors; only its agent may.

    What an interrupted process left is removed, and what is beyond the capacity.

    Raises:
        UnusableFolderError: The cache cannot be opened.
        CacheTroubleError: It is broken, or the disk is full.
    """
    _make_database(folder)
    cache = attach(folder)
    with cache.translated():
        for statement in _PREPARATIONS:
            cache.connection.execute(statement)
    cache.shrink()
    _remove_orphans(cache)
    announce(folder)
    return cache


def _make_database(folder: CacheFolder) -> None:
    """Begin the database with large pages, which halve the time that a small file takes."""
    database = os.path.join(folder.files, "cache.db")
    if os.path.exists(database):
        return
    try:
        os.makedirs(folder.files, 0o700, exist_ok=True)
        with closing(sqlite3.connect(database)) as connection:
            connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            # So that room on the disk is given back.
            connection.execute("PRAGMA auto_vacuum = FULL")
            connection.execute("VACUUM")
    except (OSError, sqlite3.Error) as error:
        raise UnusableFolderError(f"cache folder {folder.path!r}: {error}") from error


def make_anew(folder: CacheFolder) -> FileCache:
    """Throw a cache away, and return an empty one.

    Tasks that have the old one open go on with it until they end; what they add to it is lost.

    Raises:
        UnusableFolderError: It cannot be made.
        CacheTroubleError: It cannot be made.
    """
    shutil.rmtree(folder.files, ignore_errors=True)
    with suppress(FileNotFoundError):
        os.unlink(folder.damaged)
    return open_contents(folder)


def held_bytes(cache: FileCache) -> int:
    """Return the bytes of the files that a cache holds, without what it takes to keep them.

    Raises:
        CacheTroubleError: The cache does not tell.
    """
    with cache.translated():
        (size_bytes,) = cache.connection.execute("SELECT bytes FROM Held").fetchone()
    return int(size_bytes)


def room_bytes(cache: FileCache) -> int:
    """Return how many bytes of files a cache holds when it is full, from those that it holds now.

    Small files take up to half as much again as they are long. Whoever fills a cache by the length
    of files must know, since one that is filled a little beyond its capacity, over and over in one
    order, never holds what is read next.

    Raises:
        CacheTroubleError: The cache does not tell.
    """
    capacity_bytes, volume = cache.folder.capacity_bytes, cache.volume()
    if volume * _TELLING_PART < capacity_bytes:
        return capacity_bytes
    return min(capacity_bytes, capacity_bytes * held_bytes(cache) // volume)


def all_keys(cache: FileCache, page: int) -> Iterator[list[str]]:
    """Yield the keys of all entries, a page at a time, those of one table together.

    Raises:
        CacheTroubleError: The cache does not tell.
    """
    last = ""
    while True:
        with cache.translated():
            rows = cache.connection.execute(
                "SELECT key FROM Cache WHERE raw = 1 AND key > ? ORDER BY key LIMIT ?", (last, page)
            ).fetchall()
        if not rows:
            return
        yield [key for (key,) in rows]
        last = rows[-1][0]


def changes(cache: FileCache, limit: int) -> Changes:
    """Return what changed first since `settle` was called.

    Raises:
        CacheTroubleError: The cache does not tell.
    """
    with cache.translated():
        rows = cache.connection.execute(
            "SELECT key, held, id FROM Changes ORDER BY id LIMIT ?", (limit,)
        ).fetchall()
    return Changes({key: bool(held) for key, held, _ in rows}, rows[-1][2] if rows else 0)


def last_change(cache: FileCache) -> int:
    """Return the number of the last change.

    Raises:
        CacheTroubleError: The cache does not tell.
    """
    with cache.translated():
        (last,) = cache.connection.execute("SELECT max(id) FROM Changes").fetchone()
    return int(last or 0)


def settle(cache: FileCache, upto: int) -> None:
    """Forget changes up to one: they are reported.

    Raises:
        CacheTroubleError: They may come again.
    """
    with cache.translated():
        cache.connection.execute("DELETE FROM Changes WHERE id <= ?", (upto,))


def _remove_orphans(cache: FileCache) -> None:
    folder = cache.folder
    for name in os.listdir(folder.incoming):
        os.unlink(os.path.join(folder.incoming, name))
    found = {
        os.path.relpath(os.path.join(below, name), folder.files)
        for below, _, names in os.walk(folder.files)
        for name in names
        if name.endswith(".val")
    }
    # Whoever puts a file into its place adds its row before others can write.
    with cache.writing():
        known = cache.connection.execute("SELECT filename FROM Cache WHERE filename IS NOT NULL")
        found.difference_update(name for (name,) in known)
    for name in found:
        os.unlink(os.path.join(folder.files, name))
