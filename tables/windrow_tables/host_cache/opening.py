"""Opening the cache of a host, in the folder that its agent manages."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING
from urllib.parse import quote

from windrow_tables.host_cache.cache import CacheTroubleError, FileCache
from windrow_tables.host_cache.folders import CacheFolder, UnusableFolderError, find_folder

if TYPE_CHECKING:
    import sqlite3

FOLDER_VARIABLE = "WINDROW_CACHE_DIR"

# Maximum time that a writer waits for others.
_WRITE_PATIENCE_S = 10.0
_CACHED_KIB = 4096


def open_cache(path: str) -> FileCache:
    """Return the cache in a folder that an agent has made; shared by this whole process.

    Raises:
        UnusableFolderError: There is no usable cache; the text says why.
    """
    # Code pickled by value has no module whose globals would last between tasks.
    home = sys.modules.setdefault("_windrow_caches", types.ModuleType("_windrow_caches"))
    caches: dict[str, FileCache] = home.__dict__.setdefault("caches", {})
    folder = find_folder(path)
    if path not in caches or caches[path].folder != folder:
        caches[path] = attach(folder)
    return caches[path]


def attach(folder: CacheFolder) -> FileCache:
    """Return the cache in a folder, whose database its agent has made."""
    try:
        # Python may have been compiled without it on executors.
        import sqlite3
    except ImportError:
        raise UnusableFolderError(
            "sqlite3 is missing here: use a Python that was compiled with it"
        ) from None

    def connect() -> sqlite3.Connection:
        # Only the agent makes a database.
        address = f"file:{quote(folder.database)}?mode=rw"
        connection = sqlite3.connect(
            address, uri=True, timeout=_WRITE_PATIENCE_S, isolation_level=None
        )
        # The database stays whole in a crash, which may lose the newest entries.
        connection.execute("PRAGMA synchronous = NORMAL")
        # If a memory-mapped file is truncated while it is read, the process is killed.
        connection.execute("PRAGMA mmap_size = 0")
        # In KiB; small, since the system's page cache holds what was read.
        connection.execute(f"PRAGMA cache_size = -{_CACHED_KIB}")
        return connection

    cache = FileCache(folder, connect, (OSError, sqlite3.Error))
    try:
        cache.volume()
    except CacheTroubleError as error:
        raise UnusableFolderError(f"cache folder {folder.path!r}: {error}") from error
    return cache
