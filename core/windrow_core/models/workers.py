"""Wire models of workers and the files that they hold."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from windrow_core.models.base import Answer, Request, TableName, Whole

WORKER_ID_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"
_HOST_PATTERN = r"^[A-Za-z0-9\[:_][A-Za-z0-9\[\]:._-]{0,254}$"
_MAX_REPORTED_FILES = 10_000

Count = Annotated[int, Whole(0, 2**63 - 1)]


class CacheCounters(Request):
    """Statistics of a worker's cache since it was made."""

    hits: Count = Field(default=0, description="Number of files read from the cache.")
    misses: Count = Field(default=0, description="Number of files fetched into the cache and read.")
    failures: Count = Field(
        default=0,
        description="Number of files read from their source because the cache could not store or "
        "return them.",
    )
    elsewhere: Count = Field(
        default=0,
        description="Number of files that belong on other workers but were read by tasks here; "
        "they are not cached.",
    )
    evictions: Count = Field(default=0, description="Number of files removed to make room.")
    hit_bytes: Count = 0
    miss_bytes: Count = 0


class Heartbeat(Request):
    """A worker's heartbeat; it should send three in every `ttl_seconds`."""

    host: Annotated[
        str,
        StringConstraints(pattern=_HOST_PATTERN, max_length=255),
        Field(description="The host of its executors, by the name that Spark uses."),
    ]
    capacity_bytes: Count
    used_bytes: Count
    ttl_seconds: Annotated[int, Whole(1, 3_600)] = Field(
        default=30,
        description="The worker is forgotten after this many seconds without a heartbeat.",
    )
    counters: CacheCounters = CacheCounters()


class WorkerInfo(Answer):
    """A running worker."""

    worker_id: str
    host: str
    capacity_bytes: int
    used_bytes: int
    ttl_seconds: int
    counters: CacheCounters = CacheCounters()
    session: str = Field(
        description="Must be sent with every report. If it changes, the worker had been forgotten "
        "and should again report all files that it holds."
    )
    expires_at: datetime


class WorkerPage(Answer):
    """One page of the running workers, by id."""

    workers: list[WorkerInfo]
    next_page_token: str | None = None


class CachedFile(Request):
    """A data file that a worker holds, as it was when the worker read it."""

    path: Annotated[str, StringConstraints(min_length=1, max_length=4096)] = Field(
        description="Path relative to the table's location, as in plans."
    )
    size_bytes: Count
    mtime_ns: Annotated[int, Whole(-(2**63), 2**63 - 1)]


class CachedFilesReport(Request):
    """The files of a table that a worker now holds, or no longer holds."""

    table: TableName
    session: Annotated[str, StringConstraints(pattern="^[0-9a-f]{16}$")] = Field(
        description="`session` of the worker's last heartbeat."
    )
    added: list[CachedFile] = Field(default=[], max_length=_MAX_REPORTED_FILES)
    removed: list[CachedFile] = Field(
        default=[],
        max_length=_MAX_REPORTED_FILES,
        description="A file that is also in `added` counts as added.",
    )
    replace: bool = Field(
        default=False,
        description="First forget all files of the table that the worker has reported before.",
    )


class CachedFilesCount(Answer):
    """The number of files of a table that a worker holds after a report."""

    worker_id: str
    table: str
    file_count: int
