"""Where packs are recorded, and where they lie."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PackRun:
    """A run of a packer, whose id all names of what it writes begin with.

    Attributes:
        run_id: Its id.
        table_id: Number of its table.
        home: Name of the table's folder among packs.
        lease_until: When it is over without a sign of life.
        lapsed_at: Since when it may publish nothing; None if it may.
    """

    run_id: str
    table_id: int
    home: str
    lease_until: datetime
    lapsed_at: datetime | None = None


class PackStore(Protocol):
    """Packs of all tables."""

    async def renew_run(self, table: StoredTable, run: PackRun, snapshot_id: int) -> None:
        """Begin a run, or note a sign of its life.

        Args:
            table: Its table.
            run: The run.
            snapshot_id: The snapshot whose files are packed, which must be there when it begins:
                whoever erases rows drops snapshots first, and then lets runs lapse.

        Raises:
            PackingRunOverError: It is over, or its snapshot was dropped.
        """

    async def end_run(self, table_id: int, run_id: str) -> None:
        """Forget a run of a table that has left nothing."""

    async def lapsed_runs(self, table_id: int | None = None) -> Sequence[PackRun]:
        """Let runs lapse that gave no sign of life in time, and return those that ever have.

        Args:
            table_id: Only runs of this table, all of which lapse.
        """

    async def paths(self, table_id: int) -> Collection[str]:
        """Return where the packs of a table are that are recorded and not removed."""

    async def add(
        self,
        table: StoredTable,
        run_id: str,
        description: PackDescription,
        source_count: int,
        sources: bytes,
        figures: bytes | None = None,
    ) -> Pack:
        """Record a pack, from when on it may be used; the same one again changes nothing.

        Args:
            table: Its table.
            run_id: The run that has made it.
            description: The pack.
            source_count: Number of its sources.
            sources: They, as an Arrow stream.
            figures: The figures of their columns, as another one: a column for each.

        Raises:
            TableNotFoundError: The table was deleted meanwhile.
            InvalidPackError: The pack was withdrawn, or is one of another table.
            PackingRunOverError: The run is over.
        """

    async def published(self, table_id: int, definition: str) -> Sequence[Pack]:
        """Return the packs of a table that may be used, newest first."""

    async def sources(self, pack_ids: Sequence[str]) -> Mapping[str, bytes]:
        """Return the sources of those packs that are still recorded, by their ids."""

    async def figures(self, pack_ids: Sequence[str]) -> Mapping[str, bytes]:
        """Return the figures of those packs that have some, by their ids."""

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
        """Forget packs that were removed, and runs that lapsed, before a time; return how many packs."""


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

    def remove_left(self, run: PackRun, paths_to_keep: Collection[str]) -> Sequence[str]:
        """Remove what a run that is over has left; return where that was.

        Args:
            run: The run.
            paths_to_keep: Where packs are that stay.

        Raises:
            OSError: Something cannot be removed.
        """

    def remove(self, path: str) -> None:
        """Remove a pack, if it is there.

        Raises:
            OSError: It is not ours, or cannot be removed, or nobody can tell, as its folder is missing.
        """

    def tidy(self, path: str) -> None:
        """Remove the folder of a pack that is recorded as removed, if it is empty."""
