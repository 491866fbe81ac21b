"""The tasks of the warm-up: they fetch undecoded files into the cache of their host.

This module is pickled by value, like the reader. Results are plain tuples, since classes pickled
by value do not come back as the same classes.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from windrow_core.files.listing import listed_of
from windrow_core.files.status import FileStatus
from windrow_core.files.table_paths import absolute_path, home_for, home_of
from windrow_tables.executor.errors import TaskReadError
from windrow_tables.executor.files import TICK_S, copy_whole, read_whole, source_mark
from windrow_tables.executor.reading import CACHED_ON_KEY
from windrow_tables.executor.spec import ReadLimits
from windrow_tables.host_cache.cache import CacheTroubleError, FileCache, FileKey
from windrow_tables.host_cache.folders import UnusableFolderError
from windrow_tables.host_cache.opening import FOLDER_VARIABLE, open_cache
from windrow_tables.host_cache.uses import CacheUse

_THREADS = 16
_MAX_REASONS = 3
_BUFFERED_BYTES = ReadLimits().max_buffered_file_bytes


class Warmed(NamedTuple):
    """The outcome of one task.

    Attributes:
        task: Number of the task.
        file_count: Number of files that the task should cache.
        away: Why the task could not use the cache at all; None if it could.
        actual: The host whose cache the task's executor uses, if that is another one than it needs.
        fetched_files: Files that the task added to the cache.
        fetched_bytes: Size of these files.
        present_files: Files that were already cached.
        present_bytes: Size of these files.
        failures: Reasons for a few of the other files.
    """

    task: int
    file_count: int
    away: str | None
    actual: str | None = None
    fetched_files: int = 0
    fetched_bytes: int = 0
    present_files: int = 0
    present_bytes: int = 0
    failures: tuple[str, ...] = ()

    @property
    def failed_files(self) -> int:
        """Files that are not in the cache although the task ran on the right host."""
        if self.away is not None:
            return 0
        return self.file_count - self.fetched_files - self.present_files


@dataclass(frozen=True, slots=True)
class Warming:
    """The function of all tasks; called with a task's number and its descriptor.

    Attributes:
        table: Name of the table.
        location: Folder of the table.
        on_file: Called for each file with the number of fetched bytes.
        logged: See `ReadSpec`.
    """

    table: str
    location: str
    on_file: Callable[[int], None]
    logged: bool = False

    def __call__(self, task: int, rows: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield the outcome, a `Warmed` as a tuple."""
        for row in rows:
            with pa.ipc.open_stream(pa.py_buffer(row[0])) as stream:
                host = stream.schema.metadata[CACHED_ON_KEY].decode()
                files = stream.read_next_batch()
            try:
                cache = _cache_of_this_host()
            except UnusableFolderError as error:
                yield tuple(Warmed(task, files.num_rows, str(error)))
                continue
            actual = cache.folder.host
            if actual == host:
                yield tuple(self._warmed(task, cache, files))
            else:
                reason = (
                    f"Spark ran tasks for {host} on {actual}, as no slot of {host} was free: raise "
                    "spark.locality.wait, or repeat the command"
                )
                yield tuple(Warmed(task, files.num_rows, reason, actual))

    def _warmed(self, task: int, cache: FileCache, files: pa.RecordBatch) -> Warmed:
        home = home_of(self.location)
        paths, states = listed_of(pa.Table.from_batches([files]))
        fetched_bytes: list[int] = []
        present: list[int] = []
        failures: list[str] = []
        with CacheUse(cache) as use, ThreadPoolExecutor(_THREADS) as threads:
            answers = threads.map(partial(self._fetch, cache, use, home), paths, states)
            sizes_bytes = (one.size_bytes for one in states)
            for size_bytes, (was_there, failure) in zip(sizes_bytes, answers, strict=True):
                if failure is not None:
                    failures.append(failure)
                else:
                    (present if was_there else fetched_bytes).append(size_bytes)
                self.on_file(0 if was_there or failure else size_bytes)
        return Warmed(
            task,
            files.num_rows,
            None,
            fetched_files=len(fetched_bytes),
            fetched_bytes=sum(fetched_bytes),
            present_files=len(present),
            present_bytes=sum(present),
            failures=tuple(failures[:_MAX_REASONS]),
        )

    def _fetch(
        self,
        cache: FileCache,
        use: CacheUse,
        home: str,
        path: str,
        status: FileStatus,
    ) -> tuple[bool, str | None]:
        """Return whether a file was already cached, and the reason if it is still not cached."""
        uri = absolute_path(self.location, path)
        inside = home_for(self.location, home, uri)
        comparable = status._replace(mtime_ns=None) if self.logged else status
        mark = source_mark(inside, uri, comparable)
        if mark is None:
            # It has just changed, or is gone; reading it says so.
            time.sleep(TICK_S)
            mark = source_mark(inside, uri, comparable)
        state = (status.size_bytes, status.mtime_ns or 0, path, mark or "")
        key = FileKey(self.table, self.location, *state).text()
        try:
            if cache.holds(key):
                return True, None
            if status.size_bytes <= _BUFFERED_BYTES:
                use.fetch(key, lambda: bytes(read_whole(inside, uri, comparable)))
            elif file := use.open(
                key, status.size_bytes, lambda write: copy_whole(inside, uri, comparable, write)
            ):
                file.close()
            is_cached = cache.holds(key)
        except (TaskReadError, CacheTroubleError) as error:
            return False, str(error)
        return (
            False,
            None if is_cached else f"the cache of {cache.folder.host} did not keep {path!r}",
        )


def _cache_of_this_host() -> FileCache:
    """Return the cache of this host."""
    path = os.environ.get(FOLDER_VARIABLE)
    if not path:
        raise UnusableFolderError(
            f"{FOLDER_VARIABLE} is not set for the executors on {socket.gethostname()}"
        )
    return open_cache(os.path.abspath(path))
