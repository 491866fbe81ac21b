"""What catalogs ask of Python: a dataclass for each request, whose fields are the keys in Java."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from windrow_spark.writing.statements import Use


@dataclass(frozen=True, kw_only=True)
class Request:
    """What all requests have in common; without a `coordinator`, the default one is meant."""

    catalog: str
    coordinator: str | None
    case_sensitive: bool


class Begin(Request):
    """A catalog that a session uses from now on."""


class Prepare(Request):
    """A session that is to plan what `TableStrategy.java` does."""


@dataclass(frozen=True, kw_only=True)
class Namespaces(Request):
    """The namespaces in one."""

    namespace: Sequence[str]


class Tables(Namespaces):
    """The tables in a namespace."""


@dataclass(frozen=True, kw_only=True)
class Named(Namespaces):
    """What is about one table, whose name follows that of its namespace."""

    name: str

    @property
    def full_name(self) -> str:
        """The name as coordinators have it."""
        return ".".join([*self.namespace, self.name])


@dataclass(frozen=True, kw_only=True)
class Table(Named):
    """What `CatalogedTable.java` is made of; `for_stream` if a stream writes the table."""

    version: str | None = None
    timestamp_us: int | None = None
    for_stream: bool = False


class Exists(Named):
    """Whether a table is there, and has a snapshot."""


class Target(Named):
    """What `TargetTable.java` is made of."""


class Refresh(Named):
    """`REFRESH TABLE`."""


class Follow(Named):
    """What sessions have cached of a table, to have its current rows."""


@dataclass(frozen=True, kw_only=True)
class Refuse(Named):
    """A statement that is refused."""

    statement: str


class NewColumn(TypedDict):
    """A column of a table that a statement creates."""

    name: str
    type: str
    nullable: bool


@dataclass(frozen=True, kw_only=True)
class Create(Named):
    """A table whose rows are there; a partition that is more than a column is None."""

    columns: Sequence[NewColumn]
    partitions: Sequence[str | None]
    properties: Mapping[str, str]


class Stage(Create):
    """A table whose rows follow."""


class Replace(Stage):
    """A table whose rows, if there are any, are replaced by those that follow."""


class Creation(TypedDict):
    """A table that a statement creates, or whose rows it replaces; `CreatedTable.java` hands it on.

    The folders are those that were made for it, the innermost first.
    """

    name: str
    location: str
    folders: list[str]
    replaces: bool


@dataclass(frozen=True, kw_only=True)
class Unwritten(Request):
    """The end of a statement that has no rows, not even of an empty query."""

    creation: Creation


class Abort(Unwritten):
    """The end of a statement whose rows could not be written."""


@dataclass(frozen=True, kw_only=True)
class Partitions(Request):
    """The partitions of a snapshot of a table, a row of values for each."""

    table: str
    snapshot_id: int


class Procedures(Namespaces):
    """The procedures in a namespace."""


class Procedure(Named):
    """What `Procedures.java` makes a procedure of."""


@dataclass(frozen=True, kw_only=True)
class Call(Request):
    """A call of a procedure; arguments that are NULL are left out, but for those of type BOOLEAN."""

    procedure: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Delete(Request):
    """A statement that deletes the rows of a condition, which `DeletedRows.java` writes."""

    table: str
    condition: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Write(Request):
    """A statement that writes; values of a `partition` have Spark's internal form."""

    table: str
    mode: Use
    partition: Mapping[str, str | None]
    options: Mapping[str, str]
