"""The agent of a host: sends heartbeats, and reports which files its cache holds."""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress

from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import (
    NotAllowedError,
    NotAuthenticatedError,
    NotFoundError,
    ProblemError,
    WindrowError,
)
from windrow_core.models import CacheCounters, CachedFile, CachedFilesReport, Heartbeat
from windrow_tables.host_cache import contents
from windrow_tables.host_cache.cache import CacheTroubleError, FileCache, FileKey
from windrow_tables.host_cache.folders import CacheFolder, UnusableFolderError, make_folder

_POLL_S = 1.0
# Maximum number of files in one report.
_PAGE = 10_000
# How often to report everything, so that tables registered since then learn of their files.
_REPORT_ALL_S = 600.0
_TABLE_NOT_FOUND = "urn:windrow:problem:table-not-found"
_CACHE_FULL = "urn:windrow:problem:cache-full"

_log = logging.getLogger("windrow.host_cache")


class AgentError(WindrowError):
    """The agent cannot run as asked."""


class _SessionOverError(Exception):
    """The coordinator has forgotten this worker, which must report everything again."""


class Agent:
    """Manages one cache folder, and reports for one host.

    Args:
        coordinator: The coordinator's calls. Their transport should not retry, as the agent does.
        folder: Folder of the cache; created if needed.
        host: The host of its executors, by the name that Spark uses.
        capacity_bytes: Maximum size of the cache.
        worker_id: A permanent id.
        ttl_seconds: The coordinator forgets the worker after this time without a heartbeat.

    Raises:
        AgentError: Another agent manages the folder, or it cannot be used.
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
        # The reports of an earlier agent may be out of date.
        self._reports_outdated = True
        self._session: str | None = None
        self._beat_due = self._all_due = 0.0
        self._is_full = False
        self._unknown_tables: set[str] = set()
        self._failures = 0

    def run(self, stopped: threading.Event) -> None:
        """Work until `stopped` is set, even while the coordinator does not answer.

        Raises:
            NotAuthenticatedError: The token was not valid at the start.
            NotAllowedError: The token lacked the scope at the start.
        """
        wait_s = 0.0
        while not stopped.wait(wait_s):
            wait_s = self._attempt()
        try:
            if self._session is not None:
                self._coordinator.forget_worker(self._worker_id)
        except WindrowError as error:
            _log.warning("could not tell the coordinator that this worker stops: %s", error)

    def _attempt(self) -> float:
        """Do what is due, and return the seconds to wait until the next attempt."""
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
            _log.info("recovered after failed attempts: %d", self._failures)
            self._failures = 0
        return 0.0 if more else _POLL_S

    def _work(self) -> bool:
        """Do what is due, and return whether there is more to do at once."""
        if os.path.exists(self._folder.damaged):
            _log.warning("replacing the damaged cache in %s with an empty one", self._folder.path)
            self._cache = contents.make_anew(self._folder)
            self._reports_outdated = True
        if self._reports_outdated:
            self._forget()
        self._beat_if_due()
        if time.monotonic() >= self._all_due:
            self._report_all()
            return True
        return self._report_changes()

    def _forget(self) -> None:
        """Start a new session, so that the coordinator assumes that no files are held."""
        with suppress(NotFoundError):
            self._coordinator.forget_worker(self._worker_id)
        self._reports_outdated = False
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
            new_keys = [key for key, is_held in changes.presence.items() if is_held]
            self._report(new_keys, changes.presence.keys() - new_keys)
            contents.settle(self._cache, changes.upto)
        return len(changes.presence) == _PAGE

    def _report(self, new_keys: Iterable[str], old_keys: Iterable[str]) -> None:
        """Report added and removed files of each table that the coordinator knows."""
        tables: dict[str, tuple[list[CachedFile], list[CachedFile]]]
        tables = defaultdict(lambda: ([], []))
        for files, keys in enumerate((() if self._is_full else new_keys, old_keys)):
            for key in map(FileKey.of, keys):
                file = CachedFile(path=key.path, size_bytes=key.size_bytes, mtime_ns=key.mtime_ns)
                tables[key.table][files].append(file)
        for table, (new_files, old_files) in tables.items():
            if table not in self._unknown_tables:
                self._send(table, new_files, old_files)

    def _send(self, table: str, new_files: list[CachedFile], old_files: list[CachedFile]) -> None:
        session = self._session
        # Reporting everything may take longer than the time to live.
        self._beat_if_due()
        if session is None or session != self._session:
            raise _SessionOverError
        report = CachedFilesReport(table=table, session=session, added=new_files, removed=old_files)
        try:
            self._coordinator.report_cached_files(self._worker_id, report)
        except ProblemError as error:
            if error.problem.type == _TABLE_NOT_FOUND:
                self._unknown_tables.add(table)
                _log.info("not reporting files of table %s: the coordinator lacks it", table)
            elif error.problem.type == _CACHE_FULL:
                self._is_full = True
                _log.warning("the coordinator does not accept more cached files: %s", error)
            elif isinstance(error, NotFoundError):
                raise _SessionOverError from error
            else:
                raise


def _hold(folder: CacheFolder) -> int:
    """Take the lock of the folder's agent, for as long as this process runs."""
    descriptor = os.open(folder.agent_lock, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise AgentError(
            f"another agent manages cache folder {folder.path!r}: name another folder, or stop it"
        ) from None
    return descriptor


def _open(folder: CacheFolder) -> FileCache:
    try:
        return contents.open_contents(folder)
    except (UnusableFolderError, CacheTroubleError):
        if not os.path.exists(folder.damaged):
            raise
        _log.warning("replacing the damaged cache in %s with an empty one", folder.path)
        return contents.make_anew(folder)
