"""One task's use of its host's cache; faults of the cache never keep the task from its data."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import TracebackType
from typing import BinaryIO

from windrow_tables.host_cache.cache import CacheTroubleError, FileCache, Write
from windrow_tables.host_cache.locks import locked

# Longer than fetching one file takes; after that, a waiting task fetches the file itself.
_FETCH_PATIENCE_S = 60.0

_log = logging.getLogger("windrow.host_cache")


class CacheUse:
    """Reads files through a cache, and records the reads when closed. Threads may share it.

    Args:
        cache: The host's cache.
    """

    def __init__(self, cache: FileCache) -> None:
        self._cache = cache
        self._counts: Counter[str] = Counter()
        self._reads: dict[str, float] = {}
        self._lock = threading.Lock()
        self._takes = self._gives = True

    def __enter__(self) -> CacheUse:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Record reads and statistics in the cache."""
        reads, counts = self._reads, self._counts
        self._reads, self._counts = {}, Counter()
        if reads or counts:
            try:
                self._cache.note(((at, key) for key, at in reads.items()), counts)
            except CacheTroubleError as error:
                _log.warning("reads from the cache could not be recorded: %s", error)

    @property
    def hits(self) -> int:
        """Number of files that the cache has returned so far."""
        return self._counts["hits"]

    def at_hand(self, key: str) -> bytes | None:
        """Return a file's content if it is cached."""
        content = None
        try:
            if self._gives:
                content = self._cache.get(key)
        except CacheTroubleError as error:
            self._give_up(error)
        if content is not None:
            self._count_hit(key, len(content))
        return content

    def fetch(self, key: str, read: Callable[[], bytes]) -> bytes:
        """Return a file's content, and add it to the cache if possible.

        Args:
            key: The file.
            read: Reads the file from its source, and makes sure that it matches the key. Its
                exceptions are passed on.
        """
        if (content := self.at_hand(key)) is not None:
            return content
        with self._locked(key):
            # The previous holder of the lock may have fetched it.
            content = self.at_hand(key)
            if content is None:
                content = read()
                self._keep(len(content), partial(self._cache.keep, key, content))
            return content

    def open(self, key: str, size_bytes: int, copy: Callable[[Write], object]) -> BinaryIO | None:
        """Return an open file of a large file's content, or None if it cannot be cached.

        Args:
            key: The file.
            size_bytes: Size of the file.
            copy: Called with a function that writes one piece; writes the whole file with it, and
                makes sure that it matches the key. Its exceptions are passed on.
        """
        with self._locked(key):
            file = self._opened(key)
            if file is not None:
                self._count_hit(key, size_bytes)
            elif self._keep(size_bytes, lambda: self._cache.keep_copy(key, size_bytes, copy)):
                file = self._opened(key)
            return file

    def _opened(self, key: str) -> BinaryIO | None:
        try:
            return self._cache.open(key) if self._gives else None
        except CacheTroubleError as error:
            self._give_up(error)
            return None

    def _keep(self, size_bytes: int, keep: Callable[[], int]) -> bool:
        """Add a missing file to the cache if possible; return whether it was added."""
        is_new, evictions = False, 0
        if self._takes and self._cache.fits(size_bytes):
            try:
                evictions = keep()
                is_new = True
            except CacheTroubleError as error:
                self._take_no_more(error)
        with self._lock:
            self._counts["misses" if is_new else "failures"] += 1
            self._counts["miss_bytes"] += size_bytes if is_new else 0
            self._counts["evictions"] += evictions
        return is_new

    def _count_hit(self, key: str, size_bytes: int) -> None:
        with self._lock:
            self._counts["hits"] += 1
            self._counts["hit_bytes"] += size_bytes
            self._reads[key] = time.time()

    @contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        """Keep others from fetching the same file during the block."""
        with ExitStack() as stack:
            if self._takes:
                try:
                    stack.enter_context(locked(self._cache.folder.locks, key, _FETCH_PATIENCE_S))
                except OSError as error:
                    self._take_no_more(error)
            yield

    def _give_up(self, error: Exception) -> bool:
        # For the whole task, since a failing cache may be slow to fail for each of many files.
        self._gives = self._takes = False
        _log.warning("this task no longer uses the cache: %s", error)
        return False

    def _take_no_more(self, error: Exception) -> None:
        if self._takes:
            self._takes = False
            _log.warning("this task no longer adds files to the cache: %s", error)
