"""Where a task reads its files: in place, or through the cache of its host."""

from __future__ import annotations

import logging
import os
import sys
import types
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from windrow_core.files.excerpts.excerpt import ExcerptFile
from windrow_core.files.excerpts.gathered import Gathered
from windrow_core.files.footers import TAIL_BYTES
from windrow_core.files.objects.requests import Traffic, requests
from windrow_core.files.remote import begin_read
from windrow_core.files.schemes import is_remote
from windrow_core.files.status import FileStatus
from windrow_core.files.table_paths import home_for, home_of, path_in
from windrow_tables.executor.files import (
    STREAM_BUFFER_BYTES,
    ExcerptRequest,
    ObjectRequest,
    Opener,
    copy_whole,
    open_excerpt,
    open_stream,
    read_footer,
    read_small_files,
    read_whole,
    source_mark,
)
from windrow_tables.executor.spec import PackFile, ReadSpec, Split
from windrow_tables.host_cache.cache import CacheTroubleError, FileKey
from windrow_tables.host_cache.folders import UnusableFolderError
from windrow_tables.host_cache.opening import FOLDER_VARIABLE, open_cache
from windrow_tables.host_cache.uses import CacheUse

_log = logging.getLogger("windrow.host_cache")


class Coming(Protocol):
    """A file that was asked for."""

    def result(self) -> bytes:
        """Wait for its content, and return it."""

    def cancel(self) -> object:
        """Cancel the request."""


# The bytes of a small file to decode, or the request for them; None before they are asked for.
Content: TypeAlias = bytes | Coming | None


class Files:
    """Files read in place.

    Args:
        spec: What to read.
        traffic: Counts requests to object stores.
    """

    def __init__(self, spec: ReadSpec, traffic: Traffic) -> None:
        self._location = spec.location
        self._traffic = traffic
        self._home = home_of(spec.location)
        self._is_logged = spec.logged

    @property
    def hits(self) -> int:
        """How many files the cache had."""
        return 0

    @property
    def takes_whole_files(self) -> bool:
        """Whether files are read whole even if only a part is needed."""
        return False

    def close(self) -> None:
        """Release resources."""

    def whole(self, split: Split) -> bytes:
        """Return the content of a file; see `read_whole`."""
        return read_whole(self._home_of(split), split.path, self._state_of(split), self._traffic)

    def gathered(self, splits: Sequence[Split]) -> Gathered:
        """Return the contents of small files that no request is needed for."""
        if any(is_remote(split.path) for split in splits):
            return Gathered.of([self.whole(split) for split in splits])
        return read_small_files(
            [(self._home_of(split), split.path, self._state_of(split)) for split in splits]
        )

    def ask(self, split: Split, threads: ThreadPoolExecutor, *, footer: bool) -> Content:
        """Ask for a file, and return the request, or the content if it is at hand.

        Args:
            split: A split of the file.
            threads: Threads for reads that would keep this thread waiting.
            footer: Whether its footer is enough.
        """
        state = self._state_of(split)
        start = -min(TAIL_BYTES, split.size_bytes) if footer else 0
        # One byte more than planned shows that a file has grown.
        most_bytes = split.size_bytes + 1
        part = begin_read(split.path, state, self._traffic, start, most_bytes)
        if part is None:
            return threads.submit(self.footer if footer else self.whole, split)
        return ObjectRequest(
            path=split.path, state=state, part=part, traffic=self._traffic, footer=footer
        )

    def ask_excerpt(self, split: Split, excerpt: ExcerptFile) -> Coming:
        """Ask for an excerpt of an object, and return the request."""
        store, state = requests(), self._state_of(split)
        parts = [
            store.begin(split.path, self._traffic, state.etag, begin, end)
            for begin, end in excerpt.ranges
        ]
        return ExcerptRequest(path=split.path, state=state, excerpt=excerpt, parts=parts)

    @contextmanager
    def stream_excerpt(self, split: Split, excerpt: ExcerptFile, opener: Opener) -> Iterator[Any]:
        """Open a large excerpt; see `open_excerpt`."""
        state = self._state_of(split)
        with open_excerpt(split.path, state, excerpt, opener, self._traffic) as reader:
            yield reader

    def footer(self, split: Split) -> bytes:
        """Return the end of a file, or more of it; see `read_footer`."""
        return read_footer(self._home_of(split), split.path, self._state_of(split), self._traffic)

    @contextmanager
    def stream(self, split: Split, opener: Opener) -> Iterator[Any]:
        """Open a large file; see `open_stream`."""
        home, state = self._home_of(split), self._state_of(split)
        with open_stream(home, split.path, state, opener, self._traffic) as reader:
            yield reader

    @contextmanager
    def stream_pack(self, pack: PackFile, opener: Opener) -> Iterator[Any]:
        """Open a pack, which lies outside of the table; see `open_stream`."""
        home = home_of(pack.path.rpartition("/")[0])
        state = FileStatus(pack.size_bytes, None)
        with open_stream(home, pack.path, state, opener, self._traffic) as reader:
            yield reader

    def _home_of(self, split: Split) -> str:
        return home_for(self._location, self._home, split.path)

    def _state_of(self, split: Split) -> FileStatus:
        """Return the planned state of a file, without its last change if that is not compared."""
        mtime_ns = None if self._is_logged else split.mtime_ns
        return FileStatus(split.size_bytes, mtime_ns, split.etag)


