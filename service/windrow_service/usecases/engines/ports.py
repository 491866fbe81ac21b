"""Where the metadata for other engines is kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from windrow_core.models import PastPlan, TableDefinition
from windrow_service.iceberg.own_tables import OwnMetadata, PlannedManifest, PlannedSnapshot


class MetadataFiles(Protocol):
    """Files of metadata: a folder for each table, whose files never change. Blocking."""

    def path(self, table: str, name: str) -> str:
        """Return where engines find a file."""

    def read(self, table: str, name: str) -> str | None:
        """Return the text of a file; None if there is none."""

    def size(self, table: str, name: str) -> int | None:
        """Return the length of a file in bytes; None if there is none."""

    def write(self, table: str, name: str, content: bytes) -> str:
        """Write a file, so that readers see all of it or nothing; return where it is."""

    def use(self, table: str, names: Collection[str], min_age_s: float) -> bool:
        """Make sure that files are there, and stay; return False if one is missing.

        Args:
            table: Name of the table's folder.
            names: Names of the files.
            min_age_s: How old they must be before anybody removes them.
        """

    def tables(self) -> list[str]:
        """Return the names of folders that may be those of tables."""

    def clean(self, table: str, names: Collection[str], min_age_s: float) -> int:
        """Remove files that nobody needs, unless they are younger; return how many."""

    def remove(self, table: str, min_age_s: float) -> None:
        """Remove the folder of a table that is no more, if this installation has made it.

        Args:
            table: Name of the table's folder.
            min_age_s: It stays if anything in it is younger.
        """


class TableFiles(Protocol):
    """What tables have themselves: the metadata of Iceberg's, footers, and deletion vectors. Blocking."""

    def own_metadata(
        self, definition: TableDefinition, properties: Mapping[str, str], *, all_snapshots: bool
    ) -> OwnMetadata:
        """Return what readers get of a table's current metadata file.

        Args:
            definition: An Iceberg table.
            properties: Properties that replace those for writers.
            all_snapshots: Whether to name all snapshots, not only those of branches and tags.

        Raises:
            InventoryError: It cannot be read, or names a file outside the allowed locations.
            LocationNotAllowedError: The table lies outside the allowed prefixes.
        """

    def planned_snapshot(
        self, definition: TableDefinition, snapshot_id: int | None
    ) -> PlannedSnapshot:
        """Return a snapshot that a table's current metadata file names.

        Args:
            definition: An Iceberg table.
            snapshot_id: The snapshot; None for the current one.

        Raises:
            InventoryError: The metadata cannot be read, or names no such snapshot.
            LocationNotAllowedError: The table lies outside the allowed prefixes.
        """

    def planned_files(
        self, definition: TableDefinition, manifests: Sequence[PlannedManifest]
    ) -> list[pa.Table]:
        """Return the files of some manifests, as `iceberg.manifests` reads them for plans.

        Args:
            definition: An Iceberg table.
            manifests: Manifests of a snapshot of it, all of data files or all of delete files.

        Raises:
            InventoryError: One cannot be read, or names a file outside the allowed locations.
            LocationNotAllowedError: The table lies outside the allowed prefixes.
        """

    def with_layouts(self, definition: TableDefinition, files: pa.Table) -> pa.Table:
        """Return files with the layouts and the numbers of rows that their footers state.

        Args:
            definition: A table of Parquet files.
            files: Some of its files, with the columns `path`, `size_bytes`, `row_count` and `layout`.

        Raises:
            InventoryError: A footer cannot be read, or a file is not the one given.
            LocationNotAllowedError: The table lies outside the allowed prefixes.
        """

    def vectors(self, definition: TableDefinition, deletes: pa.Array) -> list[bytes]:
        """Return deletion vectors as they are stored, with their lengths and checksums.

        Args:
            definition: A Delta table.
            deletes: n of its vectors, as in inventories.

        Raises:
            InventoryError: A vector cannot be read, or is damaged.
            LocationNotAllowedError: The table lies outside the allowed prefixes.
        """


class PlanLog(Protocol):
    """The history of plans."""

    async def add(self, plan: PastPlan) -> None:
        """Add a plan; its number is not used."""
