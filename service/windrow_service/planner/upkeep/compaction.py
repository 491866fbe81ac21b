"""Which partitions are worth compacting: those whose small files make reads needlessly expensive.

Only files under half of the target are rewritten. With three quarters, as in Iceberg, compaction
never ends if the new files again fall slightly short of that (apache/iceberg#6669). The job makes as
many files as come nearest to the target, so two or more have 0.75 targets or more on average, and a
single file cannot become fewer: so a second run has nothing to do. That holds too if only smaller
files are rewritten. Files over the target stay, because plans cut them. How many files there will be
is estimated as for an exact write plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from windrow_core.sizes import SMALL
from windrow_service.planner.folders import FolderBuckets
from windrow_service.planner.policy import (
    DEFAULT_OPEN_FILE_COST,
    MIB,
    READ_BYTES_PER_SECOND,
    TASK_COST,
)
from windrow_service.planner.splits import NO_BUCKET, Bools, Ints, stable_order
from windrow_service.planner.upkeep.value_folders import Homes, has_layout
from windrow_service.planner.writes.exact import files_per_key
from windrow_service.planner.writes.keys import Floats, WriteKeys
from windrow_service.planner.writes.row_sizes import row_sizes

# Why a partition is left alone, or `chosen`; the first that applies counts.
Verdict: TypeAlias = Literal[
    "deletes",
    "layout",
    "no_bucket",
    "large_files",
    "few_files",
    "small_ratio",
    "no_rows",
    "not_worth",
    "chosen",
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
CHOSEN = VERDICTS.index("chosen")

# How fast one core rewrites what it has read (encodes it, reads it again, and compares), in
# bytes of small files per second; and the extra time for each new file. Both are measured by
# benchmarks/compaction_cost.py, on tables of five columns.
REWRITE_BYTES_PER_SECOND = 60 * MIB
NEW_FILE_SECONDS = 0.04


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPolicy:
    """When compaction is worth it, and the bounds of one candidate.

    Attributes:
        target_bytes: Target size of a file.
        min_files: A partition with fewer small files is left alone.
        min_small_ratio: A partition is also left alone if a smaller share of its files is small.
        worth_reads: The rewrite must pay off within this many reads.
        max_bytes: Most bytes of one candidate, at least one target.
        max_files: Most files of one candidate.
        below_bytes: Only files smaller than this are small; half of the target at most, and by
            default.
    """

    target_bytes: int
    min_files: int
    min_small_ratio: float
    worth_reads: int
    max_bytes: int
    max_files: int
    below_bytes: int | None = None

    @property
    def small_bytes(self) -> int:
        """Files smaller than this are small."""
        largest = most_small_bytes(self.target_bytes)
        return largest if self.below_bytes is None else min(self.below_bytes, largest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Partitions, or buckets of them, as columns in path order; large ones are in pieces.

    Attributes:
        folders: Folder of each, relative to the table's location; its home if several folders have
            its values.
        bucket: Bucket of each, or NO_BUCKET.
        all_files: Number of files in the partition or bucket.
        files: Number of small files to be rewritten, and of files in other folders of the same
            values.
        size_bytes: Bytes of the small files.
        rows: Rows of the small files.
        becomes_bytes: Expected bytes of their rows in fewer files.
        becomes: Number of files that an exact write plan makes of them.
        cost_seconds: Time of one core to rewrite them.
        gain_seconds: Time of one core that each later read of them saves.
        pays: Whether rewriting it pays off, regardless of `min_files`.
        verdict: Positions in `VERDICTS`.
        file_rows: Rows of the small files in the inventory, one candidate after another.
        offsets: Where the `file_rows` of each candidate begin, followed by their number.
    """

    folders: pa.StringArray
    bucket: Ints
    all_files: Ints
    files: Ints
    size_bytes: Ints
    rows: Ints
    becomes_bytes: Ints
    becomes: Ints
    cost_seconds: Floats
    gain_seconds: Floats
    pays: Bools
    verdict: Ints
    file_rows: Ints
    offsets: Ints

    def __len__(self) -> int:
        return len(self.bucket)

    @property
    def chosen(self) -> Ints:
        """Positions of the candidates that are worth compacting."""
        return np.flatnonzero(self.verdict == CHOSEN)

    def rows_of(self, at: Ints) -> Ints:
        """Return the file rows of the given candidates, one candidate after another."""
        counts = self.files[at]
        begins = np.repeat(self.offsets[at] - np.cumsum(counts) + counts, counts)
        return self.file_rows[begins + np.arange(len(begins))]


