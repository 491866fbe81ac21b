"""One streaming query that writes to a table: which of its batches are there, which still wait."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import BatchOrderError
from windrow_core.files.access import remedy_in, why_unwritable
from windrow_core.models import Column, StreamBatch, WriteReport
from windrow_spark.failures import cause_of, stated_cause
from windrow_spark.streaming.queries import Query
from windrow_spark.streaming.waiting import StagedRows, WaitingBatch, WaitingFolder
from windrow_spark.writing.schemas import fitted, partition_columns_of
from windrow_spark.writing.staging import STAGING_OPTIONS
from windrow_spark.writing.write import write
from windrow_tables.commits import recover
from windrow_tables.commits.errors import UnfitLocationError
from windrow_tables.commits.locations import local_location

_HOUR_S = 3600.0


class Stream:
    """The batches of a query: those in the table, and those that wait.

    Args:
        client: Client of the coordinator that knows the table.
        table: Name of the table.
        query: The query.
        options: Options of `client.write`.
    """

    def __init__(
        self, client: Coordinator, table: str, query: Query, options: Mapping[str, Any]
    ) -> None:
        self._client = client
        self._table = table
        self._query = query
        self._options = options
        self._folder = WaitingFolder(local_location(client.table(table)), query.query_id)
        self._is_current = False
        self._newest: int | None = None
        self._waiting: list[WaitingBatch] = []
        # Of the last write.
        self._write_s = 0.0
        # When writes were published, and the number of their files.
        self._writes: list[tuple[float, int]] = []

    @property
    def waiting(self) -> list[WaitingBatch]:
        """The waiting batches, in order."""
        return self._waiting

    @property
    def has_begun(self) -> bool:
        """Whether any batch is in the table, or waits."""
        return self._newest is not None or bool(self._waiting)

    @property
    def write_s(self) -> float:
        """Seconds that the last write of this run took; 0 before the first."""
        return self._write_s

    def recent_files(self) -> int:
        """Return the number of files that the stream has made within the last hour."""
        since_s = time.time() - _HOUR_S
        self._writes = [one for one in self._writes if one[0] > since_s]
        return sum(files for _, files in self._writes)

    def catch_up(self, *, again: bool = False) -> None:
        """Learn what is in the table, after finishing or undoing what dead drivers have left."""
        if self._is_current and not again:
            return
        recover(self._client, self._table)
        self._newest = next(
            (
                one.batch_id
                for one in self._client.streams(self._table)
                if one.query_id == self._query.query_id
            ),
            None,
        )
        self._folder.remove_up_to(self._newest)
        self._waiting = self._folder.batches()
        self._writes = self._recent_writes()
        self._is_current = True

    def has(self, batch_id: int) -> bool:
        """Return whether a batch is in the table, or waits."""
        newest = self._waiting[-1].batch_id if self._waiting else self._newest
        return newest is not None and batch_id <= newest

    def keep(self, batch_id: int, rows: DataFrame) -> None:
        """Make the rows of the next batch durable; they are computed once.

        Args:
            batch_id: The batch.
            rows: Its rows.

        Raises:
            UnfitRowsError: The columns do not fit the table.
            UnfitLocationError: The system refuses to write there, such as a disk that is full.
        """
        spark = rows.sparkSession
        table = self._client.table(self._table)
        fitting = fitted(rows, table, "append")
        schema = fitting.schema.json()
        if self._waiting and self._waiting[-1].schema != schema:
            # The batches before are written with the columns that they have.
            self.publish(spark)
            table = self._client.table(self._table)
            fitting = fitted(rows, table, "append")
        try:
            folder = self._folder.new_folder()
            try:
                self._stage(batch_id, fitting, folder, partition_columns_of(table))
            except BaseException:
                # What lies there takes room, and the batch will be written again.
                self._folder.remove(folder)
                raise
        except OSError as error:
            raise self._unfit(why_unwritable(error)) from error
        except (PySparkException, Py4JError) as error:
            if remedy_in(cause_of(error)) is None:
                raise
            raise self._unfit(stated_cause(error)) from error

    def _stage(
        self, batch_id: int, rows: DataFrame, folder: str, partition_columns: Sequence[Column]
    ) -> None:
        rows.write.mode("append").options(**STAGING_OPTIONS).parquet(f"file://{folder}")
        figures = StagedRows.of(folder, [column.name for column in partition_columns])
        if not figures.rows:
            self._folder.remove(folder)
            return
        batch = WaitingBatch(
            batch_id=batch_id,
            rows=figures.rows,
            size_bytes=figures.size_bytes,
            partitions=figures.partitions,
            schema=rows.schema.json(),
            staged_at_s=time.time(),
            query_name=self._query.name,
            checkpoint=self._query.checkpoint,
        )
        try:
            self._folder.keep(folder, batch)
        except FileExistsError:
            # Another driver of this query was faster.
            self._folder.remove(folder)
            self._waiting = self._folder.batches()
        else:
            self._waiting.append(batch)

    def _unfit(self, reason: str) -> UnfitLocationError:
        return UnfitLocationError(self._table, self._folder.location, reason)

    def publish(self, spark: SparkSession) -> None:
        """Write the waiting batches to the table as one planned write; they wait on if it fails.

        Raises:
            WriteError: The write failed, or the system refuses it.
        """
        self.catch_up()
        while self._waiting:
            previous = self._newest
            began_s = time.monotonic()
            try:
                report = self._write(spark, self._waiting)
            except BatchOrderError:
                # Another driver of this query has published some of them.
                self._is_current = False
                self.catch_up()
                if self._newest == previous:
                    raise
                continue
            except BaseException as error:
                # A commit that was interrupted may be finished by any other write.
                self._is_current = False
                if isinstance(error, OSError):
                    raise self._unfit(why_unwritable(error)) from error
                raise
            self._newest = self._waiting[-1].batch_id
            self._write_s = time.monotonic() - began_s
            self._writes.append((time.time(), report.files))
            self._waiting = []
            self._folder.remove_up_to(self._newest)

    def _write(self, spark: SparkSession, batches: list[WaitingBatch]) -> WriteReport:
        last = batches[-1]
        batch = StreamBatch(
            query_id=self._query.query_id,
            batch_id=last.batch_id,
            previous=self._newest,
            query_name=last.query_name,
            checkpoint=last.checkpoint,
        )
        schema = StructType.fromJson(json.loads(last.schema))
        with self._folder.gathered(batches) as folder:
            reader = spark.read.schema(schema).option("__globPaths__", "false")
            rows = reader.parquet(f"file://{folder}")
            return write(
                self._client,
                rows,
                self._table,
                progress=False,
                batch=batch,
                options=self._options,
            )

    def _recent_writes(self) -> list[tuple[float, int]]:
        since_s = time.time() - _HOUR_S
        writes = []
        for one in self._client.writes(self._table):
            at_s = one.updated_at.timestamp()
            if at_s < since_s:
                break
            if one.batch is not None and one.batch.query_id == self._query.query_id and one.report:
                writes.append((at_s, one.report.files))
        return writes
