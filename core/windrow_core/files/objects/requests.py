"""Requests to object stores: conditional, repeated after transient trouble, paced, and counted."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from windrow_core.files.objects.pacing import Pace
from windrow_core.files.objects.stores import bucket_and_key, connected, setting_of
from windrow_core.files.objects.troubles import (
    ChangedObjectError,
    ObjectError,
    Trouble,
    as_change,
    trouble_of,
)
from windrow_core.files.process_wide import kept_by_process
from windrow_core.files.status import FileStatus

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult

_Answer = TypeVar("_Answer")

# How long trouble with one object may last, and how long a store may object to all requests.
_TROUBLE_S, _OBJECTION_S = 60.0, 120.0
# If a store has never answered, a wrong setting is more likely than an outage.
_FIRST_ANSWER_S = 3.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
# Maximum number of requests that a process sends at the same time in the background.
_THREADS = 128
# Maximum number of objects that S3 removes in one request.
_MAX_REMOVED = 1_000
_NS_PER_S = 10**9


class Part(NamedTuple):
    """Bytes of an object, and the object's state.

    Attributes:
        content: The bytes, as a buffer.
        state: The object's state when they were read.
    """

    content: Any
    state: FileStatus


class ListedObject(NamedTuple):
    """An object in a listing.

    Attributes:
        key: Its key.
        state: Its state.
    """

    key: str
    state: FileStatus


@dataclass(slots=True)
class Traffic:
    """The requests of one read or task.

    Attributes:
        requests: Number of requests sent, including repeated ones.
        retries: Number of repeated requests.
        waited_s: Seconds for which requests waited to keep the rate, or for trouble to pass.
        pace: Bounds the requests of this read; None for no bound of its own.
    """

    requests: int = 0
    retries: int = 0
    waited_s: float = 0.0
    pace: Pace | None = None


@dataclass(slots=True)
class _Bucket:
    """A connection, and what is known about how quickly it answers."""

    store: Any
    pace: Pace = field(default_factory=Pace)
    turn: threading.Lock = field(default_factory=threading.Lock)
    answered_at: float | None = None


class Requests:
    """The requests of this process; `begin` sends them in threads of their own."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="windrow-objects")
        self._buckets: dict[tuple[str, str | None, bool], _Bucket] = {}
        # Counts and paces are changed by many threads.
        self._lock = threading.Lock()

    def begin(
        self,
        uri: str,
        traffic: Traffic,
        etag: str | None = None,
        start: int = 0,
        end: int | None = None,
        most_bytes: int | None = None,
    ) -> Future[Part]:
        """Begin to read an object in another thread; see `read`."""
        return self._threads.submit(self.read, uri, traffic, etag, start, end, most_bytes)

    def read(
        self,
        uri: str,
        traffic: Traffic,
        etag: str | None = None,
        start: int = 0,
        end: int | None = None,
        most_bytes: int | None = None,
    ) -> Part:
        """Read an object, or a part of it.

        Args:
            uri: The object.
            traffic: Requests are counted here.
            etag: Its ETag, if known; an object with another ETag is not read.
            start: First byte; if it is negative, that many bytes at the object's end are read.
            end: Where the part ends; None for the end of the object.
            most_bytes: Maximum bytes to return, from the beginning of the answer; None for all.

        Raises:
            FileNotFoundError: The object does not exist.
            ChangedObjectError: It has another ETag.
            ObjectError: It cannot be read.
        """
        options: GetOptions = {}
        if etag is not None:
            options["if_match"] = f'"{etag}"'
        if start < 0:
            options["range"] = {"suffix": -start}
        elif end is not None:
            options["range"] = (start, end)
        elif start:
            options["range"] = {"offset": start}

        def once(bucket: _Bucket, key: str) -> Part:
            import obstore

            answer = obstore.get(bucket.store, key, options=options)
            status = _status_of(answer.meta)
            # Some servers ignore the condition.
            if etag is not None and status.etag not in (etag, None):
                raise ChangedObjectError("has changed")
            first, last = answer.range
            if most_bytes is not None and last - first > most_bytes:
                return Part(_beginning(answer, most_bytes), status)
            content = answer.bytes()
            if len(content) != last - first:
                raise _CutError
            return Part(content, status)

        return self._repeated(uri, traffic, once)

    def look(self, uri: str, traffic: Traffic) -> FileStatus:
        """Return the state of an object, without reading it.

        Raises:
            FileNotFoundError: The object does not exist.
            ObjectError: Its state cannot be read.
        """

        def once(bucket: _Bucket, key: str) -> FileStatus:
            import obstore

            return _status_of(obstore.head(bucket.store, key))

        return self._repeated(uri, traffic, once)

    def list_one(self, uri: str, traffic: Traffic) -> tuple[list[str], list[ListedObject]]:
        """List a folder, but not its subfolders: return keys of folders, and objects.

        Keys of folders have no slash at their end.

        Args:
            uri: The folder, without a slash at its end.
            traffic: Requests are counted here.
        """

        def once(bucket: _Bucket, key: str) -> tuple[list[str], list[ListedObject]]:
            import obstore

            status = obstore.list_with_delimiter(bucket.store, key or None)
            return list(status["common_prefixes"]), [_listed(one) for one in status["objects"]]

        return self._repeated(uri, traffic, once)

    def list_all(self, uri: str, traffic: Traffic) -> list[ListedObject]:
        """Return all objects beneath a folder, at any depth.

        Args:
            uri: The folder, without a slash at its end.
            traffic: Requests are counted here; each lists up to 1,000 objects.
        """
        objects: list[ListedObject] = []

        def once(bucket: _Bucket, key: str) -> None:
            import obstore

            after = objects[-1].key if objects else None
            pages = obstore.list(bucket.store, key or None, offset=after, chunk_size=1_000)
            for page in pages:
                objects.extend(_listed(one) for one in page)
                self._count(traffic)

        self._repeated(uri, traffic, once)
        return objects

    def names_between(self, uri: str, after: str, before: str, traffic: Traffic) -> list[str]:
        """Return the names of the objects directly in a folder from one name to another.

        Args:
            uri: The folder, without a slash at its end.
            after: A name that no object has, with which to begin.
            before: Such a name, with which to end.
            traffic: Requests are counted here; each lists up to 1,000 objects.
        """
        names: list[str] = []

        def once(bucket: _Bucket, key: str) -> None:
            import obstore

            prefix = f"{key}/" if key else ""
            start = prefix + (names[-1] if names else after)
            pages = obstore.list(bucket.store, key or None, offset=start, chunk_size=1_000)
            for page in pages:
                ours = [one["path"][len(prefix) :] for one in page]
                names.extend(name for name in ours if name < before and "/" not in name)
                self._count(traffic)
                if ours[-1] >= before:
                    break

        self._repeated(uri, traffic, once)
        return names

    def create(self, uri: str, content: bytes, traffic: Traffic) -> None:
        """Make a small object; if there is one with this content, it is taken for the same.

        Raises:
            FileExistsError: There is an object with another content.
            ObjectError: It cannot be made.
        """

        def once(bucket: _Bucket, key: str) -> bool:
            import obstore
            from obstore.exceptions import AlreadyExistsError

            try:
                obstore.put(bucket.store, key, content, mode="create")
            except AlreadyExistsError:
                return False
            return True

        # The answer to an earlier try may have been lost.
        if not self._changed(uri, traffic, once) and self.read(uri, traffic).content != content:
            raise FileExistsError(uri)

    def upload(self, path: Path, uri: str, traffic: Traffic) -> None:
        """Copy a file of the local disk to an object, in several parts if it is large."""

        def once(bucket: _Bucket, key: str) -> None:
            import obstore

            obstore.put(bucket.store, key, path)

        self._changed(uri, traffic, once)

    def copy(self, uri: str, target: str, traffic: Traffic) -> None:
        """Let the store copy an object to another one in the same bucket.

        Raises:
            FileNotFoundError: The object does not exist.
            ObjectError: It cannot be copied.
        """
        _, target_key = bucket_and_key(target)

        def once(bucket: _Bucket, key: str) -> None:
            import obstore

            obstore.copy(bucket.store, key, target_key)

        self._changed(uri, traffic, once)

    def remove(self, uris: Sequence[str], traffic: Traffic) -> None:
        """Remove objects that exist; all are in the same bucket."""
        for start in range(0, len(uris), _MAX_REMOVED):
            keys = [bucket_and_key(uri)[1] for uri in uris[start : start + _MAX_REMOVED]]

            def once(bucket: _Bucket, _: str, keys: Sequence[str] = keys) -> None:
                import obstore

                obstore.delete(bucket.store, keys)

            self._changed(uris[start], traffic, once)

    def _changed(
        self, uri: str, traffic: Traffic, once: Callable[[_Bucket, str], _Answer]
    ) -> _Answer:
        return self._repeated(uri, traffic, once, is_change=True)

    def _repeated(
        self,
        uri: str,
        traffic: Traffic,
        once: Callable[[_Bucket, str], _Answer],
        *,
        is_change: bool = False,
    ) -> _Answer:
        """Send a request until it is answered, or trouble has lasted too long."""
        name, key = bucket_and_key(uri)
        bucket = self._bucket(*setting_of(name), is_change=is_change)
        began_at: float | None = None
        for attempt in count():
            sent_at = self._turn(bucket, traffic, is_repeated=attempt > 0)
            try:
                answer = once(bucket, key)
            except ObjectError:
                raise
            except Exception as error:
                trouble = _CUT if isinstance(error, _CutError) else trouble_of(error)
                now = time.monotonic()
                began_at = sent_at if began_at is None else began_at
                with self._lock:
                    if trouble.kind == "slow_down":
                        bucket.pace.objected(sent_at, now)
                    elif trouble.kind != "unreached":
                        bucket.answered_at = now
                if now > self._gives_up_at(trouble, bucket, began_at):
                    raise _error_of(as_change(trouble) if is_change else trouble, uri) from error
                pause = random.uniform(0, min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**attempt))
                self._count(traffic, requests=0, waited_s=pause)
                time.sleep(pause)
            else:
                with self._lock:
                    bucket.answered_at = time.monotonic()
                    bucket.pace.answered(bucket.answered_at)
                return answer
        raise AssertionError("a count never ends")

    def _count(self, traffic: Traffic, requests: int = 1, waited_s: float = 0.0) -> None:
        with self._lock:
            traffic.requests += requests
            traffic.waited_s += waited_s

    def _turn(self, bucket: _Bucket, traffic: Traffic, *, is_repeated: bool) -> float:
        """Wait until a request may be sent, count it, and return the time."""
        asked_at = time.monotonic()
        free_paces = []
        for pace in filter(None, (traffic.pace, bucket.pace)):
            if pace.rate is None:
                free_paces.append(pace)
                continue
            # One after another, so that each waits according to the rate at that time.
            with bucket.turn:
                with self._lock:
                    pause = pace.delay(time.monotonic())
                time.sleep(pause)
        sent_at = time.monotonic()
        # Once for all of it, because many threads wait for the lock.
        with self._lock:
            for pace in free_paces:
                pace.delay(asked_at)
            traffic.requests += 1
            traffic.retries += is_repeated
            traffic.waited_s += sent_at - asked_at
        return sent_at

    def _gives_up_at(self, trouble: Trouble, bucket: _Bucket, began_at: float) -> float:
        if trouble.kind in ("gone", "changed", "lasting"):
            return 0.0
        if trouble.kind == "slow_down":
            # As long as the store answers other requests, this one will have its turn.
            return max(began_at, bucket.answered_at or 0.0) + _OBJECTION_S
        if trouble.kind == "unreached" and bucket.answered_at is None:
            return began_at + _FIRST_ANSWER_S
        return began_at + _TROUBLE_S

    def _bucket(self, name: str, endpoint: str | None, *, is_change: bool) -> _Bucket:
        # Stores limit the rates of reads and of changes separately.
        key = name, endpoint, is_change
        if key in self._buckets:
            return self._buckets[key]
        with self._lock:
            if key not in self._buckets:
                self._buckets[key] = _Bucket(connected(name, endpoint, is_change=is_change))
            return self._buckets[key]


