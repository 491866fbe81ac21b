"""Errors raised by the use cases.

* UseCaseError
  + NotFoundError
    - TableNotFoundError
    - SnapshotNotFoundError
    - PlanNotFoundError
    - WorkerNotFoundError
    - TokenNotFoundError
  + PlanSnapshotGoneError
  + PlanNotCompletedError
  + PlanCancelledError
  + PlansFullError
  + PageTokenError
  + TableChangedError
  + TableNotRefreshedError
  + TableContendedError, BloomColumnsChangedError: `windrow_service.usecases.snapshots.publish_errors`
  + FormatNotRefreshableError
  + LocationNotAllowedError
  + InvalidTableError
  + InvalidColumnsError
  + BusyError
  + StoreUnavailableError
  + CacheUnavailableError
  + CacheFullError
  + TooManyWorkersError
  + RevisionError
  + OutcomeUnknownError
  + IdempotencyKeyReusedError
  + RepeatedRequestError
  + UnauthenticatedError
  + ScopeMissingError
  + InvalidTokenError

Those about refreshes are in `refresh_errors`, those about cache rules in `cache_rule_errors`.
They know nothing of HTTP: `windrow_service.api.problems` decides what each looks like on the wire.
"""


class UseCaseError(Exception):
    """Base of every error a use case raises on purpose."""


class NotFoundError(UseCaseError):
    """Something that a caller named is not there."""


class TableNotFoundError(NotFoundError):
    """No table has this name."""

    def __init__(self, table: str, near: tuple[str, ...] = ()) -> None:
        super().__init__(table, near)
        self.table = table
        self.near = near

    def __str__(self) -> str:
        if self.near:
            names = " or ".join(map(repr, self.near))
            return f"no table {self.table!r}: did you mean {names}?"
        return (
            f"no table {self.table!r}: register it with `windrow table register {self.table} "
            f"LOCATION`, or PUT /tables/{self.table}"
        )


class SnapshotNotFoundError(NotFoundError):
    """The table has no such snapshot."""

    def __init__(self, table: str, snapshot_id: int) -> None:
        super().__init__(table, snapshot_id)
        self.table = table
        self.snapshot_id = snapshot_id

    def __str__(self) -> str:
        return (
            f"table {self.table!r} has no snapshot {self.snapshot_id}: "
            f"GET /tables/{self.table}/snapshots lists those it has"
        )


class PlanNotFoundError(NotFoundError):
    """No plan has this id, or it has expired or was deleted."""

    def __init__(self, plan_id: str) -> None:
        super().__init__(plan_id)
        self.plan_id = plan_id

    def __str__(self) -> str:
        return f"no plan {self.plan_id!r}: it may have expired or been deleted; plan again"


class PlanSnapshotGoneError(UseCaseError):
    """A plan is still there, and the snapshot that it was made from is not."""

    def __init__(self, plan_id: str, table: str, snapshot_id: int) -> None:
        super().__init__(plan_id, table, snapshot_id)
        self.plan_id = plan_id
        self.table = table
        self.snapshot_id = snapshot_id

    def __str__(self) -> str:
        return (
            f"plan {self.plan_id!r} cannot be explained any more: snapshot {self.snapshot_id} of "
            f"table {self.table!r} was dropped with the table or its definition; plan again"
        )


class PlanNotCompletedError(UseCaseError):
    """A plan has no groups: it is still being made, or could not be made."""

    def __init__(self, plan_id: str, reason: str | None) -> None:
        super().__init__(plan_id, reason)
        self.plan_id = plan_id
        self.reason = reason
        self.retry_after_s = 1

    def __str__(self) -> str:
        if self.reason is not None:
            return f"plan {self.plan_id!r} could not be made ({self.reason}); plan again"
        return (
            f"plan {self.plan_id!r} is still being made: GET /plans/{self.plan_id} until its status "
            "is completed"
        )


class PlanCancelledError(UseCaseError):
    """Nobody wants a plan any more that is being made."""

    def __str__(self) -> str:
        return "the plan was deleted while it was being made; plan again"


class PlansFullError(UseCaseError):
    """All plans together take as much room as they may."""

    def __init__(self, kept_bytes: int, max_bytes: int, retry_after_s: int) -> None:
        super().__init__(kept_bytes, max_bytes, retry_after_s)
        self.kept_bytes = kept_bytes
        self.max_bytes = max_bytes
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return (
            f"plans that have not expired hold {self.kept_bytes:,} of {self.max_bytes:,} bytes: "
            "delete plans that are no longer read, wait until some expire, or raise "
            "WINDROW_LIMITS__MAX_PLAN_BYTES"
        )


class WorkerNotFoundError(NotFoundError):
    """No such worker lives, or it has been forgotten since the session that it speaks of."""

    def __init__(self, worker_id: str) -> None:
        super().__init__(worker_id)
        self.worker_id = worker_id

    def __str__(self) -> str:
        return (
            f"no worker {self.worker_id!r} in this session: send PUT /workers/{self.worker_id}, "
            "then report all the files that it holds under the session of the answer"
        )


class PageTokenError(UseCaseError):
    """A page token was not made here, or for another list or plan."""

    def __init__(self) -> None:
        super().__init__()

    def __str__(self) -> str:
        return "page_token is not valid here: use next_page_token of the page before, unchanged"


class TableChangedError(UseCaseError):
    """The table is not in the state that the caller said it must be in."""

    def __init__(self, table: str, expected: str, actual: str) -> None:
        super().__init__(table, expected, actual)
        self.table = table
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        return (
            f"table {self.table!r} has changed: it was expected at {self.expected} and is at "
            f"{self.actual}; GET /tables/{self.table} and decide again"
        )


