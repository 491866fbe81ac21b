"""Errors of snapshots: of looking one up, of refreshing and of publishing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from windrow_core.errors import Call
from windrow_service.usecases.errors import (
    ConflictError,
    InvalidError,
    NotFoundError,
    UnavailableError,
    UseCaseError,
)


@dataclass(eq=False)
class SnapshotNotFoundError(NotFoundError):
    """Snapshot not found."""

    table: str
    snapshot_id: int
    message = "table {table!r} has no snapshot {snapshot_id}: {remedy}"
    remedy = "{call} lists its snapshots"
    call = Call("list_snapshots", name="table")


@dataclass(eq=False)
class InvalidPartitionsError(InvalidError):
    """Snapshot has no partition of this number."""

    table: str
    snapshot_id: int
    number: int
    count: int
    message = (
        "snapshot {snapshot_id} of table {table!r} has {count:partition}, numbered from 0, so "
        "there is no partition {number:,}: {remedy}"
    )
    remedy = "use the numbers of this snapshot, which {call} lists"
    call = Call("list_partition_values", name="table", snapshot_id="snapshot_id")


@dataclass(eq=False)
class VersionNotKnownError(NotFoundError):
    """No snapshot of the table has this version."""

    table: str
    version: str
    message = "table {table!r} has no snapshot of version {version!r}: {remedy}"
    remedy = "make one with `windrow table refresh {table} --version {version}`"


@dataclass(eq=False)
class NotLoggedError(ConflictError):
    """Table keeps no versions."""

    table: str
    format: str
    message = "table {table!r} is {format}, and keeps no versions of its own: {remedy}"
    remedy = "leave out version, and give the snapshot_id of one of its snapshots"


@dataclass(eq=False)
class TableNotRefreshedError(ConflictError):
    """Table has no snapshot yet."""

    table: str
    message = "table {table!r} has no snapshot yet: {remedy}"
    remedy = "{call} first"
    call = Call("refresh_table", name="table")


@dataclass(eq=False)
class ColumnsNotDeclaredError(ConflictError):
    """Columns of this format must be declared."""

    table: str
    format: str
    message = "table {table!r} is {format}, whose files do not state their columns: {remedy}"
    remedy = "register it with `columns`, which `client.infer_columns` finds"


@dataclass(eq=False)
class PartitionsNotListedError(ConflictError):
    """Table has no list of partitions yet."""

    table: str
    message = (
        "table {table!r} has only the partitions that a catalog lists, and no list yet: {remedy}"
    )
    remedy = (
        "import it again (`windrow table import --hive {table}`), or register it without "
        "listed_partitions"
    )


@dataclass(eq=False)
class TableContendedError(UnavailableError):
    """Others keep publishing the table."""

    table: str
    attempts: int
    retry_after_s: int
    message = (
        "other callers published table {table!r} {attempts:time} in the meantime, and nothing "
        "was changed: {remedy}"
    )
    remedy = "try again in {retry_after_s} s, with fewer, larger deltas"


@dataclass(eq=False)
class BloomColumnsChangedError(ConflictError):
    """Bloom filter columns of the table have changed."""

    table: str
    message = "bloom_columns of table {table!r} have changed since its current snapshot: {remedy}"
    remedy = "refresh it, or publish a whole inventory, before the next delta"


@dataclass(eq=False)
class InventoryOutdatedError(ConflictError):
    """Inventory is older than a write.

    A whole inventory was listed before a write's files had all been moved in.
    """

    table: str
    listed_at: str
    written_at: str
    message = (
        "the inventory of table {table!r} was listed at {listed_at}, but a write moved files in "
        "until {written_at}: {remedy}"
    )
    remedy = "list the files again"


@dataclass(eq=False)
class WriteIdsNeededError(ConflictError):
    """Valid write ids are needed.

    A refresh would see writes that the previous snapshot left out.
    """

    table: str
    message = (
        "the current snapshot of table {table!r} was made with valid_write_ids, and this refresh "
        "has none: {remedy}"
    )
    remedy = "give newer valid_write_ids, or 'on-disk' to see all writes that are on disk"


@dataclass(eq=False)
class NotTransactionalError(ConflictError):
    """Table is not transactional."""

    table: str
    message = "table {table!r} is not transactional, and has no write ids: {remedy}"
    remedy = "leave out valid_write_ids, or register the table with `transactional`"


@dataclass(eq=False)
class RefreshNotFoundError(NotFoundError):
    """Refresh not found."""

    table: str
    message = "table {table!r} has never been refreshed: {remedy}"
    remedy = "{call} starts a refresh"
    call = Call("refresh_table", name="table")


@dataclass(eq=False)
class RefreshNotRunningError(NotFoundError):
    """No refresh is running."""

    table: str
    message = "no refresh of table {table!r} is running: {remedy}"
    remedy = "{call}"
    call = Call("get_refresh", name="table")


@dataclass(eq=False)
class RefreshFailedError(UseCaseError):
    """A refresh that a caller waited for has ended, perhaps on another replica, with a problem.

    Attributes:
        problem: The RFC 9457 problem.
    """

    problem: dict[str, Any]
    message = "{problem[detail]}"


@dataclass(eq=False)
class RefreshCancelledError(ConflictError):
    """Refresh was cancelled."""

    table: str
    message = "the refresh of table {table!r} was cancelled; nothing was published: {remedy}"
    remedy = "{call} starts another"
    call = Call("refresh_table", name="table")


@dataclass(eq=False)
class RefreshAbandonedError(UnavailableError):
    """Refresh was abandoned.

    The coordinator that ran a refresh has died, or is being stopped.
    """

    table: str
    retry_after_s = 1
    message = (
        "the refresh of table {table!r} was abandoned, because the coordinator that ran it has "
        "stopped: {remedy}"
    )
    remedy = "{call} starts another"
    call = Call("refresh_table", name="table")
