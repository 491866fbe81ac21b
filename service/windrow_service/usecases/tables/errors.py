"""Errors of tables."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from windrow_core.errors import Call, Fault
from windrow_service.usecases.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UseCaseError,
)

if TYPE_CHECKING:
    # Loading the models takes longer than what some commands do.
    from windrow_core.models import TableInfo


@dataclass(eq=False)
class TableNotFoundError(NotFoundError):
    """Table not found."""

    table: str
    near: tuple[str, ...] = ()
    call = Call("register_table", name="table")

    def remedy_call(self) -> Call | None:
        """Return the call that registers it, unless another table may be meant."""
        return None if self.near else super().remedy_call()

    def __str__(self) -> str:
        if self.near:
            names = " or ".join(map(repr, self.near))
            return f"no table {self.table!r}: did you mean {names}?"
        return f"no table {self.table!r}: register it with {self.remedy_call()}"


@dataclass(eq=False)
class TableChangedError(UseCaseError):
    """Table has changed."""

    fault = Fault.CHANGED
    table: str
    expected: str
    actual: str
    message = (
        "table {table!r} has changed: it was expected at {expected} but is at {actual}; {remedy}"
    )
    remedy = "check it with {call}, then decide again"
    call = Call("get_table", name="table")


@dataclass(eq=False)
class UnconfirmedReplacementError(ConflictError):
    """Change would move the table, or drop snapshots or partitions.

    Attributes:
        location: Where the table lies.
        fields: Fields of the definition that differ.
        snapshots: Number of snapshots that would be dropped.
        partitions: Length of the list of partitions that would be dropped; None if none would be.
    """

    table: str
    location: str
    fields: tuple[str, ...]
    snapshots: int
    partitions: int | None
    message = "table {table!r} {objection}: {remedy}"
    remedy = "choose another name, or allow it with {call}"
    replace = True
    call = Call("register_table", name="table", replace="replace")

    @property
    def objection(self) -> str:
        """What speaks against the change, as text."""
        if self.losses:
            return f"has {self.losses}, which its new {self.names} would drop"
        return f"is already registered, at {self.location}"

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
        return " and ".join(filter(None, (", ".join(self.fields[:-1]), *self.fields[-1:])))


@dataclass(eq=False)
class LocationNotAllowedError(ForbiddenError):
    """Location is not allowed."""

    location: str
    prefixes: tuple[str, ...]
    message = "location {location!r} is not under an allowed prefix ({names}): {remedy}"
    remedy = "move the table, or start the coordinator with --allow or WINDROW_ALLOWED_LOCATIONS"

    @property
    def names(self) -> str:
        """The prefixes as text."""
        return ", ".join(self.prefixes) or "none"


@dataclass(eq=False)
class LocationSharedError(ForbiddenError):
    """Location may have files of other tables."""

    location: str
    message = (
        "{location!r} overlaps, or may overlap, the location of a table that the token may not "
        "read: {remedy}"
    )
    remedy = "choose another location, or let somebody who may read all tables register this one"


@dataclass(eq=False)
class TableProtectedError(ConflictError):
    """Table is protected from deletion.

    Attributes:
        what: What was refused, such as "its partitions cannot be dropped".
    """

    table: str
    what: str
    message = "table {table!r} is protected from deletion, so {what}: {remedy}"
    remedy = "if you really want that, unprotect it first: {call}"
    deletion_protection = False
    call = Call("protect_table", name="table", deletion_protection="deletion_protection")


@dataclass(eq=False)
class FolderProtectedError(ConflictError):
    """Folder has files of a table that is protected from deletion.

    Which one may not be said, as the caller need not be allowed to see it.

    Attributes:
        table: Another table, with files in the same folder.
        what: What was refused, such as "its partitions cannot be dropped".
    """

    table: str
    what: str
    message = (
        "table {table!r} shares a folder with one that is protected from deletion, so {what}: "
        "{remedy}"
    )
    remedy = "if you really want that, have the other table unprotected first"


class InvalidTableError(InvalidError):
    """Table definition is not valid."""


@dataclass(eq=False)
class WriteInProgressError(ConflictError):
    """A write is moving files into the table."""

    table: str
    write_id: str
    host: str
    since: datetime
    alive_until: datetime
    message = (
        "write {write_id} from host {host!r} has been moving its files into table {table!r} "
        "since {since:%Y-%m-%d %H:%M:%S} UTC: {remedy}"
    )
    remedy = "wait until it ends or, if its driver has died, run `windrow write recover {table}`"


@dataclass(eq=False)
class TransactionalTableError(ConflictError):
    """Table is transactional.

    Attributes:
        what: What was refused, such as "published inventories".
        instead: What to do instead, as a sentence.
    """

    table: str
    what: str
    instead: str
    message = "table {table!r} is transactional, and does not support {what}: {instead}"


@dataclass(eq=False)
class ListedPartitionsError(ConflictError):
    """Table has a list of partitions.

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
class LoggedTableError(ConflictError):
    """Table is kept by its own engine.

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


def unsupported(
    table: TableInfo, what: str, instead: str
) -> TransactionalTableError | LoggedTableError:
    """Return the error that a table does not support something, because of its kind.

    Args:
        table: The table.
        what: What is refused, such as "published inventories".
        instead: What to do instead, as a sentence.
    """
    kind = table.definition.kind
    if kind.takes_write_ids:
        return TransactionalTableError(table.name, what, instead)
    return LoggedTableError(table.name, kind.noun, what, instead)
