"""Registered tables, and the ports for storing and locating them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from windrow_core.models import PartitionListChange, TableDefinition, TableInfo
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import Once, Page


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTable:
    """A table as the store holds it.

    Attributes:
        table_id: Its number, which is never reused.
        info: The table as callers see it.
        version: Changes with the definition, the current snapshot and the protection; its ETag.
        checked_at: When the last listing that agrees with the current snapshot began; None if
            there was none.
        has_cache_rules: Whether it has any cache rules, expired or not.
    """

    table_id: int
    info: TableInfo
    version: str
    checked_at: datetime | None
    has_cache_rules: bool


class TableStore(Protocol):
    """Registered tables, by name."""

    async def put(
        self,
        name: str,
        definition: TableDefinition,
        if_match: str | None,
        once: Once | None = None,
        *,
        replace: bool = False,
    ) -> tuple[StoredTable, bool]:
        """Register a table or change its definition; return it, and whether it is new.

        The same definition again changes nothing. A change drops the table's snapshots, which
        depend on the old definition, except a change of the sort columns, the Bloom columns, the
        plan options, the catalog it was imported from, or an Iceberg table's option `metadata`.
        A change of the location or the partition columns drops the list of partitions. Dropping
        either needs consent, and so does another location: `replace`, or `if_match` with the
        current version.

        Raises:
            TableChangedError: The table is not at version `if_match`; `*` is any version.
            UnconfirmedReplacementError: The change needs consent, and there is none.
            TableProtectedError: The change would drop snapshots or the list of partitions, and the
                table is protected.
            WriteInProgressError: The definition differs, and a write is moving files in.
        """

    async def protect(
        self, name: str, deletion_protection: bool, if_match: str | None, once: Once | None = None
    ) -> StoredTable:
        """Protect a table from deletion, or end that; return it.

        Raises:
            TableNotFoundError: No table has this name.
            TableChangedError: The table is not at version `if_match`.
        """

    async def get(self, name: str) -> StoredTable:
        """Return one table.

        Raises:
            TableNotFoundError: No table has this name.
        """

    async def page(self, after: str, limit: int, among: Names) -> Page[StoredTable]:
        """Return at most `limit` tables in `among` whose names follow `after`, by name."""

    async def locations(self, among: Names) -> Sequence[str]:
        """Return the locations of all tables that are not in `among`."""

    async def shares_protection(self, table_id: int) -> bool:
        """Return whether another table, which is protected, has a location that overlaps this one's."""

    async def similar(self, name: str, among: Names) -> Sequence[str]:
        """Return names of tables in `among` that are similar to a name, best first."""

    async def delete(self, name: str, if_match: str | None, once: Once | None = None) -> None:
        """Delete a table and its snapshots; its files stay.

        Raises:
            TableNotFoundError: No table has this name.
            TableChangedError: The table is not at version `if_match`.
            TableProtectedError: The table is protected.
            WriteInProgressError: A write is moving files in.
        """


class Locations(Protocol):
    """Checks where tables may lie. Blocking: call it off the event loop."""

    def locate(self, definition: TableDefinition) -> str:
        """Return the canonical form of a table's location.

        Raises:
            LocationNotAllowedError: The location lies outside the allowed prefixes.
        """

    def allowed(self, locations: Sequence[str]) -> list[str]:
        """Return the canonical form of folders.

        Raises:
            LocationNotAllowedError: A folder lies outside the allowed prefixes.
        """


class PartitionListStore(Protocol):
    """Lists of partitions, as the bytes of `ListedPartitions.encoded`."""

    async def get(self, name: str) -> tuple[StoredTable, bytes | None]:
        """Return a table, and its list if it has one.

        Raises:
            TableNotFoundError: No table has this name.
        """

    async def put(
        self,
        table: StoredTable,
        body: bytes | None,
        change: PartitionListChange,
        once: Once | None = None,
    ) -> StoredTable:
        """Replace a table's list; None removes it. The table's snapshot stays.

        Raises:
            TableChangedError: The table has changed.
            WriteInProgressError: A write is moving files in.
        """

    async def confirm(
        self, table: StoredTable, change: PartitionListChange, once: Once | None = None
    ) -> None:
        """Store the answer to a request that changed nothing."""