def requests() -> Requests:
    """Return the requests of this process."""
    return kept_by_process("object_requests", Requests)


def _beginning(answer: GetResult, most_bytes: int) -> bytes:
    content = bytearray()
    for piece in answer.stream(min_chunk_size=most_bytes):
        content += piece
        if len(content) >= most_bytes:
            return bytes(content[:most_bytes])
    raise _CutError


class _CutError(Exception):
    """An answer has fewer bytes than it states."""


_CUT = Trouble("passing", "cannot be read: its store ends answers before they are complete")


def _error_of(trouble: Trouble, uri: str) -> OSError:
    if trouble.kind == "gone":
        return FileNotFoundError(uri)
    kind = ChangedObjectError if trouble.kind == "changed" else ObjectError
    return kind(trouble.reason)


def _status_of(meta: Any) -> FileStatus:
    etag = meta["e_tag"]
    # Stores state whole seconds when an object is read; some state milliseconds in listings.
    moment: datetime = meta["last_modified"]
    mtime_ns = int(moment.timestamp()) * _NS_PER_S
    return FileStatus(meta["size"], mtime_ns, plain_etag(etag))


def plain_etag(etag: str | None) -> str | None:
    """Return an ETag without quotes: some servers leave the quotes out in listings."""
    return etag.removeprefix("W/").strip('"') if etag else None


def _listed(meta: Any) -> ListedObject:
    return ListedObject(meta["path"], _status_of(meta))
