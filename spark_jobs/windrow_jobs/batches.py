"""One batch of a compaction: reading its files, rewriting them, and comparing the rows."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Observation, SparkSession

from windrow.calls.coordinator import Coordinator
from windrow.calls.plans import SplitPlan
from windrow.commits import TableWrite
from windrow.files.entries import unescape
from windrow.models import (
    Column,
    CompactionPlan,
    KeyCounts,
    WritePlan,
    WritePlanRequest,
    WriteReport,
)
from windrow.models.writes import MAX_SALT_COLUMNS
from windrow.spark.placement import default_parallelism
from windrow.spark.reading.reader import read_plan
from windrow.spark.writing import stage
from windrow.spark.writing.checking import Seconds, staged_files, staged_sums, write_report
from windrow.spark.writing.counting import RowSums, is_hashable, row_sums, sum_rows, sums_of
from windrow_jobs.errors import RowsDifferError

_NULL = "__HIVE_DEFAULT_PARTITION__"
# Files are planned again if their size differs from the expected one by more than this factor.
_MUCH = 1.1
# Spark would write timestamps as INT96, and days before 1582 in the old calendar or not at all.
_AS_THEY_ARE = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
# Limits the attempts to plan again: each new number of files changes the size once more, as large
# files compress better.
_ATTEMPTS = 3

# A folder, and one of its buckets if the table is bucketed.
Partition: TypeAlias = tuple[str, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Partitions to rewrite together, as parallel columns.

    Attributes:
        columns: The partition columns, all as text, so that rows are written to folders that are
            spelled as their partitions, even if Spark would spell a value differently.
        partitions: Folders with their buckets.
        rows: Number of rows of each partition.
        size_bytes: Expected size of the rows of each partition after rewriting.
        files: Number of small files of each partition.
        paths: Paths of the files to rewrite, one partition after another. Some may lie in other
            folders than the partition's, if these have the same values.
        old_bytes: Size of these files.
        is_bucketed: Whether the table is bucketed.
    """

    columns: list[Column]
    partitions: list[Partition]
    rows: list[int]
    size_bytes: list[int]
    files: list[int]
    paths: pa.Array
    old_bytes: int
    is_bucketed: bool

    @property
    def names(self) -> list[str]:
        """Names of the partition columns."""
        return [column.name for column in self.columns]

    @classmethod
    def of(
        cls, page: CompactionPlan, without: Collection[Partition], *, is_bucketed: bool
    ) -> Batch | None:
        """Return the batch of a plan's page without some partitions; None if nothing is left."""
        found = page.partitions
        partitions = list(zip(found.folders, found.buckets, strict=True))
        kept = np.array([one not in without for one in partitions], np.bool_)
        if not kept.any():
            return None
        at = np.flatnonzero(kept).tolist()
        of_kept = pa.array(np.repeat(kept, found.files))
        return cls(
            columns=[Column(name=one.name, type="string") for one in page.partition_columns],
            partitions=[partitions[one] for one in at],
            rows=[found.rows[one] for one in at],
            size_bytes=[found.becomes_bytes[one] for one in at],
            files=[found.files[one] for one in at],
            paths=pa.array(found.paths or [], pa.string()).filter(of_kept),
            old_bytes=sum(found.size_bytes[one] for one in at),
            is_bucketed=is_bucketed,
        )

    def keys(self, scale: float) -> KeyCounts:
        """Return the keys for the write plan, with the expected bytes multiplied by `scale`."""
        values = [_values(folder, len(self.columns)) for folder, _ in self.partitions]
        return KeyCounts.model_validate(
            {
                "columns": self.columns or None,
                "values": [list(column) for column in zip(*values, strict=True)],
                "buckets": [bucket for _, bucket in self.partitions] if self.is_bucketed else None,
                "rows": self.rows,
                "bytes": [max(round(size * scale), 1) for size in self.size_bytes],
            }
        )

    def partitions_in(self, folder: str) -> list[Partition]:
        """Return the partitions with files in a folder."""
        found = pc.equal(_folders_of(self.paths), folder).to_numpy(zero_copy_only=False)
        of_file = np.repeat(np.arange(len(self.partitions)), self.files)
        return [self.partitions[at] for at in np.unique(of_file[found]).tolist()]

    def replaced(self, plan: SplitPlan) -> pa.Table:
        """Return path, size and time of change of the files to rewrite, as planned."""
        splits = plan.groups["splits"].combine_chunks().flatten()
        files = pa.Table.from_batches([pa.RecordBatch.from_struct_array(splits)])
        first = pc.and_(pc.equal(files["start"], 0), pc.is_in(files["path"], self.paths))
        return files.filter(first).select(["path", "size_bytes", "mtime_ns"])

    def read(self, spark: SparkSession, plan: SplitPlan) -> DataFrame:
        """Return the rows of the batch's files, with partition values as in folder names.

        Args:
            spark: A classic session.
            plan: A plan of the batch's snapshot.
        """
        info = plan.info.model_copy(
            update={
                "columns": [
                    Column(name=column.name, type="string") if column.name in self.names else column
                    for column in plan.info.columns
                ],
                "partition_columns": self.columns,
                # Rows are sorted when they are written.
                "sort_columns": [],
                # Delete files belong to other partitions, which are left alone.
                "summary": plan.summary.model_copy(update={"delete_files": 0}),
            }
        )
        return read_plan(spark, info, self._groups(plan.groups))

    def _groups(self, groups: pa.Table) -> pa.Table:
        """Return the groups with only the batch's splits."""
        lists = groups["splits"].combine_chunks()
        splits = lists.flatten()
        kept = pc.is_in(splits.field("path"), self.paths)
        parents = pc.list_parent_indices(lists).filter(kept)
        counts = np.bincount(parents.to_numpy(), minlength=len(groups))
        ends = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
        splits = splits.filter(kept)
        fields = {field.name: splits.field(field.name) for field in splits.type}
        fields["partition"] = self._texts(splits.field("path"))
        splits = pa.StructArray.from_arrays(list(fields.values()), names=list(fields))
        at = groups.schema.get_field_index("splits")
        of_batch = groups.set_column(at, "splits", pa.ListArray.from_arrays(ends, splits))
        # These files are removed soon, so they should not be cached.
        return of_batch.filter(pa.array(counts > 0)).drop_columns(["cached_on"])

    def _texts(self, paths: pa.Array) -> pa.StructArray:
        of_file = pa.array(np.repeat(np.arange(len(self.partitions)), self.files))
        at_partition = of_file.take(pc.index_in(paths, self.paths))
        values = [_values(folder, len(self.columns)) for folder, _ in self.partitions]
        columns = [
            pa.array([value[at] for value in values], pa.string()).take(at_partition)
            for at in range(len(self.columns))
        ]
        if not columns:
            return pa.array([{}] * len(paths), pa.struct([]))
        return pa.StructArray.from_arrays(columns, names=self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A rewritten batch before it is moved into the table.

    Attributes:
        report: Report of the write.
        scale: Actual size of the rows, as a multiple of the expected size.
    """

    report: WriteReport
    scale: float


def rewrite(
    spark: SparkSession,
    client: Coordinator,
    batch: Batch,
    read: SplitPlan,
    write: TableWrite,
    target_bytes: int,
    scale: float,
) -> Made:
    """Rewrite the rows of a batch into the staging folder, and check that no row changed.

    Args:
        spark: A classic session.
        client: Client of the coordinator that plans the write.
        batch: The batch to rewrite.
        read: A plan of the batch's snapshot.
        write: The write, which owns the staging folder.
        target_bytes: Target size of a file.
        scale: Scale of earlier batches.

    Raises:
        RowsDifferError: The written rows differ from the read ones.
        ProblemError: The coordinator refuses.
        PySparkException: A task failed.
    """
    began_s = time.monotonic()
    rows = batch.read(spark, read)
    planned = _planned(client, batch, write, target_bytes, scale, rows)
    attempt = 1
    while True:
        staged = _stage(batch, rows, planned, write)
        scale = max(staged.size_bytes, 1) / max(sum(batch.size_bytes), 1)
        off = staged.size_bytes / _planned_bytes(planned)
        better = _planned(client, batch, write, target_bytes, scale, rows)
        if better.files == planned.files or 1 / _MUCH < off < _MUCH or attempt == _ATTEMPTS:
            break
        planned, attempt = better, attempt + 1
        _empty(write.folder)
    written_s = time.monotonic()
    found = staged_sums(rows, batch.names, write.folder)
    # Rows of a map task that ran twice are observed twice; a separate pass counts them once.
    if found != staged.expected and found != (expected := sum_rows(rows, batch.names)):
        raise RowsDifferError(write.table.name, str(expected), str(found))
    seconds = Seconds(0.0, written_s - began_s, time.monotonic() - written_s)
    report = write_report(rows, planned, batch.columns, staged.files, found, seconds)
    # The keys are left out: parts of partitions say nothing about the next write.
    return Made(report=report.model_copy(update={"keys": None}), scale=scale)


@dataclass(frozen=True, slots=True)
class _Staged:
    """Files in the staging folder, and the expected sums of their rows."""

    files: pa.Table
    expected: RowSums

    @property
    def size_bytes(self) -> int:
        return int(pc.sum(self.files["size_bytes"]).as_py() or 0)


def _stage(batch: Batch, rows: DataFrame, planned: WritePlan, write: TableWrite) -> _Staged:
    observation = Observation()
    observed = rows.observe(observation, *sums_of(rows, batch.names))
    with _values_as_they_are(rows.sparkSession):
        stage(observed, planned, write.table, write.folder)
    return _Staged(staged_files(write.folder), row_sums(observation.get))


@contextmanager
def _values_as_they_are(spark: SparkSession) -> Iterator[None]:
    """Write dates and timestamps in the calendar and type of Parquet, whatever the session says."""
    before = {key: spark.conf.get(key) for key in _AS_THEY_ARE}
    try:
        for key, value in _AS_THEY_ARE.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, was in before.items():
            spark.conf.set(key, str(was))


def _planned(
    client: Coordinator,
    batch: Batch,
    write: TableWrite,
    target_bytes: int,
    scale: float,
    rows: DataFrame,
) -> WritePlan:
    # Values in files are the same at every read, including floating-point numbers.
    salts = [
        field.name
        for field in rows.schema
        if field.name not in batch.names and is_hashable(field.dataType)
    ]
    return client.write_plan(
        WritePlanRequest(
            table=write.table.name,
            scheme="exact",
            target_file_size=target_bytes,
            keys=batch.keys(scale),
            salt_columns=salts[:MAX_SALT_COLUMNS],
            parallelism=default_parallelism(rows.sparkSession),
            max_files=10_000_000,
        )
    )


def _planned_bytes(planned: WritePlan) -> float:
    assert planned.row_size is not None
    assert planned.rows is not None
    return max(planned.row_size.bytes_per_row * planned.rows, 1)


def _empty(folder: str) -> None:
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def _folders_of(paths: pa.Array) -> pa.Array:
    """Return the folder of each path."""
    return pc.replace_substring_regex(paths, "/?[^/]*$", "")


def _values(folder: str, levels: int) -> tuple[str | None, ...]:
    """Return the partition values in a folder's name as text; null for Hive's default."""
    parts = folder.split("/") if levels else []
    texts = [part.partition("=")[2] for part in parts]
    return tuple(None if text == _NULL else unescape(text) for text in texts)