def most_small_bytes(target_bytes: int) -> int:
    """Return the size below which files are small in any case."""
    return int(np.ceil(target_bytes * SMALL))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFiles:
    """The n files of a table by their m partitions, or buckets of them, for any policy.

    Attributes:
        sizes: Bytes of each file.
        row_counts: Rows of each file.
        is_away: Whether a file lies outside the home of its partition's values.
        by_part: Positions of the files, one partition after another.
        folders: The partitions.
        all_files: Number of files of each partition.
        row_bytes: Bytes that a row in each partition takes.
        has_deletes: Whether delete files apply to files in it.
        is_unfit: Whether its rows, written by Spark, would not return to its folder.
        is_unplaced: Whether it lacks the bucket that it should have.
    """

    sizes: Ints
    row_counts: Ints
    is_away: Bools
    by_part: Ints
    folders: FolderBuckets
    all_files: Ints
    row_bytes: Floats
    has_deletes: Bools
    is_unfit: Bools
    is_unplaced: Bools

    @classmethod
    def of(
        cls,
        files: pa.Table,
        partition: pa.Schema,
        *,
        joins: bool = True,
        columns: int,
        is_bucketed: bool,
    ) -> PartitionFiles:
        """Sort files by their partitions.

        Args:
            files: n files, with the schema of `columns.inventory_schema`.
            partition: The partition columns.
            joins: Whether folders of the same values are one partition: files outside its home are
                rewritten, whatever that costs.
            columns: Number of columns in the files.
            is_bucketed: Whether each file should belong to a bucket.

        Complexity: O(n log n); O(n) memory.
        """
        homes = Homes.of(files, partition) if joins else None
        folders = FolderBuckets.of(files, None if homes is None else homes.of_folder)
        part, count = folders.of_file, len(folders)
        return cls(
            sizes=files["size_bytes"].to_numpy(),
            row_counts=files["row_count"].to_numpy(),
            is_away=homes.away(files) if homes is not None else np.zeros(len(files), np.bool_),
            by_part=stable_order(part),
            folders=folders,
            all_files=np.bincount(part, minlength=count),
            row_bytes=_row_bytes(files, folders, columns),
            has_deletes=np.bincount(part, files["delete_count"].to_numpy(), count) > 0,
            is_unfit=~has_layout(folders.names, partition)[folders.folder],
            is_unplaced=(folders.bucket == NO_BUCKET) & is_bucketed,
        )

    def candidates(self, policy: CompactionPolicy) -> Candidates:
        """Judge every partition, and every bucket of it, that has files.

        Complexity: O(n).
        """
        part, count = self.folders.of_file, len(self.folders)
        small = self.by_part[((self.sizes < policy.small_bytes) | self.is_away)[self.by_part]]
        owner, offsets = _pieces(part[small], self.sizes[small], count, policy)

        def sums(values: Ints | Bools) -> Ints:
            return np.diff(np.concatenate(([0], np.cumsum(values[small])))[offsets])

        counts, size_bytes = np.diff(offsets), sums(self.sizes)
        rows, joined = sums(self.row_counts), sums(self.is_away) > 0
        becomes_bytes = np.minimum(size_bytes, np.ceil(rows * self.row_bytes[owner]))
        becomes_bytes = becomes_bytes.astype(np.int64)
        weight = becomes_bytes / policy.target_bytes
        becomes = files_per_key(WriteKeys(rows=rows, weight=weight, estimated=True)) * (rows > 0)
        gain = (counts - becomes) * DEFAULT_OPEN_FILE_COST / READ_BYTES_PER_SECOND
        cost = rewrite_seconds(counts, size_bytes, becomes, policy.target_bytes)
        ratio = np.bincount(part[small], minlength=count) / np.maximum(self.all_files, 1)
        too_expensive = cost > gain * policy.worth_reads
        few = ratio[owner] < policy.min_small_ratio
        pays = (joined | ~(few | too_expensive)) & (rows > 0)
        refused = [
            self.has_deletes[owner],
            self.is_unfit[owner],
            self.is_unplaced[owner],
            counts == 0,
            (counts < policy.min_files) & ~joined,
            few & ~joined,
            rows == 0,
            too_expensive & ~joined,
        ]
        return Candidates(
            folders=self.folders.names.take(pa.array(self.folders.folder[owner])),
            bucket=self.folders.bucket[owner],
            all_files=self.all_files[owner],
            files=counts,
            size_bytes=size_bytes,
            rows=rows,
            becomes_bytes=becomes_bytes,
            becomes=becomes,
            cost_seconds=cost,
            gain_seconds=np.maximum(gain, 0.0),
            pays=pays,
            verdict=np.select(refused, list(range(CHOSEN)), CHOSEN),
            file_rows=small,
            offsets=offsets,
        )


