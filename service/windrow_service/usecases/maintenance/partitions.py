"""The partitions of a table that could be rewritten, as columns, remembered by snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cachetools import LRUCache

from windrow_core.models import EffectivePolicy
from windrow_service.filters.reading import read_filter
from windrow_service.planner.caching.cacheable import MarkingRule
from windrow_service.planner.folders import numbered_folders
from windrow_service.planner.splits import Bools, Ints
from windrow_service.planner.upkeep.compaction import CompactionPolicy, find_candidates
from windrow_service.planner.writes.keys import Floats
from windrow_service.usecases.maintenance.errors import InvalidPolicyError
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore
from windrow_service.usecases.snapshots.scans import (
    ManifestReader,
    SnapshotScan,
    columns_beside_partitions,
    types_of,
)
from windrow_service.usecases.tables.ports import StoredTable
from windrow_service.usecases.upkeep.compaction import MAX_BATCH_FILES, require_compactable

_MINUTE_NS = 60 * 10**9
_DAY_NS = 86_400 * 10**9
_ANY_READS = 10**9
_MAX_BYTES = 8 * 2**30
# Partitions that are remembered, of all tables together.
_MAX_PARTITIONS = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SmallParts:
    """The k partitions of a snapshot with files to merge, as columns.

    Attributes:
        folders: Folder of each, relative to the table's location.
        files: Number of small files.
        becomes: Number of files that they become.
        size_bytes: Bytes of the small files.
        all_bytes: Bytes of all files.
        cost_seconds: Time of one core to rewrite the small files.
        gain_seconds: Time of one core that each later read saves.
        first_ns: When its oldest file was written, in nanoseconds since 1970.
        last_ns: When its newest file was written.
        small_ns: When its oldest small file was written.
        gap_days: Mean time between its writes; infinite if all its files were written together.
        is_excluded: Whether the policy's filter leaves it alone.
        examples: A file of each, with its partition values and no statistics.
        types: Types of the table's columns by name.
    """

    folders: pa.StringArray
    files: Ints
    becomes: Ints
    size_bytes: Ints
    all_bytes: Ints
    cost_seconds: Floats
    gain_seconds: Floats
    first_ns: Ints
    last_ns: Ints
    small_ns: Ints
    gap_days: Floats
    is_excluded: Bools
    examples: pa.Table
    types: Mapping[str, pa.DataType]

    def __len__(self) -> int:
        return len(self.files)


class PartitionFinder:
    """Finds the partitions that could be rewritten; a table that has not changed costs nothing."""

    def __init__(self, snapshots: SnapshotStore, manifests: ManifestReader) -> None:
        self._snapshots = snapshots
        self._manifests = manifests
        self._parts: LRUCache[tuple[object, ...], SmallParts] = LRUCache(
            _MAX_PARTITIONS, getsizeof=lambda parts: 1 + len(parts)
        )

    async def find(self, table: StoredTable, policy: EffectivePolicy) -> SmallParts:
        """Return the partitions of a table's current snapshot.

        Raises:
            TransactionalTableError: Hive compacts the table.
            LoggedTableError: The table's own engine compacts it.
            FormatNotCompactableError: The table's files are not Parquet.
            InvalidFilterError: The policy's filter does not fit the table's columns.
            InvalidPolicyError: The policy's filter names other than partition columns.
            TableNotFoundError: The table was deleted meanwhile.
            SnapshotNotFoundError: The snapshot was dropped meanwhile.
            BusyError: Too much is waiting already.
        """
        info = table.info
        require_compactable(info)
        assert info.current_snapshot is not None
        key = (
            table.table_id,
            info.current_snapshot.snapshot_id,
            policy.target_file_size,
            policy.min_files,
            repr(policy.filter),
        )
        parts = self._parts.get(key)
        if parts is None:
            _, snapshot = await self._snapshots.get(info.name, info.current_snapshot.snapshot_id)
            parts = await self._manifests.scan(
                info.name,
                snapshot,
                lambda: None,
                lambda scan, files: _small_parts(table, scan, files, policy),
            )
            self._parts[key] = parts
        return parts


def _small_parts(
    table: StoredTable, scan: SnapshotScan, files: pa.Table, policy: EffectivePolicy
) -> SmallParts:
    snapshot, definition = scan.snapshot, table.info.definition
    candidates = find_candidates(
        files,
        snapshot.partition_schema,
        joins=table.info.partition_count is None,
        columns=len(snapshot.data_schema),
        is_bucketed=definition.bucket_spec is not None,
        policy=CompactionPolicy(
            target_bytes=policy.target_file_size,
            min_files=policy.min_files,
            min_small_ratio=0.0,
            # What it is worth depends on how often it is really read.
            worth_reads=_ANY_READS,
            max_bytes=max(_MAX_BYTES, policy.target_file_size),
            max_files=MAX_BATCH_FILES,
        ),
    )
    at = candidates.chosen
    codes = candidates.folders.take(pa.array(at)).dictionary_encode()
    folders, count = codes.dictionary, len(codes.dictionary)
    owner = codes.indices.to_numpy(zero_copy_only=False).astype(np.int64)

    def sums(values: Ints | Floats) -> Floats:
        return np.asarray(np.bincount(owner, values[at], count), np.float64)

    of_file = _owners(files, folders)
    rows = np.flatnonzero(of_file >= 0)
    part = of_file[rows]
    times: Ints = files["mtime_ns"].to_numpy()[rows]
    sizes: Ints = files["size_bytes"].to_numpy()[rows]
    first, last, small = _extremes(part, times, sizes < policy.target_file_size // 2, count)
    moments = np.unique(np.stack((part, times // _MINUTE_NS)), axis=1)[0]
    writes = np.bincount(moments, minlength=count)
    gaps = np.full(count, np.inf)
    np.divide((last - first) / _DAY_NS, writes - 1, out=gaps, where=writes > 1)
    examples = np.zeros(count, np.int64)
    examples[part] = rows
    return SmallParts(
        folders=folders,
        files=sums(candidates.files).astype(np.int64),
        becomes=sums(candidates.becomes).astype(np.int64),
        size_bytes=sums(candidates.size_bytes).astype(np.int64),
        all_bytes=np.bincount(part, sizes, count).astype(np.int64),
        cost_seconds=sums(candidates.cost_seconds),
        gain_seconds=sums(candidates.gain_seconds),
        first_ns=first,
        last_ns=last,
        small_ns=small,
        gap_days=gaps,
        is_excluded=_excluded(files, part, rows, count, snapshot, policy),
        examples=_without_statistics(files, examples),
        types=types_of(snapshot),
    )


def _owners(files: pa.Table, folders: pa.StringArray) -> Ints:
    """Return the position of each file's folder, or -1 for files of other folders."""
    codes = numbered_folders(files)
    position = pc.fill_null(pc.index_in(codes.dictionary, value_set=folders), -1)
    positions = position.to_numpy(zero_copy_only=False).astype(np.int64)
    return np.asarray(positions[codes.indices.to_numpy(zero_copy_only=False)], np.int64)


