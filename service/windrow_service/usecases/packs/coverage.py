"""The packs of tables, as plans and descriptions of snapshots use them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cachetools import LRUCache

from windrow_core.files.arrays import flat
from windrow_core.models import TableInfo
from windrow_core.models.packs import Pack
from windrow_service.inventory.listing.relisting import FileStamps, split_state
from windrow_service.inventory.listing.walking import SAME, stamps_of
from windrow_service.planner.caching.file_keys import file_keys
from windrow_service.planner.packs import Coverage, PackSources
from windrow_service.planner.splits import Bools
from windrow_service.usecases.packs.doubts import PackDoubts
from windrow_service.usecases.packs.ports import PackStore
from windrow_service.usecases.ports import Runner
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore
from windrow_service.usecases.tables.ports import StoredTable

# Bytes of the sources of packs that are kept decoded.
_MOST_BYTES = 128 * 2**20
# What tells a file from a replacement of equal path, size and time: null where nothing does.
MARK = ("inode", "changed_ns")


def definition_digest(table: StoredTable, partition: pa.Schema) -> str:
    """Return a digest of what the partition values in packs depend on.

    Args:
        table: The table.
        partition: Its partition columns.
    """
    columns = [[one.name, str(one.type)] for one in partition]
    text = json.dumps([table.table_id, table.info.definition.location, columns])
    return hashlib.sha256(text.encode()).hexdigest()


def why_unused(table: TableInfo) -> str | None:
    """Return why packs stand for none of a table's files, whatever is in them; None if they may."""
    if table.partition_count is not None:
        return (
            "a catalog lists its partitions, and may give a folder other values: packs have the values "
            "of folders' names"
        )
    if table.definition.trust_folder_times:
        return (
            "its refreshes go by the times of folders, which do not show files that were replaced: "
            "register it without `trust_folder_times`"
        )
    return None


@dataclass(frozen=True, slots=True)
class UsablePacks:
    """The packs that may stand for files of a snapshot.

    Attributes:
        packs: The packs by their ids.
        coverage: The files that they hold.
        key: A text that is the same for the same packs, and the same files that they may stand for.
    """

    packs: Mapping[str, Pack]
    coverage: Coverage
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePacks:
    """Finds the packs that may stand for a table's files, and remembers what is in them.

    Attributes:
        store: The store of packs.
        snapshots: The store of snapshots, which has the last listing of a table.
        runner: Decodes sources and listings in threads.
        doubts: Packs that readers could not read.
    """

    store: PackStore
    snapshots: SnapshotStore
    runner: Runner
    doubts: PackDoubts = field(default_factory=PackDoubts)
    _usable: LRUCache[object, UsablePacks] = field(
        default_factory=lambda: LRUCache(_MOST_BYTES, getsizeof=_size)
    )

    async def __call__(self, table: StoredTable, snapshot: Snapshot) -> UsablePacks | None:
        """Return the packs for the current snapshot of a table; None if there are none.

        An older snapshot has none: it may have files whose rows are to be forgotten.
        """
        current = table.info.current_snapshot
        if current is None or current.snapshot_id != snapshot.info.snapshot_id:
            return None
        if why_unused(table.info) is not None:
            return None
        definition = definition_digest(table, snapshot.partition_schema)
        packs = await self.store.published(table.table_id, definition)
        if not packs:
            return None
        # Each refresh looks at all files, and may find one that was replaced in every other way alike.
        key = (*(pack.pack_id for pack in packs), current.snapshot_id, table.checked_at)
        usable = self._usable.get(key)
        if usable is None:
            bodies = await self.store.sources([pack.pack_id for pack in packs])
            listing, _ = await self.snapshots.listing(table)
            # One may have been withdrawn meanwhile.
            left = {pack.pack_id: pack for pack in packs if pack.pack_id in bodies}
            if not left:
                return None
            usable = await self.runner.run(lambda: _usable(left, bodies, listing))
            if _size(usable) <= self._usable.maxsize:
                self._usable[key] = usable
        return usable


def _usable(
    packs: Mapping[str, Pack], bodies: Mapping[str, bytes], listing: bytes | None
) -> UsablePacks:
    sources = [PackSources(one, pa.ipc.open_stream(bodies[one]).read_all()) for one in packs]
    _, stamps = split_state(listing)
    are_suspect = np.concatenate([_suspects(one.rows, stamps) for one in sources])
    digest = hashlib.sha256(" ".join(packs).encode() + np.packbits(are_suspect).tobytes())
    return UsablePacks(packs, Coverage(sources, are_suspect), digest.hexdigest()[:32])


def _suspects(sources: pa.Table, stamps: FileStamps) -> Bools:
    """Return which sources may be other files of equal path, size and time than when packed."""
    now = stamps.of(file_keys(sources))
    inodes, changed_ns = (flat(sources[name]) for name in MARK)
    own = pa.array(
        stamps_of(
            np.asarray(pc.fill_null(inodes, 0), np.uint64),
            np.asarray(pc.fill_null(changed_ns, 0), np.int64),
        ),
        mask=np.asarray(inodes.is_null()),
    )
    # Where stamps tell nothing, as on object stores, there are none, or all are the same.
    tells = pc.fill_null(pc.not_equal(now, pa.scalar(SAME, pa.uint64())), False)
    is_same = pc.fill_null(pc.equal(now, own), False)
    suspects: Bools = np.asarray(pc.and_(tells, pc.invert(is_same)))
    return suspects


def _size(usable: UsablePacks) -> int:
    return sum(int(one.rows.nbytes) for one in usable.coverage.packs)
