"""Publish an inventory that was taken elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_service.usecases.errors import TableChangedError, TableNotRefreshedError
from windrow_service.usecases.ports import (
    Inventories,
    Once,
    Runner,
    SnapshotStore,
    StoredTable,
    TableStore,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishInventory:
    """Make an inventory that a caller sends the table's current snapshot."""

    tables: TableStore
    snapshots: SnapshotStore
    inventories: Inventories
    runner: Runner

    async def __call__(
        self, name: str, published: bytes, if_match: str | None, once: Once | None = None
    ) -> StoredTable:
        """Return the table with its new snapshot; nothing is published unless every row can be accepted.

        Args:
            name: The table.
            published: The whole inventory, as an Arrow IPC stream.
            if_match: The version that the table must be at.
            once: The caller's key.

        Raises:
            TableNotFoundError: No table has this name.
            TableChangedError: The table is not at version `if_match`, or was changed meanwhile.
            windrow_service.inventory.errors.InventoryError: The inventory cannot be accepted.
        """
        table = await self.tables.get(name)
        if if_match not in (None, "*", table.version):
            raise TableChangedError(name, str(if_match), table.version)
        try:
            table, previous = await self.snapshots.get(name, None)
        except TableNotRefreshedError:
            previous = None
        bodies = await self.snapshots.bodies(name, previous, previous.manifests) if previous else []
        accepted = await self.runner.run(
            lambda: self.inventories.accept(table.info.definition, previous, bodies, published)
        )
        return await self.snapshots.publish(table, accepted, None, once)
