"""Where packs are recorded, and where they lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from windrow_core.files.status import FileStatus
from windrow_core.models.packs import Pack, PackDescription
from windrow_service.usecases.tables.ports import StoredTable


@dataclass(frozen=True, slots=True)
class StoredPack:
    """A pack as the store has it.

    Attributes:
        table_id: Number of its table.
        table: Name of its table; None if the table is gone.
        definition: What its partition values depend on.
        pack: The pack as callers see it.
    """

    table_id: int
    table: str | None
    definition: str
    pack: Pack


class PackStore(Protocol):
    """Packs of all tables."""

    async def add(
        self, table: StoredTable, description: PackDescription, source_count: int, sources: bytes
    ) -> Pack:
        """Record a pack, from when on it may be used; the same one again changes nothing.

        Args:
            table: Its table.
            description: The pack.
            source_count: Number of its sources.
            sources: They, as an Arrow stream.

        Raises:
            TableNotFoundError: The table was deleted meanwhile.
            InvalidPackError: The pack was withdrawn, or is one of another table.
        """

    async def published(self, table_id: int, definition: str) -> Sequence[Pack]:
        """Return the packs of a table that may be used, newest first."""

    async def sources(self, pack_ids: Sequence[str]) -> Mapping[str, bytes]:
        """Return the sources of those packs that are still recorded, by their ids."""

    async def of_table(self, table_id: int, limit: int) -> Sequence[Pack]:
        """Return the packs of a table in any state, newest first."""

    async def everywhere(self) -> Sequence[StoredPack]:
        """Return the packs that are not removed, of deleted tables too: by table, newest first."""

    async def withdraw(self, pack_id: str, table: str | None, because: str) -> bool:
        """Let nobody use a pack any more; return whether somebody could.

        Args:
            pack_id: The pack.
            table: Name of its table; None if it is gone.
            because: Why.
        """

    async def note_gone(self, pack_id: str, since: datetime | None) -> None:
        """Record since when a source of a pack is missing or replaced; None if none is."""

    async def note_removed(self, pack_id: str) -> None:
        """Record that the last byte of a pack has left the disk."""

    async def purge(self, before: datetime) -> int:
        """Forget packs that were removed before a time; return how many."""


class PackFolder(Protocol):
    """Where packs lie. Blocking."""

    @property
    def path(self) -> str:
        """The folder: an absolute path, or a URI."""

    def home_of(self, table: StoredTable) -> str:
        """Return the name of a table's folder in it."""

    def status(self, path: str) -> FileStatus | None:
        """Return the state of a pack; None if it is not there.

        Raises:
            OSError: The folder cannot be looked at.
        """

    def digest(self, path: str) -> str:
        """Return the SHA-256 of a pack.

        Raises:
            OSError: It cannot be read.
        """

    def remove(self, path: str) -> None:
        """Remove a pack, if it is there.

        Raises:
            OSError: It is not ours, or cannot be removed.
        """
