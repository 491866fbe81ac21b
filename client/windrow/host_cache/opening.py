"""Opening the cache of a host: diskcache in the folder that its agent tends."""

from __future__ import annotations

import sys
import types

from windrow.host_cache.cache import MAX_ROW_BYTES, FileCache, mark_if_damaged
from windrow.host_cache.disks import plain_disk
from windrow.host_cache.folders import CacheFolder, UnusableFolderError, find_folder

FOLDER_VARIABLE = "WINDROW_CACHE_DIR"

# How long a writer waits for others.
_WRITE_PATIENCE_S = 10.0
_CACHED_KIB = 4096


def open_cache(path: str) -> FileCache:
    """Return the cache in a folder, which an agent must have made; one for all of this process.

    Raises:
        UnusableFolderError: There is none that can be used; the text says why.
    """
    # What travels by value has no module of its own whose globals would last.
    home = sys.modules.setdefault("_windrow_caches", types.ModuleType("_windrow_caches"))
    caches: dict[str, FileCache] = home.__dict__.setdefault("caches", {})
    folder = find_folder(path)
    known = caches.get(path)
    if known is None or known.folder != folder:
        known = caches[path] = attach(folder)
    return known


def attach(folder: CacheFolder) -> FileCache:
    """Return the cache in a folder; an empty one if there is nothing.

    Raises:
        UnusableFolderError: diskcache is not installed, or what is there cannot be opened.
    """
    try:
        # Executors may not have them.
        import sqlite3

        import diskcache
    except ImportError:
        raise UnusableFolderError(
            "diskcache is not installed here: pip install 'windrow-spark[worker]', "
            "or 'diskcache>=5.6.3'"
        ) from None
    errors = (OSError, sqlite3.Error, diskcache.Timeout)
    try:
        store = diskcache.Cache(
            folder.files,
            timeout=_WRITE_PATIENCE_S,
            disk=plain_disk(diskcache),
            disk_min_file_size=MAX_ROW_BYTES,
            # Room is made here, before it is taken.
            cull_limit=0,
            eviction_policy="none",
            # A map of a file that is cut while it is read kills the process.
            sqlite_mmap_size=0,
            # In KiB. What is read is in the page cache of the system, if it is read again.
            sqlite_cache_size=-_CACHED_KIB,
        )
    except errors as error:
        mark_if_damaged(folder, error)
        raise UnusableFolderError(f"cache folder {folder.path!r}: {error}") from error
    return FileCache(folder, store, errors)
