"""Workers and the files that they hold, on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from windrow.models.base import Answer, Request, TableName, Whole

WORKER_ID_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"
_HOST_PATTERN = r"^[A-Za-z0-9\[:_][A-Za-z0-9\[\]:._-]{0,254}$"
_MAX_REPORTED_FILES = 10_000

Count = Annotated[int, Whole(0, 2**63 - 1)]


class CacheCounters(Request):
    """What a worker's cache has done since it was made."""

    hits: Count = Field(default=0, description="Files read from the cache.")
    misses: Count = Field(default=0, description="Files fetched into the cache, and read.")
    failures: Count = Field(
        default=0, description="Files read past the cache, as it could not take or give them."
    )
    elsewhere: Count = Field(
        default=0, description="Files of other workers read by tasks that ran here; not cached."
    )
    evictions: Count = Field(default=0, description="Files that made room for others.")
    hit_bytes: Count = 0
    miss_bytes: Count = 0


class Heartbeat(Request):
    """What a worker says of itself when it beats; it should beat thrice in `ttl_seconds`."""

    host: Annotated[
        str,
        StringConstraints(pattern=_HOST_PATTERN, max_length=255),
        Field(description="Where its executors run, by the name that Spark knows it by."),
    ]
    capacity_bytes: Count
    used_bytes: Count
    ttl_seconds: Annotated[int, Whole(1, 3_600)] = Field(
        default=30, description="It is forgotten when it has not been heard of for so long."
    )
    counters: CacheCounters = CacheCounters()


class WorkerInfo(Answer):
    """A worker that lives."""

    worker_id: str
    host: str
    capacity_bytes: int
    used_bytes: int
    ttl_seconds: int
    counters: CacheCounters = CacheCounters()
    session: str = Field(
        description="Goes with every report. When it changes, the worker had been forgotten and "
        "should report all the files that it holds again."
    )
    expires_at: datetime


class WorkerPage(Answer):
    """One page of the workers that live, by id."""

    workers: list[WorkerInfo]
    next_page_token: str | None = None


class CachedFile(Request):
    """A data file that a worker holds, as it was when the worker read it."""

    path: Annotated[str, StringConstraints(min_length=1, max_length=4096)] = Field(
        description="Relative to the table's location, as plans name it."
    )
    size_bytes: Count
    mtime_ns: Annotated[int, Whole(-(2**63), 2**63 - 1)]


class CachedFilesReport(Request):
    """Which files of a table a worker holds, or no longer holds."""

    table: TableName
    session: Annotated[str, StringConstraints(pattern="^[0-9a-f]{16}$")] = Field(
        description="`session` of the worker's last heartbeat."
    )
    added: list[CachedFile] = Field(default=[], max_length=_MAX_REPORTED_FILES)
    removed: list[CachedFile] = Field(
        default=[],
        max_length=_MAX_REPORTED_FILES,
        description="What is added too counts as added.",
    )
    replace: bool = Field(
        default=False, description="Forget first all that the worker held of the table."
    )


class CachedFilesCount(Answer):
    """How many files of a table a worker holds after a report."""

    worker_id: str
    table: str
    file_count: int
