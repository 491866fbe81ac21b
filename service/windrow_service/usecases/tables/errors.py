"""Errors of tables.

* UseCaseError
  + NotFoundError
    - TableNotFoundError
  + TableChangedError
  + LocationNotAllowedError
  + InvalidTableError
  + WriteInProgressError
"""

from __future__ import annotations

from datetime import datetime

from windrow_service.usecases.errors import NotFoundError, UseCaseError


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


class WriteInProgressError(UseCaseError):
    """Files of a write are being moved into the table."""

    def __init__(
        self, table: str, write_id: str, host: str, since: datetime, alive_until: datetime
    ) -> None:
        super().__init__(table, write_id, host, since, alive_until)
        self.table = table
        self.write_id = write_id
        self.host = host
        self.since = since
        self.alive_until = alive_until

    def __str__(self) -> str:
        return (
            f"write {self.write_id} from host {self.host!r} has been moving its files into table "
            f"{self.table!r} since {self.since:%Y-%m-%d %H:%M:%S} UTC: wait until it is done, or "
            f"if its driver has died run `windrow write recover {self.table}`"
        )
