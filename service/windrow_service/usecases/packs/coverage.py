"""The packs of tables, as plans and descriptions of snapshots use them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa
from cachetools import LRUCache

from windrow_core.models.packs import Pack
from windrow_service.planner.packs import Coverage, PackSources
from windrow_service.usecases.packs.ports import PackStore
from windrow_service.usecases.ports import Runner
from windrow_service.usecases.snapshots.ports import Snapshot
from windrow_service.usecases.tables.ports import StoredTable

# Bytes of the sources of packs that are kept decoded.
_MOST_BYTES = 128 * 2**20
_Ids: TypeAlias = tuple[str, ...]


def definition_digest(table: StoredTable, partition: pa.Schema) -> str:
    """Return a digest of what the partition values in packs depend on.

    Args:
        table: The table.
        partition: Its partition columns.
    """
    columns = [[one.name, str(one.type)] for one in partition]
    text = json.dumps([table.table_id, table.info.definition.location, columns])
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class UsablePacks:
    """The packs that may stand for files of a snapshot.

    Attributes:
        packs: The packs by their ids.
        coverage: The files that they hold.
    """

    packs: Mapping[str, Pack]
    coverage: Coverage

    @property
    def key(self) -> str:
        """A text that is the same for the same packs."""
        return hashlib.sha256(" ".join(self.packs).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePacks:
    """Finds the packs that may stand for a table's files, and remembers what is in them.

    Attributes:
        store: The store of packs.
        runner: Decodes their sources in threads.
    """

    store: PackStore
    runner: Runner
    _coverages: LRUCache[_Ids, Coverage] = field(
        default_factory=lambda: LRUCache(_MOST_BYTES, getsizeof=_size)
    )

    async def __call__(self, table: StoredTable, snapshot: Snapshot) -> UsablePacks | None:
        """Return the packs for the current snapshot of a table; None if there are none.

        An older snapshot has none: it may have files whose rows are to be forgotten.
        """
        current = table.info.current_snapshot
        if current is None or current.snapshot_id != snapshot.info.snapshot_id:
            return None
        definition = definition_digest(table, snapshot.partition_schema)
        packs = await self.store.published(table.table_id, definition)
        if not packs:
            return None
        ids = tuple(pack.pack_id for pack in packs)
        coverage = self._coverages.get(ids)
        if coverage is None:
            bodies = await self.store.sources(ids)
            # One may have been withdrawn meanwhile.
            packs = [pack for pack in packs if pack.pack_id in bodies]
            ids = tuple(pack.pack_id for pack in packs)
            if not ids:
                return None
            coverage = await self.runner.run(lambda: coverage_of(ids, bodies))
            self._coverages[ids] = coverage
        return UsablePacks({pack.pack_id: pack for pack in packs}, coverage)


def coverage_of(pack_ids: Sequence[str], bodies: Mapping[str, bytes]) -> Coverage:
    """Return what packs hold.

    Args:
        pack_ids: The packs; a file that several hold belongs to the first.
        bodies: The sources of each, as Arrow streams.
    """
    return Coverage(
        [PackSources(one, pa.ipc.open_stream(bodies[one]).read_all()) for one in pack_ids]
    )


def _size(coverage: Coverage) -> int:
    return sum(int(one.rows.nbytes) for one in coverage.packs)
