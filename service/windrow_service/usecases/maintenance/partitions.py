"""The partitions of a table that could be rewritten, as columns, remembered by snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cachetools import LRUCache

from windrow_core.models import EffectivePolicy, Filter
from windrow_service.filters.reading import read_filter
from windrow_service.planner.caching.cacheable import MarkingRule
from windrow_service.planner.folders import numbered_folders
from windrow_service.planner.splits import Bools, Ints
from windrow_service.planner.upkeep.compaction import (
    Candidates,
    CompactionPolicy,
    PartitionFiles,
    most_small_bytes,
)
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
_LATEST = np.iinfo(np.int64).max
_ANY_READS = 10**9
_MAX_BYTES = 8 * 2**30
# Rewrites that are remembered, of all tables together.
_MAX_REWRITES = 2_000_000
# Each is of files below a quarter of the size of the one before.
_MAX_ALTERNATIVES = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SmallFiles:
    """The r ways to rewrite small files of partitions, as columns; a partition may have several.

    Attributes:
        partition: Position of the partition of each.
        small_bytes: Files of the partition below this size are rewritten.
        files: Number of these files.
        becomes: Number of files that they become.
        size_bytes: Their bytes.
        cost_seconds: Time of one core to rewrite them.
        gain_seconds: Time of one core that each later read saves.
        oldest_ns: When the oldest of them was written, in nanoseconds since 1970.
    """

    partition: Ints
    small_bytes: Ints
    files: Ints
    becomes: Ints
    size_bytes: Ints
    cost_seconds: Floats
    gain_seconds: Floats
    oldest_ns: Ints

    def __len__(self) -> int:
        return len(self.partition)

    @property
    def excess_files(self) -> int:
        """By how many the files would become fewer, if all small ones were rewritten."""
        most = np.zeros(int(self.partition.max(initial=-1)) + 1, np.int64)
        np.maximum.at(most, self.partition, self.files - self.becomes)
        return int(most.sum())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SmallParts:
    """The k partitions of a snapshot with files to merge, as columns.

    Attributes:
        folders: Folder of each, relative to the table's location.
        small: The ways to rewrite their small files.
        all_bytes: Bytes of all files.
        first_ns: When its oldest file was written, in nanoseconds since 1970.
        last_ns: When its newest file was written.
        gap_days: Mean time between its writes; infinite if all its files were written together.
        is_excluded: Whether the policy's filter leaves it alone.
        examples: A file of each, with its partition values and no statistics.
        types: Types of the table's columns by name.
    """

    folders: pa.StringArray
    small: SmallFiles
    all_bytes: Ints
    first_ns: Ints
    last_ns: Ints
    gap_days: Floats
    is_excluded: Bools
    examples: pa.Table
    types: Mapping[str, pa.DataType]

    def __len__(self) -> int:
        return len(self.folders)


class PartitionFinder:
    """Finds the partitions that could be rewritten; a table that has not changed costs nothing."""

    def __init__(self, snapshots: SnapshotStore, manifests: ManifestReader) -> None:
        self._snapshots = snapshots
        self._manifests = manifests
        self._parts: LRUCache[tuple[object, ...], SmallParts] = LRUCache(
            _MAX_REWRITES, getsizeof=lambda parts: 1 + len(parts.small)
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
            if self._parts.getsizeof(parts) <= self._parts.maxsize:
                self._parts[key] = parts
        return parts


def _small_parts(
    table: StoredTable, scan: SnapshotScan, files: pa.Table, policy: EffectivePolicy
) -> SmallParts:
    snapshot, definition = scan.snapshot, table.info.definition
    by_partition = PartitionFiles.of(
        files,
        snapshot.partition_schema,
        joins=table.info.partition_count is None,
        columns=len(snapshot.data_schema),
        is_bucketed=definition.bucket_spec is not None,
    )
    bounds = size_bounds(policy.target_file_size)
    candidates = [by_partition.candidates(_compaction(policy, size)) for size in bounds.tolist()]
    names = pa.chunked_array([one.folders.take(pa.array(one.chosen)) for one in candidates])
    codes = names.combine_chunks().dictionary_encode()
    folders, count = codes.dictionary, len(codes.dictionary)
    of_file = _owners(files, folders)
    rows = np.flatnonzero(of_file >= 0)
    part = of_file[rows]
    times: Ints = files["mtime_ns"].to_numpy()[rows]
    sizes: Ints = files["size_bytes"].to_numpy()[rows]
    first, last = _extremes(part, times, count)
    moments = np.unique(np.stack((part, times // _MINUTE_NS)), axis=1)[0]
    writes = np.bincount(moments, minlength=count)
    gaps = np.full(count, np.inf)
    np.divide((last - first) / _DAY_NS, writes - 1, out=gaps, where=writes > 1)
    examples = np.zeros(count, np.int64)
    examples[part] = rows
    owner = codes.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    oldest = _oldest(part, times, sizes, bounds, count)
    # All small files of some partitions may lie in other folders of the same values.
    oldest = np.where(oldest == _LATEST, first, oldest)
    return SmallParts(
        folders=folders,
        small=_small_files(candidates, owner, bounds, oldest),
        all_bytes=np.bincount(part, sizes, count).astype(np.int64),
        first_ns=first,
        last_ns=last,
        gap_days=gaps,
        is_excluded=_excluded(files, part, rows, count, snapshot, policy),
        examples=_without_statistics(files, examples),
        types=types_of(snapshot),
    )


def size_bounds(target_bytes: int) -> Ints:
    """Return the sizes below which files may be rewritten, the largest first."""
    largest = most_small_bytes(target_bytes)
    bounds = largest // 4 ** np.arange(_MAX_ALTERNATIVES)
    return bounds[bounds > 0]


def _compaction(policy: EffectivePolicy, below_bytes: int) -> CompactionPolicy:
    return CompactionPolicy(
        target_bytes=policy.target_file_size,
        min_files=policy.min_files,
        min_small_ratio=0.0,
        # What it is worth depends on how often it is really read.
        worth_reads=_ANY_READS,
        max_bytes=max(_MAX_BYTES, policy.target_file_size),
        max_files=MAX_BATCH_FILES,
        below_bytes=below_bytes,
    )


def _small_files(
    candidates: Sequence[Candidates], owner: Ints, bounds: Ints, oldest: Ints
) -> SmallFiles:
    """Return what can be rewritten below each bound, without what is the same below a larger one.

    Args:
        candidates: What is worth rewriting below each of b bounds.
        owner: The partition of each chosen candidate, of k, one bound after another.
        bounds: The bounds, the largest first.
        oldest: When the oldest file of each partition (column) below a bound (row) was written.
    """
    level = np.repeat(np.arange(len(candidates)), [len(one.chosen) for one in candidates])
    cell = level * oldest.shape[1] + owner

    def sums(name: str) -> Floats:
        values = np.concatenate([getattr(one, name)[one.chosen] for one in candidates])
        totals = np.bincount(cell, values, oldest.size).reshape(oldest.shape)
        return np.asarray(totals, np.float64)

    def counts(name: str) -> Ints:
        return sums(name)[at, partition].astype(np.int64)

    files = sums("files")
    is_other = files > 0
    is_other[1:] &= files[1:] != files[:-1]
    partition, at = np.nonzero(is_other.T)
    return SmallFiles(
        partition=partition,
        small_bytes=bounds[at],
        files=counts("files"),
        becomes=counts("becomes"),
        size_bytes=counts("size_bytes"),
        cost_seconds=sums("cost_seconds")[at, partition],
        gain_seconds=sums("gain_seconds")[at, partition],
        oldest_ns=oldest[at, partition],
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


def _extremes(part: Ints, times: Ints, count: int) -> tuple[Ints, Ints]:
    first, last = np.full(count, _LATEST), np.zeros(count, np.int64)
    np.minimum.at(first, part, times)
    np.maximum.at(last, part, times)
    return first, last


def _oldest(part: Ints, times: Ints, sizes: Ints, bounds: Ints, count: int) -> Ints:
    """Return when the oldest file of each partition (column) below each bound (row) was written."""
    oldest = np.full((len(bounds), count), _LATEST)
    # The smallest bound that a file is below.
    level = len(bounds) - 1 - np.searchsorted(bounds[::-1], sizes, "right")
    is_small = level >= 0
    np.minimum.at(oldest, (level[is_small], part[is_small]), times[is_small])
    return np.minimum.accumulate(oldest[::-1], axis=0)[::-1]


def _excluded(
    files: pa.Table, part: Ints, rows: Ints, count: int, snapshot: Snapshot, policy: EffectivePolicy
) -> Bools:
    if policy.filter is None:
        return np.zeros(count, np.bool_)
    marks = policy_rule(snapshot, policy.filter).marks(files)[rows]
    return np.asarray(np.bincount(part[marks], minlength=count) == 0, np.bool_)


def policy_rule(snapshot: Snapshot, filter: Filter) -> MarkingRule:
    """Return the rule that marks the partitions to which a policy applies.

    Raises:
        InvalidFilterError: The filter does not fit the table's columns.
        InvalidPolicyError: It names other than partition columns.
    """
    expression = read_filter(filter, types_of(snapshot))
    others = columns_beside_partitions(expression, snapshot)
    if others:
        raise InvalidPolicyError(
            f"{', '.join(map(repr, others))} cannot choose what to maintain, since partitions are "
            "rewritten and dropped whole: use partition columns, which are "
            f"{', '.join(snapshot.partition_schema.names) or 'missing in this table'}"
        )
    return MarkingRule(expression)