class CachedFiles(Files):
    """Files read through the cache of this host.

    Args:
        spec: What to read.
        traffic: As for `Files`.
        use: This task's use of the cache.
    """

    def __init__(self, spec: ReadSpec, traffic: Traffic, use: CacheUse) -> None:
        super().__init__(spec, traffic)
        self._use = use
        self._table = spec.table
        self._max_buffered_bytes = spec.limits.max_buffered_file_bytes

    @property
    def hits(self) -> int:
        """See `Files.hits`."""
        return self._use.hits

    @property
    def takes_whole_files(self) -> bool:
        """See `Files.takes_whole_files`: the cache holds whole files."""
        return True

    def close(self) -> None:
        """Record this task's use of the cache."""
        self._use.close()

    def ask(self, split: Split, threads: ThreadPoolExecutor, *, footer: bool) -> Content:
        """See `Files.ask`."""
        # Handing work to a thread costs more than taking a file that is at hand.
        content = self._at_hand(split)
        return (
            threads.submit(self.footer if footer else self.whole, split)
            if content is None
            else content
        )

    def gathered(self, splits: Sequence[Split]) -> Gathered:
        """See `Files.gathered`."""
        return Gathered.of([self.whole(split) for split in splits])

    def whole(self, split: Split) -> bytes:
        """See `Files.whole`."""
        whole, key = super().whole, self._key(split)
        if key is None:
            return whole(split)
        return self._use.fetch(key, lambda: bytes(whole(split)))

    def footer(self, split: Split) -> bytes:
        """See `Files.footer`. Files that the cache holds come from there; none is added to it."""
        is_small = split.size_bytes <= self._max_buffered_bytes
        content = self._at_hand(split) if is_small else None
        return super().footer(split) if content is None else content

    @contextmanager
    def stream(self, split: Split, opener: Opener) -> Iterator[Any]:
        """See `Files.stream`."""
        home, state, key = self._home_of(split), self._state_of(split), self._key(split)
        file = None
        if key is not None:
            file = self._use.open(
                key,
                split.size_bytes,
                lambda write: copy_whole(home, split.path, state, write, self._traffic),
            )
        if file is None:
            with super().stream(split, opener) as reader:
                yield reader
            return
        with file:
            yield opener(split.path, pa.PythonFile(file, mode="r"), STREAM_BUFFER_BYTES)

    def _at_hand(self, split: Split) -> bytes | None:
        key = self._key(split)
        return self._use.at_hand(key) if key is not None else None

    def _key(self, split: Split) -> str | None:
        """Return the name of a file in the cache; None if it must be read in place."""
        mark = source_mark(self._home_of(split), split.path, self._state_of(split))
        if mark is None:
            return None
        path = path_in(self._location, split.path)
        state = (split.size_bytes, split.mtime_ns, path, mark)
        return FileKey(self._table, self._location, *state).text()


def files_of(spec: ReadSpec, traffic: Traffic, cached_on: str | None, file_count: int) -> Files:
    """Return the files of a group, read in place or through the cache of this host.

    Args:
        spec: What to read.
        traffic: Counts requests to object stores.
        cached_on: The host whose cache the group's files belong in; None for no host.
        file_count: How many files the group has.
    """
    if cached_on is None:
        return Files(spec, traffic)
    path = os.environ.get(FOLDER_VARIABLE)
    if not path:
        _warn_once(f"files bypass the cache of {cached_on}, as {FOLDER_VARIABLE} is not set")
        return Files(spec, traffic)
    try:
        cache = open_cache(os.path.abspath(path))
    except UnusableFolderError as error:
        _warn_once(f"files bypass the cache: {error}")
        return Files(spec, traffic)
    if cache.folder.host == cached_on:
        return CachedFiles(spec, traffic, CacheUse(cache))
    # The files stay out of this host's cache: plans expect them in the other host's.
    try:
        cache.note((), {"elsewhere": file_count})
    except CacheTroubleError as error:
        _warn_once(f"reads of other hosts' files are not counted: {error}")
    return Files(spec, traffic)


def _warn_once(message: str) -> None:
    """Warn in the executor's log once, rather than in each task."""
    home = sys.modules.setdefault("_windrow_warnings", types.ModuleType("_windrow_warnings"))
    messages: set[str] = home.__dict__.setdefault("said", set())
    if message not in messages:
        messages.add(message)
        _log.warning("%s", message)
