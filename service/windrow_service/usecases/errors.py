"""Errors raised by the use cases.

* UseCaseError
  + NotFoundError
    - TableNotFoundError
    - SnapshotNotFoundError
    - PlanNotFoundError
    - RefreshNotFoundError
  + PlanSnapshotGoneError
  + PageTokenError
  + TableChangedError
  + TableNotRefreshedError
  + FormatNotRefreshableError
  + LocationNotAllowedError
  + InvalidTableError
  + InvalidColumnsError
  + BusyError
  + StoreUnavailableError

They know nothing of HTTP: `windrow_service.api.problems` decides what each looks like
on the wire.
"""


class UseCaseError(Exception):
    """Base of every error a use case raises on purpose."""


class NotFoundError(UseCaseError):
    """Something that a caller named is not there."""


class TableNotFoundError(NotFoundError):
    """No table has this name."""

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table

    def __str__(self) -> str:
        return f"no table {self.table!r}: register it with PUT /tables/{self.table}"


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


class RefreshNotFoundError(NotFoundError):
    """This coordinator has not refreshed the table since it started."""

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table

    def __str__(self) -> str:
        return (
            f"no refresh of {self.table!r} since this coordinator started: "
            f"POST /tables/{self.table}/refresh starts one"
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
    """The metadata database does not answer, or refuses to be written to."""

    def __init__(self, reason: str, retry_after_s: int) -> None:
        super().__init__(reason, retry_after_s)
        self.reason = reason
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return (
            f"the coordinator's database cannot be used ({self.reason}); nothing was changed: "
            "look after its disk and its file, then try again"
        )
