"""Which writes made the files of a table, and what went wrong with them.

Spark names the files of one job `part-<task>-<job's UUID>…`, so the names tell which files belong
together and how many tasks the job had. Files with other names are separated by time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.rows import most_rows
from windrow_core.sizes import SMALL
from windrow_service.planner.folders import FolderBuckets
from windrow_service.planner.splits import Bools, Ints
from windrow_service.planner.writes.exact import files_per_key
from windrow_service.planner.writes.keys import WriteKeys

# What went wrong with a write; the first that applies, or `nothing`.
#
# * `explosion`: each task wrote files into several partitions, and each file has few rows.
# * `many_tasks`: one file per task, and far more tasks than the bytes need.
# * `one_file_per_key`: each partition has one file, whatever its size, and some are too large.
# * `large_files`: files that are too large for another reason.
# * `small_appends`: few bytes, in partitions that other writes add equally little to.
Trouble: TypeAlias = Literal[
    "explosion", "many_tasks", "one_file_per_key", "large_files", "small_appends", "nothing"
]
TROUBLES: tuple[Trouble, ...] = get_args(Trouble)
NOTHING = TROUBLES.index("nothing")

NO_TASKS = -1
UNKNOWN_ROWS = -1
# Files above this many targets are too large; the value is that of Iceberg's compaction.
LARGE = 1.8
# Too many files: at least twice the ideal count, and at least four more.
_TOO_MANY_TIMES, _TOO_MANY_MORE = 2, 4
# Too many small appends: at least five, and on average at least three into each partition.
_APPENDS, _APPENDS_EACH = 5, 3
# Files with other names belong to another write after a pause of this length.
_PAUSE_NS = 60 * 10**9
_SPARK_NAME = (
    r"(?:^|/)part-(?P<task>[0-9]{1,9})-"
    r"(?P<job>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})[^/]*$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """The w writes that made the files of an inventory, as columns, ordered by time.

    Attributes:
        job: The UUID of the Spark job; null if the names do not tell it.
        first_ns: When its first file was finished, in nanoseconds since 1970.
        last_ns: When its last file was finished.
        files: Number of its files that still exist.
        small_files: How many of them are under half of the target.
        size_bytes: Bytes of its files.
        rows: Rows of its files; UNKNOWN_ROWS if the rows of any file are unknown.
        largest_bytes: Size of its largest file.
        partitions: Number of partitions, or buckets of them, that it wrote into.
        tasks: Its greatest task number plus one; NO_TASKS if the names do not tell it.
        writers: Number of tasks that have files; NO_TASKS if the names do not tell it.
        ideal: Number of files that an exact write plan would have made.
        trouble: Positions in `TROUBLES`.
        of_file: The write of each file of the inventory.
    """

    job: pa.StringArray
    first_ns: Ints
    last_ns: Ints
    files: Ints
    small_files: Ints
    size_bytes: Ints
    rows: Ints
    largest_bytes: Ints
    partitions: Ints
    tasks: Ints
    writers: Ints
    ideal: Ints
    trouble: Ints
    of_file: Ints

    def __len__(self) -> int:
        return len(self.files)


def find_writes(files: pa.Table, folders: FolderBuckets, target_bytes: int) -> Writes:
    """Find the writes that made the files of an inventory.

    Args:
        files: n files, with the schema of `columns.inventory_schema`.
        folders: The folders and buckets of the files.
        target_bytes: Target size of a file.

    Complexity: O(n log n); O(n) memory.
    """
    sizes: Ints = files["size_bytes"].to_numpy()
    rows: Ints = most_rows(files)
    times: Ints = files["mtime_ns"].to_numpy()
    write, jobs, task = _writes(files["path"], times)
    count = len(jobs)
    first, last = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
    largest = np.zeros(count, np.int64)
    np.minimum.at(first, write, times)
    np.maximum.at(last, write, times)
    np.maximum.at(largest, write, sizes)
    tasks = np.full(count, NO_TASKS)
    np.maximum.at(tasks, write, task + 1)
    pairs, pair = _distinct(write, folders.of_file)
    ideal = np.bincount(pairs, _ideal(sizes, rows, pair, len(pairs), target_bytes), count)
    named = task >= 0
    counts = np.bincount(write, minlength=count)
    writes = Writes(
        job=jobs,
        first_ns=first,
        last_ns=last,
        files=counts,
        small_files=np.bincount(write[sizes < target_bytes * SMALL], minlength=count),
        size_bytes=np.bincount(write, sizes, count).astype(np.int64),
        rows=np.where(
            np.bincount(write[np.asarray(files["row_count"].is_null())], minlength=count) > 0,
            UNKNOWN_ROWS,
            np.bincount(write, rows, count).astype(np.int64),
        ),
        largest_bytes=largest,
        partitions=np.bincount(pairs, minlength=count),
        tasks=tasks,
        writers=np.where(
            tasks > NO_TASKS,
            np.bincount(_distinct(write[named], task[named])[0], minlength=count),
            NO_TASKS,
        ),
        ideal=ideal.astype(np.int64),
        trouble=np.full(count, NOTHING),
        of_file=write,
    )
    writes.trouble[:] = _troubles(writes, folders, target_bytes)
    return writes


def ideal_files(sizes: Ints, rows: Ints, folder: Ints, target_bytes: int) -> int:
    """Return how many files an exact write plan would make of all folders or buckets together.

    Args:
        sizes: Bytes of n files.
        rows: Rows of the same files.
        folder: Folder or bucket of the same files, numbered from 0.
        target_bytes: Target size of a file.
    """
    return int(_ideal(sizes, rows, folder, int(folder.max(initial=-1)) + 1, target_bytes).sum())


def _ideal(sizes: Ints, rows: Ints, folder: Ints, count: int, target_bytes: int) -> Ints:
    row_counts = np.bincount(folder, rows, count).astype(np.int64)
    weight = np.bincount(folder, sizes, count) / target_bytes
    return files_per_key(WriteKeys(rows=row_counts, weight=weight, estimated=True)) * (
        row_counts > 0
    )


def _writes(paths: pa.ChunkedArray, times: Ints) -> tuple[Ints, pa.StringArray, Ints]:
    """Return each file's write, each write's job (writes in time order), and each file's task."""
    names = pc.extract_regex(paths, _SPARK_NAME).combine_chunks()
    task = pc.fill_null(pc.cast(pc.struct_field(names, "task"), pa.int64()), NO_TASKS - 1)
    coded = pc.struct_field(names, "job").dictionary_encode()
    job = pc.fill_null(coded.indices, -1).to_numpy().astype(np.int64)
    unnamed = np.flatnonzero(job < 0)
    unnamed = unnamed[np.argsort(times[unnamed], kind="stable")]
    pauses = np.concatenate(([0], np.cumsum(np.diff(times[unnamed]) > _PAUSE_NS)))[: len(unnamed)]
    job[unnamed] = len(coded.dictionary) + pauses
    count = int(job.max(initial=-1)) + 1
    began = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(began, job, times)
    order = np.argsort(began, kind="stable")
    number = np.empty(count, np.int64)
    number[order] = np.arange(count)
    jobs = pa.concat_arrays(
        [coded.dictionary, pa.nulls(count - len(coded.dictionary), pa.string())]
    )
    return number[job], jobs.take(pa.array(order)), task.to_numpy()


