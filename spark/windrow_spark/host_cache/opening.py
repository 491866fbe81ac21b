"""Opening the cache of a host: diskcache in the folder that its agent manages."""

from __future__ import annotations

import os
import sys
import types
from typing import Any

from windrow_spark.host_cache.cache import MAX_ROW_BYTES, FileCache, mark_if_damaged
from windrow_spark.host_cache.folders import CacheFolder, UnusableFolderError, find_folder

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
    known = caches.get(path)
    if known is None or known.folder != folder:
        known = caches[path] = attach(folder)
    return known


def attach(folder: CacheFolder) -> FileCache:
    """Return the cache in a folder; an empty one if the folder is empty.

    Raises:
        UnusableFolderError: diskcache is not installed, or the cache cannot be opened.
    """
    try:
        # May be missing on executors.
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
            # `FileCache` itself removes entries to make room.
            cull_limit=0,
            eviction_policy="none",
            # If a memory-mapped file is truncated while it is read, the process is killed.
            sqlite_mmap_size=0,
            # In KiB; small, since the system's page cache holds what was read.
            sqlite_cache_size=-_CACHED_KIB,
        )
    except errors as error:
        mark_if_damaged(folder, error)
        raise UnusableFolderError(f"cache folder {folder.path!r}: {error}") from error
    return FileCache(folder, store, errors)


def plain_disk(diskcache: Any) -> Any:
    """Return a `Disk` class that never unpickles, as the folder's contents are not trusted."""

    class PlainDisk(diskcache.Disk):  # type: ignore[misc]
        def put(self, key: Any) -> Any:
            if type(key) is not str:
                raise TypeError("keys must be text")
            return key, True

        def get(self, key: Any, raw: Any) -> Any:
            if not raw or type(key) is not str:
                raise OSError("a key is not text")
            return key

        def store(self, value: Any, read: bool, key: Any = None) -> Any:
            if not read:
                if type(value) is not bytes or len(value) >= self.min_file_size:
                    raise TypeError("small values must be bytes, and large ones files")
                return super().store(value, read, key=key)
            # A complete file, which is moved into place atomically.
            filename, full_path = self.filename(key, value)
            os.makedirs(os.path.dirname(full_path), 0o700, exist_ok=True)
            os.rename(value, full_path)
            return os.stat(full_path).st_size, diskcache.core.MODE_BINARY, filename, None

        def fetch(self, mode: Any, filename: Any, value: Any, read: bool) -> Any:
            if mode == diskcache.core.MODE_BINARY:
                return super().fetch(mode, filename, value, read)
            if mode == diskcache.core.MODE_RAW and type(value) is bytes:
                return value
            raise OSError("an entry does not hold bytes")

    return PlainDisk