def find_candidates(
    files: pa.Table,
    partition: pa.Schema,
    *,
    joins: bool = True,
    columns: int,
    is_bucketed: bool,
    policy: CompactionPolicy,
) -> Candidates:
    """Judge every partition of some files under one policy; see `PartitionFiles.of`."""
    by_partition = PartitionFiles.of(
        files, partition, joins=joins, columns=columns, is_bucketed=is_bucketed
    )
    return by_partition.candidates(policy)


def page_of(
    candidates: Candidates, offset: int, *, max_candidates: int, policy: CompactionPolicy
) -> Ints:
    """Return a batch of chosen candidates, from number `offset` on; at least one.

    Args:
        candidates: All candidates.
        offset: Number of chosen candidates to skip.
        max_candidates: Most candidates of a batch.
        policy: Its bounds on bytes and files also apply to a batch.
    """
    rest = candidates.chosen[offset : offset + max_candidates]
    fits = (np.cumsum(candidates.size_bytes[rest]) <= policy.max_bytes) & (
        np.cumsum(candidates.files[rest]) <= policy.max_files
    )
    return rest[: max(int(fits.sum()), 1)]


def _pieces(part: Ints, sizes: Ints, count: int, policy: CompactionPolicy) -> tuple[Ints, Ints]:
    """Cut partitions that exceed the bounds of one candidate.

    Args:
        part: Partition of each small file, ascending.
        sizes: Bytes of the same files.
        count: Number of partitions.
        policy: The bounds.

    Returns:
        The partition of each piece (every partition has one or more), and where the files of
        each piece begin, followed by their number.
    """
    starts = np.searchsorted(part, np.arange(count + 1))
    total = np.concatenate(([0], np.cumsum(sizes)))
    begins, ends = starts[:-1], starts[1:]
    too_much = (ends - begins > policy.max_files) | (total[ends] - total[begins] > policy.max_bytes)
    cuts: list[int] = []
    for at in np.flatnonzero(too_much).tolist():
        begin, end = int(begins[at]), int(ends[at])
        while True:
            fitting = int(np.searchsorted(total, total[begin] + policy.max_bytes, "right")) - 1
            begin = max(min(fitting, begin + policy.max_files), begin + 1)
            if begin >= end:
                break
            cuts.append(begin)
    pieces = np.ones(count, np.int64)
    np.add.at(pieces, part[cuts], 1)
    offsets = np.sort(np.concatenate((begins, cuts, [len(part)]))).astype(np.int64)
    return np.repeat(np.arange(count), pieces), offsets


def _row_bytes(files: pa.Table, folders: FolderBuckets, columns: int) -> Floats:
    """Return the bytes that a row in each folder or bucket takes, as estimated for write plans."""
    sizes = row_sizes(
        files["size_bytes"].to_numpy(),
        files["row_count"].to_numpy(),
        columns,
        group=folders.of_file,
        groups=len(folders),
    )
    return np.zeros(len(folders)) if sizes is None else sizes.of_group


def rewrite_seconds(files: Ints, size_bytes: Ints, becomes: Ints, target_bytes: int) -> Floats:
    """Return the time of one core to rewrite small files of n partitions.

    Args:
        files: Number of small files of each partition.
        size_bytes: Their bytes.
        becomes: Number of files that they become.
        target_bytes: Target size of a file.
    """
    # Small partitions share tasks.
    tasks = size_bytes / target_bytes
    reading = size_bytes + files * DEFAULT_OPEN_FILE_COST + tasks * TASK_COST
    writing = size_bytes / REWRITE_BYTES_PER_SECOND + becomes * NEW_FILE_SECONDS
    return np.asarray(reading / READ_BYTES_PER_SECOND + writing)
