"""Caches of hosts, made as agents make them."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from windrow_tables.executor.files import TICK_S
from windrow_tables.host_cache.cache import FileCache, FileKey
from windrow_tables.host_cache.contents import open_contents
from windrow_tables.host_cache.folders import make_folder

CAPACITY = 64 * 2**20


def cache_in(folder: Path, *, host: str = "here", capacity: int = CAPACITY) -> FileCache:
    """Return the cache in a folder, ready for executors of `host`."""
    return open_contents(make_folder(str(folder), host, capacity))


def settle() -> None:
    """Wait until files that were just written count as settled: until then, none is cached."""
    time.sleep(2 * TICK_S)


def key_of(path: str, size_bytes: int = 0, mtime_ns: int = 0, table: str = "t") -> str:
    return FileKey(table, "/tables/t", size_bytes, mtime_ns, path).text()


def without_marks(keys: Iterable[str]) -> set[str]:
    """Return keys without what tells a file from another one of equal size and time."""
    return {FileKey.of(key)._replace(mark="").text() for key in keys}


def keys_in(cache: FileCache) -> set[str]:
    return {key for (key,) in cache.connection.execute("SELECT key FROM Entries")}


def checkpointed(folder: Path) -> Path:
    """Return the file of the database, which then holds all of it."""
    database = folder / "files" / "entries.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return database


def damage_rows(folder: Path, content: bytes, at: int = 0) -> None:
    """Change one byte of a small entry's content on disk."""
    database = checkpointed(folder)
    database_bytes = bytearray(database.read_bytes())
    # A part that fits into one page.
    position = database_bytes.find(content[at : at + 64])
    assert position > 0, "the content is not stored unchanged in the database"
    database_bytes[position] ^= 0xFF
    database.write_bytes(database_bytes)
