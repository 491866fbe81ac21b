"""Errors of tables.

* UseCaseError
  + NotFoundError
    - TableNotFoundError
  + TableChangedError
  + UnconfirmedReplacementError
  + LocationNotAllowedError
  + LocationSharedError
  + InvalidTableError
  + TransactionalTableError
  + ListedPartitionsError
  + LoggedTableError
  + WriteInProgressError
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from windrow_service.usecases.errors import NotFoundError, UseCaseError


@dataclass(eq=False)
class TableNotFoundError(NotFoundError):
    """No table has this name."""

    table: str
    near: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.near:
            names = " or ".join(map(repr, self.near))
            return f"no table {self.table!r}: did you mean {names}?"
        return (
            f"no table {self.table!r}: register it with `windrow table register {self.table} "
            f"LOCATION`, or PUT /tables/{self.table}"
        )


@dataclass(eq=False)
class TableChangedError(UseCaseError):
    """The table is not in the state that the caller requires."""

    table: str
    expected: str
    actual: str
    message = (
        "table {table!r} has changed: it was expected at {expected} and is at {actual}; {remedy}"
    )
    remedy = "GET /tables/{table} and decide again"


@dataclass(eq=False)
class UnconfirmedReplacementError(UseCaseError):
    """A new definition would drop what was made under the old one, and nobody has agreed to that.

    Attributes:
        fields: Fields of the definition that differ.
        snapshots: Number of snapshots that would be dropped.
        partitions: Length of the list of partitions that would be dropped; None if none would be.
    """

    table: str
    fields: tuple[str, ...]
    snapshots: int
    partitions: int | None
    message = "table {table!r} has {losses}, which its new {names} would drop: {remedy}"
    remedy = (
        "register another name, or allow it by PUT /tables/{table}?replace=true (`replace=True`)"
    )

    @property
    def losses(self) -> str:
        """What would be dropped, as text."""
        parts = []
        if self.snapshots:
            parts.append(f"{self.snapshots:,} snapshot{'s' * (self.snapshots > 1)}")
        if self.partitions is not None:
            parts.append(f"a list of {self.partitions:,} partition{'s' * (self.partitions != 1)}")
        return " and ".join(parts)

    @property
    def names(self) -> str:
        """The fields that differ, as text."""
        return ", ".join(self.fields)


@dataclass(eq=False)
class LocationNotAllowedError(UseCaseError):
    """A location lies outside the prefixes that this coordinator may read."""

    location: str
    allowed: tuple[str, ...]
    message = "location {location!r} is not under an allowed prefix ({prefixes}): {remedy}"
    remedy = "move the table, or start the coordinator with --allow or WINDROW_ALLOWED_LOCATIONS"

    @property
    def prefixes(self) -> str:
        """The prefixes as text."""
        return ", ".join(self.allowed) or "none"


@dataclass(eq=False)
class LocationSharedError(UseCaseError):
    """A location has, or may have, files of a table that the caller may not read."""

    location: str
    message = (
        "{location!r} overlaps, or may overlap, the location of a table that the token may not "
        "read: {remedy}"
    )
    remedy = "choose another location, or let somebody who may read all tables register this one"


class InvalidTableError(UseCaseError):
    """A table definition contradicts itself."""


@dataclass(eq=False)
class WriteInProgressError(UseCaseError):
    """Files of a write are being moved into the table."""

    table: str
    write_id: str
    host: str
    since: datetime
    alive_until: datetime
    message = (
        "write {write_id} from host {host!r} has been moving its files into table {table!r} "
        "since {since:%Y-%m-%d %H:%M:%S} UTC: {remedy}"
    )
    remedy = "wait until it is done, or if its driver has died run `windrow write recover {table}`"


@dataclass(eq=False)
class TransactionalTableError(UseCaseError):
    """A transactional table does not support something that plain tables do.

    Attributes:
        what: What was refused, such as "published inventories".
        instead: What to do instead, as a sentence.
    """

    table: str
    what: str
    instead: str
    message = "table {table!r} is transactional, and does not support {what}: {instead}"


@dataclass(eq=False)
class ListedPartitionsError(UseCaseError):
    """A table whose partitions a catalog lists does not support something that others do.

    Attributes:
        what: What was refused, such as "published inventories".
        instead: What to do instead, as a sentence.
    """

    table: str
    what: str
    instead: str
    message = (
        "table {table!r} has the partitions of its list, and does not support {what}: {instead}"
    )


@dataclass(eq=False)
class LoggedTableError(UseCaseError):
    """A table with a log does not support something that folders of files do.

    Attributes:
        format: Delta or Iceberg.
        what: What was refused, such as "published inventories".
        instead: What to do instead, as a sentence.
    """

    table: str
    format: str
    what: str
    instead: str
    message = "table {table!r} is {format}, and does not support {what}: {instead}"
