"""Replace and show the list of partitions that a catalog gave for a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from windrow_core.models import PartitionList, PartitionListChange, TablePartition
from windrow_service.inventory.listing.partition_lists import (
    ListedPartitions,
    outside,
    read_partitions,
)
from windrow_service.inventory.published.arrow_streams import read_stream
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import NO_VERSION, Once, Page, Runner, is_expected
from windrow_service.usecases.tables.columns import schema_of
from windrow_service.usecases.tables.errors import InvalidTableError, TableChangedError
from windrow_service.usecases.tables.ports import (
    Locations,
    PartitionListStore,
    StoredTable,
    TableStore,
)
from windrow_service.usecases.tables.register import refuse_shared

# Other callers may change the table meanwhile, each with another snapshot or definition.
_ATTEMPTS = 8
# Most characters of a page, and partitions that are looked at together.
_MAX_CHARACTERS = 4 * 2**20
_AT_A_TIME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPartitions:
    """Replace a table's list of partitions; it takes at most `max_decoded_bytes` of memory."""

    tables: TableStore
    lists: PartitionListStore
    locations: Locations
    runner: Runner
    max_decoded_bytes: int

    async def __call__(
        self,
        name: str,
        content: bytes | PartitionList | None,
        if_match: str | None,
        readable: Names,
        once: Once | None = None,
    ) -> tuple[StoredTable, PartitionListChange]:
        """Replace a table's list, which the next refresh uses; the same list changes nothing.

        Args:
            name: The table.
            content: An Arrow IPC stream, or a body in JSON; None to remove the list.
            if_match: The version that the table must be at.
            readable: The tables that the caller may read.
            once: The caller's key.

        Raises:
            TableNotFoundError: No table has this name.
            TableChangedError: The table is not at version `if_match`, or keeps changing.
            InvalidTableError: The table's definition does not name its partition columns.
            LocationNotAllowedError: A partition lies outside the allowed prefixes.
            LocationSharedError: A partition may have files of tables that the caller may not read.
            WriteInProgressError: A write is moving files in.
            windrow_service.inventory.errors.InventoryError: The list is not valid for the table.
        """
        rows = None if content is None else await self.runner.run(partial(self._rows, content))
        attempt = 1
        while True:
            table, old_body = await self.lists.get(name)
            is_listed = table.info.partition_count is not None
            by_none = if_match == NO_VERSION and not is_listed
            if not by_none and not is_expected(table.version, if_match):
                raise TableChangedError(name, str(if_match), table.version)
            body, change = await self.runner.run(partial(self._checked, table, rows, old_body))
            if body == old_body:
                await self.lists.confirm(table, change, once)
                return table, change
            if body is not None and not readable.every:
                folders = await self.runner.run(partial(_folders_outside, body))
                await refuse_shared(folders, self.tables, self.runner, readable)
            try:
                return await self.lists.put(table, body, change, once), change
            except TableChangedError:
                if if_match not in (None, "*", NO_VERSION) or attempt == _ATTEMPTS:
                    raise
                attempt += 1

    def _rows(self, content: bytes | PartitionList) -> pa.Table:
        if isinstance(content, PartitionList):
            return _table_of(content)
        return read_stream(content, self.max_decoded_bytes)

    def _checked(
        self, table: StoredTable, rows: pa.Table | None, old_body: bytes | None
    ) -> tuple[bytes | None, PartitionListChange]:
        if rows is None:
            return None, _change(None, old_body)
        definition = table.info.definition
        types = schema_of(definition.partition_columns)
        if not types:
            raise InvalidTableError(
                f"table {table.info.name!r} names no partition columns, so partitions have no "
                "values: register it with partition_columns first"
            )
        partition_list = read_partitions(rows, definition.location, types, self.locations.allowed)
        return partition_list.encoded(), _change(partition_list, old_body)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowPartitions:
    """Show the list of a table, a page at a time."""

    lists: PartitionListStore
    runner: Runner

    async def __call__(self, name: str) -> tuple[StoredTable, ListedPartitions | None]:
        """Return a table and its list; None if it has no list.

        Raises:
            TableNotFoundError: No table has this name.
        """
        table, body = await self.lists.get(name)
        if body is None:
            return table, None
        return table, await self.runner.run(lambda: ListedPartitions.decoded(body))


def _folders_outside(body: bytes) -> list[str]:
    return outside(ListedPartitions.decoded(body))


def page_of(
    table: StoredTable, partition_list: ListedPartitions, start: int, count: int
) -> Page[TablePartition]:
    """Return a page of a table's list, of at most `count` partitions; fewer if they are long."""
    partitions: list[TablePartition] = []
    characters = 0
    while len(partitions) < count:
        some = min(_AT_A_TIME, count - len(partitions))
        rows = partition_list.page(table.info.definition.location, start + len(partitions), some)
        for values, location in rows:
            characters += len(location) + sum(map(len, values))
            if partitions and characters > _MAX_CHARACTERS:
                return Page(partitions, more=True)
            partitions.append(TablePartition(values=values, location=location))
        if len(rows) < some:
            break
    return Page(partitions, more=start + len(partitions) < len(partition_list))


def _table_of(body: PartitionList) -> pa.Table:
    values = pa.array([one.values for one in body.partitions], pa.list_(pa.string()))
    locations = pa.array([one.location for one in body.partitions], pa.string())
    return pa.table({"values": values, "location": locations})


def _change(partition_list: ListedPartitions | None, old_body: bytes | None) -> PartitionListChange:
    now = {} if partition_list is None else partition_list.by_values()
    before = {} if old_body is None else ListedPartitions.decoded(old_body).by_values()
    return PartitionListChange(
        partition_count=None if partition_list is None else len(partition_list),
        added=len(now.keys() - before.keys()),
        removed=len(before.keys() - now.keys()),
        moved=sum(before.get(values, folder) != folder for values, folder in now.items()),
    )
