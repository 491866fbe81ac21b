"""One task's use of its host's cache: whatever is wrong with the cache, the task gets its bytes."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import BinaryIO

from windrow.host_cache.cache import CacheTroubleError, FileCache, Write
from windrow.host_cache.locks import locked

# Longer than a store takes for one file; then whoever waits fetches it too.
_FETCH_PATIENCE_S = 60.0

_log = logging.getLogger("windrow.host_cache")


class CacheUse:
    """Reads through a cache, and notes at its end what was read. Threads may share it.

    Args:
        cache: The host's.
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
        """Note what was read, and count what happened."""
        reads, counts = self._reads, self._counts
        self._reads, self._counts = {}, Counter()
        if reads or counts:
            try:
                self._cache.note(((at, key) for key, at in reads.items()), counts)
            except CacheTroubleError as error:
                _log.warning("what was read from the cache is not noted: %s", error)

    def at_hand(self, key: str) -> bytes | None:
        """Return a file's content if the cache has it."""
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
        """Return a file's content, which is then in the cache if that can be.

        Args:
            key: The file.
            read: Reads it past the cache, and makes sure that it is the one that the key names.
                What it raises is raised here.
        """
        if (content := self.at_hand(key)) is not None:
            return content
        with self._alone(key):
            # Whoever held the lock may have fetched it.
            content = self.at_hand(key)
            if content is None:
                content = fetched = read()
                self._keep(len(content), lambda: self._cache.keep(key, fetched))
            return content

    def open(self, key: str, size_bytes: int, copy: Callable[[Write], object]) -> BinaryIO | None:
        """Return an open file of a large file's content, or None to read past the cache.

        Args:
            key: The file.
            size_bytes: Its length.
            copy: Given what writes a piece, writes the file piece after piece, and makes sure that
                it is the one that the key names. What it raises is raised here.
        """
        with self._alone(key):
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
        """Put a file that was not there into the cache, if that can be."""
        kept, evicted = False, 0
        if self._takes and self._cache.fits(size_bytes):
            try:
                evicted = keep()
                kept = True
            except CacheTroubleError as error:
                self._take_no_more(error)
        with self._lock:
            self._counts["misses" if kept else "failures"] += 1
            self._counts["miss_bytes"] += size_bytes if kept else 0
            self._counts["evictions"] += evicted
        return kept

    def _count_hit(self, key: str, size_bytes: int) -> None:
        with self._lock:
            self._counts["hits"] += 1
            self._counts["hit_bytes"] += size_bytes
            self._reads[key] = time.time()

    @contextmanager
    def _alone(self, key: str) -> Iterator[None]:
        """Wait for others who fetch a file, and let others wait."""
        with ExitStack() as stack:
            if self._takes:
                try:
                    stack.enter_context(locked(self._cache.folder.locks, key, _FETCH_PATIENCE_S))
                except OSError as error:
                    self._take_no_more(error)
            yield

    def _give_up(self, error: Exception) -> bool:
        # Not for one file: whoever is asked thousands of times may fail slowly each time.
        self._gives = self._takes = False
        _log.warning("the rest of this task reads past the cache: %s", error)
        return False

    def _take_no_more(self, error: Exception) -> None:
        if self._takes:
            self._takes = False
            _log.warning("the rest of this task caches no more files: %s", error)
