"""The agent of a host: says that the host lives, and which files its cache holds."""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress

from windrow.calls.coordinator import Coordinator
from windrow.errors import (
    NotAllowedError,
    NotAuthenticatedError,
    NotFoundError,
    ProblemError,
    WindrowError,
)
from windrow.host_cache import contents
from windrow.host_cache.cache import CacheTroubleError, FileCache, FileKey
from windrow.host_cache.folders import CacheFolder, UnusableFolderError, make_folder
from windrow.models import CacheCounters, CachedFile, CachedFilesReport, Heartbeat

_POLL_S = 1.0
# Most files of one report.
_PAGE = 10_000
# A table that was registered since, or anew, finds its files again.
_REPORT_ALL_S = 600.0
_TABLE_NOT_FOUND = "urn:windrow:problem:table-not-found"
_CACHE_FULL = "urn:windrow:problem:cache-full"

_log = logging.getLogger("windrow.host_cache")


class AgentError(WindrowError):
    """The agent cannot run as asked."""


class _SessionOverError(Exception):
    """The coordinator has forgotten this worker: all is to be said again."""


class Agent:
    """Tends one folder, and speaks for one host.

    Args:
        coordinator: Its calls. They should not be retried by the transport: the agent tries again.
        folder: Of the cache; made if it is not there.
        host: Where its executors run, by the name that Spark knows it by.
        capacity_bytes: Most bytes that the cache may take.
        worker_id: A lasting name.
        ttl_seconds: The coordinator forgets the worker when it has not heard of it for so long.

    Raises:
        AgentError: Another agent tends the folder, or it cannot be used.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        folder: str,
        *,
        host: str,
        capacity_bytes: int,
        worker_id: str,
        ttl_seconds: int,
    ) -> None:
        self._coordinator = coordinator
        self._worker_id = worker_id
        self._ttl_seconds = ttl_seconds
        try:
            self._folder = make_folder(folder, host, capacity_bytes)
            self._lock = _hold(self._folder)
            self._cache = _open(self._folder)
        except (UnusableFolderError, CacheTroubleError) as error:
            raise AgentError(str(error)) from error
        # What an agent before this one has said may not be true any more.
        self._known_as_before = True
        self._session: str | None = None
        self._beat_due = self._all_due = 0.0
        self._is_full = False
        self._unknown_tables: set[str] = set()
        self._failures = 0

    def run(self, stopped: threading.Event) -> None:
        """Work until `stopped` is set, whatever becomes of the coordinator meanwhile.

        Raises:
            NotAuthenticatedError: The token is not valid, from the start.
            NotAllowedError: The token lacks the scope, from the start.
        """
        wait_s = 0.0
        while not stopped.wait(wait_s):
            wait_s = self._attempt()
        try:
            if self._session is not None:
                self._coordinator.forget_worker(self._worker_id)
        except WindrowError as error:
            _log.warning("the coordinator was not told that this worker stops: %s", error)

    def _attempt(self) -> float:
        """Do what is due, and return in how many seconds to go on."""
        try:
            more = self._work()
        except _SessionOverError:
            _log.info("the coordinator had forgotten this worker")
            self._session, self._beat_due = None, 0.0
            return 0.0
        except (WindrowError, CacheTroubleError, UnusableFolderError) as error:
            if self._session is None and isinstance(error, NotAuthenticatedError | NotAllowedError):
                raise
            self._failures += 1
            if self._failures == 1:
                _log.warning("trying again: %s", error)
            return min(_POLL_S * 2.0 ** (self._failures - 1), self._ttl_seconds / 3)
        if self._failures:
            _log.info("all is well again")
            self._failures = 0
        return 0.0 if more else _POLL_S

    def _work(self) -> bool:
        """Do what is due; tell whether there is more."""
        if os.path.exists(self._folder.damaged):
            _log.warning("the cache in %s was damaged: it is made anew", self._folder.path)
            self._cache = contents.make_anew(self._folder)
            self._known_as_before = True
        if self._known_as_before:
            self._forget()
        self._beat_if_due()
        if time.monotonic() >= self._all_due:
            self._report_all()
            return True
        return self._report_changes()

    def _forget(self) -> None:
        """Begin a session of the coordinator, so that it takes nothing for held."""
        with suppress(NotFoundError):
            self._coordinator.forget_worker(self._worker_id)
        self._known_as_before = False
        self._session, self._beat_due = None, 0.0

    def _beat_if_due(self) -> None:
        if time.monotonic() < self._beat_due:
            return
        heartbeat = Heartbeat(
            host=self._folder.host,
            capacity_bytes=contents.room_bytes(self._cache),
            used_bytes=contents.held_bytes(self._cache),
            ttl_seconds=self._ttl_seconds,
            counters=CacheCounters(**self._cache.counts()),
        )
        session = self._coordinator.beat(self._worker_id, heartbeat).session
        self._beat_due = time.monotonic() + self._ttl_seconds / 3
        if session != self._session:
            self._session, self._all_due = session, 0.0

    def _report_all(self) -> None:
        upto = contents.last_change(self._cache)
        self._is_full = False
        self._unknown_tables.clear()
        count = 0
        for page in contents.all_keys(self._cache, _PAGE):
            self._report(page, ())
            count += len(page)
        contents.settle(self._cache, upto)
        self._all_due = time.monotonic() + _REPORT_ALL_S
        _log.info("reported all %s files of the cache", f"{count:,}")

    def _report_changes(self) -> bool:
        changes = contents.changes(self._cache, _PAGE)
        if changes.upto:
            held = changes.held
            self._report((key for key in held if held[key]), (key for key in held if not held[key]))
            contents.settle(self._cache, changes.upto)
        return len(changes.held) == _PAGE

    def _report(self, added: Iterable[str], removed: Iterable[str]) -> None:
        """Say what came and went, of each table that the coordinator knows."""
        tables: dict[str, tuple[list[CachedFile], list[CachedFile]]]
        tables = defaultdict(lambda: ([], []))
        for files, keys in enumerate((() if self._is_full else added, removed)):
            for key in map(FileKey.of, keys):
                file = CachedFile(path=key.path, size_bytes=key.size_bytes, mtime_ns=key.mtime_ns)
                tables[key.table][files].append(file)
        for table, (new, gone) in tables.items():
            if table not in self._unknown_tables:
                self._send(table, new, gone)

    def _send(self, table: str, added: list[CachedFile], removed: list[CachedFile]) -> None:
        session = self._session
        # A report of all may take longer than the worker lives.
        self._beat_if_due()
        if session is None or session != self._session:
            raise _SessionOverError
        report = CachedFilesReport(table=table, session=session, added=added, removed=removed)
        try:
            self._coordinator.report_cached_files(self._worker_id, report)
        except ProblemError as error:
            if error.problem.type == _TABLE_NOT_FOUND:
                self._unknown_tables.add(table)
                _log.info("the coordinator has no table %s: its files are not reported", table)
            elif error.problem.type == _CACHE_FULL:
                self._is_full = True
                _log.warning("files are cached that the coordinator does not take: %s", error)
            elif isinstance(error, NotFoundError):
                raise _SessionOverError from error
            else:
                raise


def _hold(folder: CacheFolder) -> int:
    """Take the lock that one agent of a folder may hold, for as long as this process lives."""
    descriptor = os.open(folder.agent_lock, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise AgentError(
            f"another agent tends cache folder {folder.path!r}: name another folder, or stop it"
        ) from None
    return descriptor


def _open(folder: CacheFolder) -> FileCache:
    try:
        return contents.open_contents(folder)
    except (UnusableFolderError, CacheTroubleError):
        if not os.path.exists(folder.damaged):
            raise
        _log.warning("the cache in %s was damaged: it is made anew", folder.path)
        return contents.make_anew(folder)