def _distinct(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Return the left value of each distinct pair, and the number of the pair of each row."""
    width = int(right.max(initial=0)) + 1
    pairs, number = np.unique(left * width + right, return_inverse=True)
    return pairs // width, number.reshape(-1)


def _troubles(writes: Writes, folders: FolderBuckets, target_bytes: int) -> Ints:
    too_many = writes.files >= np.maximum(
        writes.ideal * _TOO_MANY_TIMES, writes.ideal + _TOO_MANY_MORE
    )
    spread = writes.files >= 2 * writes.writers
    many_each = writes.files >= 2 * writes.partitions
    too_large = writes.largest_bytes > LARGE * target_bytes
    one_each = (writes.files == writes.partitions) & (writes.partitions > 1)
    little = ~too_many & (writes.size_bytes < SMALL * target_bytes * writes.partitions)
    return np.select(
        [
            too_many & (writes.writers > 1) & spread & many_each & (writes.partitions > 1),
            too_many,
            too_large & one_each,
            too_large,
            little & _appended(writes, folders, little),
        ],
        list(range(NOTHING)),
        NOTHING,
    )


def _appended(writes: Writes, folders: FolderBuckets, little: Bools) -> bool:
    """Return whether small writes repeatedly add to the same partitions."""
    if np.count_nonzero(little) < _APPENDS:
        return False
    of_little = little[writes.of_file]
    owner, _ = _distinct(writes.of_file[of_little], folders.of_file[of_little])
    touched = len(np.unique(folders.of_file[of_little]))
    return len(owner) >= _APPENDS_EACH * touched
