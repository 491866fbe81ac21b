"""One batch of a compaction: handing its files to tasks that merge them, and taking the outcome."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import windrow_core
from windrow_core.files.schemes import is_remote
from windrow_core.files.status import FileStatus
from windrow_core.models import CompactionPlan, TableDefinition, WriteReport
from windrow_core.sizes import SMALL
from windrow_spark.interpreter import collected
from windrow_spark.writing.staging import move_staged, remove_staged
from windrow_tables import executor, merging
from windrow_tables.commits import TableWrite
from windrow_tables.commits.locations import writable_location
from windrow_tables.merging.task import Job, Outcome, Piece, merge_pieces

# Code that runs in tasks is sent along with them, so executors need only NumPy and pyarrow.
for module in (windrow_core, executor, merging):
    cloudpickle.register_pickle_by_value(module)

# Several short tasks per slot keep all slots busy until the end, and show progress.
_TASKS_PER_SLOT = 8
# A piece that becomes fewer files leaves a larger rest; one that becomes more keeps a task longer.
_FILES_PER_PIECE = 4
# Opening a file costs about as much as merging this many bytes.
_OPEN_FILE_BYTES = 256 * 2**10
_ATTEMPTS = "_attempts"

# A folder, and one of its buckets if the table is bucketed.
Partition: TypeAlias = tuple[str, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Partitions to rewrite together, as parallel columns.

    Attributes:
        partitions: Folders with their buckets.
        becomes_bytes: Expected size of the rows of each partition after rewriting.
        files: Number of small files of each partition.
        paths: Paths of the files to rewrite, one partition after another. Some may lie in other
            folders than the partition's, if these have the same values.
        old_bytes: Size of these files.
    """

    partitions: Sequence[Partition]
    becomes_bytes: Sequence[int]
    files: Sequence[int]
    paths: Sequence[str]
    old_bytes: int

    @classmethod
    def of(cls, page: CompactionPlan, without: Collection[Partition]) -> Batch | None:
        """Return the batch of a plan's page without some partitions; None if nothing is left."""
        candidates = page.partitions
        partitions = list(zip(candidates.folders, candidates.buckets, strict=True))
        stays = np.array([one not in without for one in partitions], np.bool_)
        if not stays.any():
            return None
        at = np.flatnonzero(stays).tolist()
        of_file = pa.array(np.repeat(stays, candidates.files))
        return cls(
            partitions=[partitions[one] for one in at],
            becomes_bytes=[candidates.becomes_bytes[one] for one in at],
            files=[candidates.files[one] for one in at],
            paths=pa.array(candidates.paths or [], pa.string()).filter(of_file).to_pylist(),
            old_bytes=sum(candidates.size_bytes[one] for one in at),
        )

    def folders(self) -> dict[Partition, set[str]]:
        """Return the folders of each partition: its own, and others that its files lie in."""
        owners = np.repeat(np.arange(len(self.partitions)), self.files).tolist()
        folders = {one: {one[0]} for one in self.partitions}
        for at, path in zip(owners, self.paths, strict=True):
            folders[self.partitions[at]].add(path.rpartition("/")[0])
        return folders

    def partitions_in(self, folder: str) -> list[Partition]:
        """Return the partitions with files in a folder."""
        owners = np.repeat(np.arange(len(self.partitions)), self.files)
        there = [path.rpartition("/")[0] == folder for path in self.paths]
        return [self.partitions[at] for at in np.unique(owners[there]).tolist()]

    def pieces(self, piece_bytes: float) -> tuple[list[Piece], list[int]]:
        """Return pieces of about so many expected bytes, and the partition of each."""
        pieces: list[Piece] = []
        owners: list[int] = []
        begin = 0
        for at, ((folder, _), becomes, count) in enumerate(
            zip(self.partitions, self.becomes_bytes, self.files, strict=True)
        ):
            parts = min(max(int(becomes / piece_bytes), 1), count)
            cuts = [begin + count * part // parts for part in range(parts + 1)]
            for first, last in pairwise(cuts):
                owners.append(at)
                pieces.append((len(pieces), folder, self.paths[first:last]))
            begin += count
        return pieces, owners


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """The outcome of a batch, before anything is moved into the table.

    Attributes:
        report: Report of the write; without files if nothing could be merged.
        replaces: Path, size and time of change of the files that the new ones replace.
        partitions: The partitions with new files.
        left: Why partitions were left as they are, or some of their files.
        busy: Those of them that somebody writes to.
        vanished: Partitions with files that tasks did not see, and one of these files.
        scale: Size of the rows after merging, as a multiple of their size before.
        job_seconds: How long the driver waited for tasks.
        task_seconds: How long the tasks worked, together.
    """

    report: WriteReport
    replaces: pa.Table
    partitions: Collection[Partition]
    left: dict[Partition, str]
    busy: Collection[Partition]
    vanished: dict[Partition, str]
    scale: float
    job_seconds: float
    task_seconds: float


def rewrite(
    spark: SparkSession,
    batch: Batch,
    write: TableWrite,
    target_bytes: int,
    scale: float,
    max_footer_bytes: int,
    quiet_seconds: float,
    own: Sequence[str],
) -> Rewritten:
    """Merge the files of a batch into the staging folder; tasks compare old and new files.

    Args:
        spark: A classic session.
        batch: The batch to rewrite.
        write: The write, which owns the staging folder.
        target_bytes: Target size of a file.
        scale: Scale of earlier batches.
        max_footer_bytes: Files with longer footers are left.
        quiet_seconds: Partitions that were written to within that time are left.
        own: Texts in the names of files of which that does not count as a write.
    """
    began_s = time.monotonic()
    location = writable_location(write.table)
    staging = f"{write.folder}/{_ATTEMPTS}"
    if not is_remote(location):
        os.mkdir(staging)
    job = Job(
        location,
        staging,
        _sort_of(write.table.definition),
        target_bytes,
        scale,
        max_footer_bytes,
        quiet_seconds,
        own,
    )
    pieces, owners = batch.pieces(_FILES_PER_PIECE * target_bytes / scale)
    job_began_s = time.monotonic()
    outcomes = _merged(spark, job, pieces, batch)
    job_seconds = time.monotonic() - job_began_s
    files = _move(batch, owners, outcomes, write)
    # On a local disk, a task that still runs cannot begin another file in it.
    remove_staged(write.folder, _ATTEMPTS)
    old_files = [file for one in outcomes for file in one.old_files]
    names = ("path", *FileStatus._fields)
    columns = zip(*old_files, strict=True) if old_files else [[]] * len(names)
    sizes = np.array([size for _, _, size in files], np.int64)
    old_bytes = sum(one.stored_bytes for one in outcomes)
    return Rewritten(
        report=WriteReport(
            scheme="exact",
            basis="size",
            target_file_bytes=target_bytes,
            tasks=len(pieces),
            rows=sum(rows for _, rows, _ in files),
            files=len(files),
            small_files=int(np.count_nonzero(sizes < target_bytes * SMALL)),
            bytes=int(sizes.sum()),
            largest_file_bytes=int(sizes.max(initial=0)),
            row_hash="",
            count_seconds=0.0,
            write_seconds=round(time.monotonic() - began_s, 3),
            check_seconds=0.0,
            commit_seconds=0.0,
        ),
        replaces=pa.table(
            {name: list(column) for name, column in zip(names, columns, strict=True)}
        ),
        partitions={batch.partitions[owners[one.piece]] for one in outcomes if one.new_files},
        left={batch.partitions[owners[one.piece]]: one.left for one in outcomes if one.left},
        busy={batch.partitions[owners[one.piece]] for one in outcomes if one.is_busy},
        vanished={
            batch.partitions[owners[one.piece]]: one.vanished[0] for one in outcomes if one.vanished
        },
        scale=float(sizes.sum()) / old_bytes if old_bytes else scale,
        job_seconds=job_seconds,
        task_seconds=sum(one.seconds for one in outcomes),
    )


def _merged(spark: SparkSession, job: Job, pieces: Sequence[Piece], batch: Batch) -> list[Outcome]:
    """Merge pieces in tasks of about equal work."""
    context = spark.sparkContext
    file_bytes = batch.old_bytes / len(batch.paths)
    work = np.cumsum([len(paths) * (file_bytes + _OPEN_FILE_BYTES) for _, _, paths in pieces])
    tasks = min(len(pieces), int(context.defaultParallelism) * _TASKS_PER_SLOT)
    task_of = np.minimum((work - work[0]) * tasks // work[-1], tasks - 1)
    shares = [
        [pieces[at] for at in np.flatnonzero(task_of == task).tolist()]
        for task in np.unique(task_of)
    ]
    merge = partial(merge_pieces, tuple(job))
    answers: list[list[Any]] = collected(context.parallelize(shares, len(shares)).map(merge))
    return [Outcome(*answer) for answers_of_task in answers for answer in answers_of_task]


def _move(
    batch: Batch,
    owners: Sequence[int],
    outcomes: Sequence[Outcome],
    write: TableWrite,
) -> list[tuple[str, int, int]]:
    """Move new files to the folders of their partitions, under names as Spark gives them."""
    job = uuid.UUID(write.write_id)
    files, moves = [], []
    for one in outcomes:
        folder, bucket = batch.partitions[owners[one.piece]]
        for number, (path, rows, size_bytes) in enumerate(one.new_files):
            part = f"part-{one.piece:05d}-{job}"
            rest = f"c{number:03d}.parquet"
            name = f"{part}-{rest}" if bucket is None else f"{part}_{bucket:05d}.{rest}"
            new_path = f"{folder}/{name}" if folder else name
            moves.append((f"{_ATTEMPTS}/{path}", new_path))
            files.append((new_path, rows, size_bytes))
    move_staged(write.folder, moves)
    return files


def _sort_of(definition: TableDefinition) -> list[tuple[str, bool, bool]]:
    """Return what files are sorted by: name, whether descending, whether nulls come first."""
    return [
        (
            one.name,
            one.descending,
            not one.descending if one.nulls_first is None else one.nulls_first,
        )
        for one in definition.sort_columns
    ]