class TableNotRefreshedError(UseCaseError):
    """The table has no snapshot yet."""

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table

    def __str__(self) -> str:
        return f"table {self.table!r} has no snapshot yet: POST /tables/{self.table}/refresh first"


class FormatNotRefreshableError(UseCaseError):
    """The table's files have no footers that a refresh could read."""

    def __init__(self, table: str, format: str) -> None:
        super().__init__(table, format)
        self.table = table
        self.format = format

    def __str__(self) -> str:
        return (
            f"table {self.table!r} is {self.format}, and only Parquet is refreshed: publish its "
            f"inventory with POST /tables/{self.table}/snapshots"
        )


class LocationNotAllowedError(UseCaseError):
    """A location lies outside the prefixes that this coordinator may read."""

    def __init__(self, location: str, allowed: tuple[str, ...]) -> None:
        super().__init__(location, allowed)
        self.location = location
        self.allowed = allowed

    def __str__(self) -> str:
        prefixes = ", ".join(self.allowed) or "none"
        return (
            f"location {self.location!r} is not under an allowed prefix ({prefixes}): move the "
            "table, or start the coordinator with --allow or WINDROW_ALLOWED_LOCATIONS"
        )


class InvalidTableError(UseCaseError):
    """A table definition contradicts itself."""


class InvalidColumnsError(UseCaseError):
    """A plan asks for columns that the table does not have, or twice for one."""


class BusyError(UseCaseError):
    """Too much work is waiting already."""

    def __init__(self, pending: int, retry_after_s: int) -> None:
        super().__init__(pending, retry_after_s)
        self.pending = pending
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return f"{self.pending} requests are waiting already: try again in {self.retry_after_s} s"


class StoreUnavailableError(UseCaseError):
    """The metadata database does not answer, or refuses to be written to.

    Attributes:
        reason: What it says.
        retry_after_s: When to try again, in seconds.
        passing: Whether it may pass while one waits, as a server's restart does.
    """

    def __init__(self, reason: str, retry_after_s: int, passing: bool) -> None:
        super().__init__(reason, retry_after_s, passing)
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.passing = passing

    def __str__(self) -> str:
        return (
            f"the coordinator's database cannot be used ({self.reason}); nothing was changed: "
            "make sure that it runs and that its disk is not full, then try again"
        )


class RevisionError(UseCaseError):
    """The database is not at the revision that this version of Windrow works with."""


class OutcomeUnknownError(UseCaseError):
    """The database went away while a change was being committed."""

    def __str__(self) -> str:
        return (
            "the database went away while the change was being made, so that it may or may not be "
            "there: look before you ask again, or send the same Idempotency-Key again"
        )


class IdempotencyKeyReusedError(UseCaseError):
    """A caller has used one key for two different changes."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return (
            f"Idempotency-Key {self.key!r} was sent before with another request: use a new key for "
            "each change"
        )


class RepeatedRequestError(UseCaseError):
    """A change that a caller asks for was made before, under the same key.

    Attributes:
        answer: What the caller was answered then, as `Once.answer` said it.
    """

    def __init__(self, answer: str) -> None:
        super().__init__(answer)
        self.answer = answer


class CacheUnavailableError(UseCaseError):
    """The cache map does not answer."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(retry_after_s)
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return (
            "the cache map cannot be used; plans are made without it: look after the Redis server, "
            f"and try again in {self.retry_after_s} s"
        )


class CacheFullError(UseCaseError):
    """A worker reports more files than the cache map takes of one."""

    def __init__(self, worker_id: str, file_count: int, max_files: int) -> None:
        super().__init__(worker_id, file_count, max_files)
        self.worker_id = worker_id
        self.file_count = file_count
        self.max_files = max_files

    def __str__(self) -> str:
        return (
            f"worker {self.worker_id!r} would hold {self.file_count:,} files, and {self.max_files:,} "
            "are kept of one; nothing was changed: report files as removed first, or forget the "
            f"worker with DELETE /workers/{self.worker_id} and report anew"
        )


class TooManyWorkersError(UseCaseError):
    """As many workers live as may."""

    def __init__(self, max_workers: int) -> None:
        super().__init__(max_workers)
        self.max_workers = max_workers

    def __str__(self) -> str:
        return (
            f"{self.max_workers:,} workers live already: give each a lasting id, or a shorter "
            "ttl_seconds, so that those which are gone are forgotten"
        )


class UnauthenticatedError(UseCaseError):
    """A caller sent no token that is valid.

    Whether it is missing, unknown, expired or revoked is not said: it would tell whoever tries
    tokens that one of them had been good.
    """

    def __str__(self) -> str:
        return (
            "a valid bearer token is needed: send `Authorization: Bearer ...` with one of "
            "`windrow token create` that has neither expired nor been revoked"
        )


class ScopeMissingError(UseCaseError):
    """A caller's token does not allow what they ask for."""

    def __init__(self, scope: str) -> None:
        super().__init__(scope)
        self.scope = scope

    def __str__(self) -> str:
        return (
            f"the token does not have the scope {self.scope!r}, which this call needs: use one "
            f"made with `windrow token create NAME --scope {self.scope}`"
        )


class TokenNotFoundError(NotFoundError):
    """No token has this id."""

    def __init__(self, token_id: str) -> None:
        super().__init__(token_id)
        self.token_id = token_id

    def __str__(self) -> str:
        return f"no token {self.token_id!r}: `windrow token list` shows the ids"


class InvalidTokenError(UseCaseError):
    """A token cannot be made as asked for."""
