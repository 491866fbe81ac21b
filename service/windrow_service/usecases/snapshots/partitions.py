"""The partitions of a snapshot: their values, numbers and figures, and plans of some of them."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from cachetools import LRUCache

from windrow_core.models.partitions import REGISTRATION
from windrow_service.inventory.manifests.encoding import Manifest
from windrow_service.planner.pruning.bounds import Bools
from windrow_service.planner.pruning.partitions import (
    IN_PARTITIONS,
    TUPLE_SOURCES,
    Numbering,
    PartitionTuples,
)
from windrow_service.usecases.ports import Checkpoint, Runner
from windrow_service.usecases.snapshots.errors import InvalidPartitionsError
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore
from windrow_service.usecases.snapshots.scans import ManifestReader

# A column of an inventory: the number of the file's partition.
PARTITION = "partition_number"
_Cached: TypeAlias = PartitionTuples | Numbering


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChoice:
    """The partitions that a plan names: a `Choice` of scans.

    Attributes:
        snapshot: Their snapshot.
        numbering: Its partitions.
        flags: For each partition, whether the plan names it.
        tuples_of: Returns the tuples of a manifest, given all its rows.
    """

    snapshot: Snapshot
    numbering: Numbering
    flags: Bools
    tuples_of: Callable[[Manifest, pa.Table], PartitionTuples]

    def manifests(self) -> Bools:
        """See `Choice.manifests`."""
        return self.numbering.manifests(self.flags)

    def marked(self, at: int, files: pa.Table) -> pa.Table:
        """See `Choice.marked`."""
        code = self.tuples_of(self.snapshot.manifests[at], files).code
        column = pa.array(self.numbering.files(at, code, self.flags))
        return files.append_column(IN_PARTITIONS, column)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllPartitions:
    """All partitions: a `Choice` of scans whose files have the numbers of theirs as `PARTITION`.

    Attributes:
        snapshot: Their snapshot.
        numbering: Its partitions.
        tuples_of: Returns the tuples of a manifest, given all its rows.
    """

    snapshot: Snapshot
    numbering: Numbering
    tuples_of: Callable[[Manifest, pa.Table], PartitionTuples]

    def manifests(self) -> Bools:
        """See `Choice.manifests`."""
        return np.ones(len(self.snapshot.manifests), np.bool_)

    def marked(self, at: int, files: pa.Table) -> pa.Table:
        """See `Choice.marked`."""
        code = self.tuples_of(self.snapshot.manifests[at], files).code
        return files.append_column(PARTITION, pa.array(self.numbering.numbers[at][code]))


class PartitionReader:
    """Numbers the partitions of snapshots, and caches what it has read, which never changes.

    Args:
        manifests: Reads manifests.
        runner: Numbers partitions in threads.
        max_bytes: Most bytes to cache; the least recently used are dropped first.
    """

    def __init__(self, manifests: ManifestReader, runner: Runner, max_bytes: int) -> None:
        self._manifests = manifests
        self._runner = runner
        self._lock = threading.Lock()
        self._cache: LRUCache[bytes, _Cached] = LRUCache(
            max_bytes, getsizeof=lambda one: one.memory_bytes
        )

    async def numbering(
        self, table: str, snapshot: Snapshot, check: Checkpoint = lambda: None
    ) -> Numbering:
        """Return the partitions of a snapshot.

        Args:
            table: Name of the table.
            snapshot: A snapshot of the table.
            check: Called between manifests.

        Raises:
            SnapshotNotFoundError: The snapshot was dropped meanwhile.
            BusyError: Too much is waiting already.
        """
        key = _key_of_snapshot(snapshot)
        numbering = self._cached(key)
        if isinstance(numbering, Numbering):
            return numbering
        tuples = {one: self._cached(_key_of(one)) for one in snapshot.manifests}
        missing = [manifest for manifest, one in tuples.items() if one is None]
        tuples |= zip(
            missing,
            await self._manifests.read_columns(
                table, snapshot, missing, TUPLE_SOURCES, self._tuples_of, check
            ),
            strict=True,
        )
        parts = [one for one in tuples.values() if isinstance(one, PartitionTuples)]
        numbering = await self._runner.run(lambda: Numbering.of(parts, snapshot.partition_schema))
        self._keep(key, numbering)
        return numbering

    async def choose(
        self,
        table: str,
        snapshot: Snapshot,
        ranges: Sequence[tuple[int, int]],
        check: Checkpoint = lambda: None,
    ) -> PartitionChoice | None:
        """Return the partitions in ranges of their numbers; None if they are all.

        Args:
            table: Name of the table.
            snapshot: A snapshot of the table.
            ranges: Each `(first, end)`, ascending, without overlaps.
            check: Called between manifests.

        Raises:
            InvalidPartitionsError: The snapshot has fewer partitions.
            SnapshotNotFoundError: The snapshot was dropped meanwhile.
            BusyError: Too much is waiting already.
        """
        numbering = await self.numbering(table, snapshot, check)
        if ranges and ranges[-1][1] > len(numbering):
            snapshot_id = snapshot.info.snapshot_id
            raise InvalidPartitionsError(table, snapshot_id, ranges[-1][1] - 1, len(numbering))
        flags = numbering.flags(ranges)
        if flags.all() and len(flags):
            return None
        return PartitionChoice(
            snapshot=snapshot,
            numbering=numbering,
            flags=flags,
            tuples_of=self._tuples_of,
        )

    async def all_of(self, table: str, snapshot: Snapshot) -> AllPartitions:
        """Return all partitions of a snapshot; see `numbering`."""
        numbering = await self.numbering(table, snapshot)
        return AllPartitions(snapshot=snapshot, numbering=numbering, tuples_of=self._tuples_of)

    def _tuples_of(self, manifest: Manifest, files: pa.Table) -> PartitionTuples:
        key = _key_of(manifest)
        tuples = self._cached(key)
        if not isinstance(tuples, PartitionTuples):
            tuples = PartitionTuples.of(files, manifest.removed)
            self._keep(key, tuples)
        return tuples

    def _cached(self, key: bytes) -> _Cached | None:
        with self._lock:
            return self._cache.get(key)

    def _keep(self, key: bytes, one: _Cached) -> None:
        if one.memory_bytes <= self._cache.maxsize:
            with self._lock:
                self._cache[key] = one


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowPartitionValues:
    """Show the partitions of a snapshot."""

    snapshots: SnapshotStore
    partitions: PartitionReader

    async def __call__(self, name: str, snapshot_id: int) -> pa.Table:
        """Return the partition columns, then `FIGURES`; the number of a partition is its row.

        The schema's metadata has the `REGISTRATION` of the table.

        Raises:
            TableNotFoundError: No table has this name.
            SnapshotNotFoundError: The table does not have this snapshot.
            BusyError: Too much is waiting already.
        """
        table, snapshot = await self.snapshots.get(name, snapshot_id)
        numbering = await self.partitions.numbering(name, snapshot)
        partitions = numbering.partitions
        names_rows = table.info.definition.kind.reading.names_rows
        if names_rows and snapshot.info.valid_write_ids is not None:
            # Files may hold rows that readers must not see.
            at = partitions.num_columns - 1
            field = partitions.schema.field(at)
            partitions = partitions.set_column(at, field, pa.nulls(len(partitions), field.type))
        return partitions.replace_schema_metadata({REGISTRATION: str(table.table_id)})


def _key_of(manifest: Manifest) -> bytes:
    return hashlib.sha256(manifest.manifest_id.encode() + manifest.removed.tobytes()).digest()


def _key_of_snapshot(snapshot: Snapshot) -> bytes:
    digest = hashlib.sha256(str(snapshot.partition_schema).encode())
    for manifest in snapshot.manifests:
        digest.update(_key_of(manifest))
    return digest.digest()