def _without_statistics(files: pa.Table, rows: Ints) -> pa.Table:
    values = files["partition"].combine_chunks().take(pa.array(rows))
    nothing = pa.array([{}] * len(rows), pa.struct([]))
    return pa.table({"partition": values, "stats": nothing})


def _extremes(part: Ints, times: Ints, is_small: Bools, count: int) -> tuple[Ints, Ints, Ints]:
    latest = np.iinfo(np.int64).max
    first, last, small = np.full(count, latest), np.zeros(count, np.int64), np.full(count, latest)
    np.minimum.at(first, part, times)
    np.maximum.at(last, part, times)
    np.minimum.at(small, part[is_small], times[is_small])
    # All small files of some partitions may lie in other folders of the same values.
    return first, last, np.where(small == latest, first, small)


def _excluded(
    files: pa.Table, part: Ints, rows: Ints, count: int, snapshot: Snapshot, policy: EffectivePolicy
) -> Bools:
    if policy.filter is None:
        return np.zeros(count, np.bool_)
    expression = read_filter(policy.filter, types_of(snapshot))
    others = columns_beside_partitions(expression, snapshot)
    if others:
        raise InvalidPolicyError(
            f"{', '.join(map(repr, others))} cannot choose what to maintain, since partitions are "
            "rewritten whole: use partition columns, which are "
            f"{', '.join(snapshot.partition_schema.names) or 'missing in this table'}"
        )
    marks = MarkingRule(expression).marks(files)[rows]
    return np.asarray(np.bincount(part[marks], minlength=count) == 0, np.bool_)
