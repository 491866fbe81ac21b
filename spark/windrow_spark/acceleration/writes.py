"""Statements that write to tables of Spark's catalog, and become planned writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from windrow_calls.coordinator import Coordinator
from windrow_core.models import TableInfo
from windrow_spark.acceleration.cataloged import CatalogPartitions
from windrow_spark.acceleration.comparing import check_same
from windrow_spark.acceleration.decisions import Decisions
from windrow_spark.acceleration.refused import NotTheSameError
from windrow_spark.acceleration.requests import Command, Refused
from windrow_spark.failures import remembered, thrown_by_spark
from windrow_spark.reading.session_times import in_session
from windrow_spark.relation.callbacks import answers_in_session
from windrow_spark.relation.inserts import constants, rows_of, use_of
from windrow_spark.relation.requests import Insert
from windrow_spark.writing.expressions import quoted
from windrow_spark.writing.file_options import FileOptions
from windrow_spark.writing.row_order import order_of_plan
from windrow_spark.writing.statements import run
from windrow_tables.commits.locations import local_location


class Writes:
    """Answers the planner's strategy for commands of Spark's that write.

    Args:
        client: Plans the tables.
        decisions: The decisions on reads, which keep those on writes too.
    """

    def __init__(self, client: Coordinator, decisions: Decisions) -> None:
        self._client = client
        self._decisions = decisions

    def command(
        self, request: Command, spark: SparkSession, jtable: Any, jfiles: Any, query: Any
    ) -> Any:
        """Return what carries out a command, or why Spark does.

        Args:
            request: The command.
            spark: The session that runs it.
            jtable: The table in the JVM's catalog.
            jfiles: The JVM's index of its files; None if relations share none.
            query: The JVM's plan of the rows.
        """
        try:
            insert = self._insert(request, spark, jtable, jfiles, query)
            self._decisions.note(request.target, insert.table.name, "")
            return answers_in_session(spark, insert.carry_out)
        # Spark can write the rows without us, whatever has gone wrong here.
        except Exception as error:
            return self._decisions.refused(
                Refused(request.target, str(error) or type(error).__name__), spark
            )

    def _insert(
        self, request: Command, spark: SparkSession, jtable: Any, jfiles: Any, query: Any
    ) -> CatalogedInsert:
        if request.refusal is not None:
            raise NotTheSameError(request.refusal)
        if self._client.is_closed:
            raise NotTheSameError("the client is closed")
        _check_command(request)
        rest = order_of_plan(query, request.columns).rest
        if rest:
            raise NotTheSameError(f"it sorts rows by {rest}, which is no column of theirs")
        table = self._decisions.table_of(request)
        if request.in_catalog:
            self._decisions.compare(spark, table.name)
        late = f"the columns of {table.name!r} are compared with the catalog's"
        plan = self._decisions.patience.call(
            table.name, late, lambda: self._client.probe(table.name).info
        )
        check_same(in_session(spark, plan), request)
        local_location(table)
        partitions = None
        if request.in_catalog:
            partitions = CatalogPartitions(spark, self._client, table, jtable.identifier())
            partitions.check()
        return CatalogedInsert(
            spark,
            self._client,
            table,
            jtable,
            jfiles,
            partitions,
            FileOptions.of_table(request.options),
        )


def _check_command(request: Command) -> None:
    reason = None
    if request.mode not in ("Append", "Overwrite"):
        reason = f"its mode is {request.mode}"
    elif request.if_absent:
        reason = "it says IF NOT EXISTS"
    elif request.has_buckets:
        reason = "the table is bucketed"
    elif request.has_partitions and not request.in_catalog:
        reason = "the catalog does not list the table's partitions"
    elif "" in request.partition.values():
        reason = "it names a partition by an empty text"
    if reason is not None:
        raise NotTheSameError(reason)


@dataclass(frozen=True)
class CatalogedInsert:
    """A command of Spark's on a table of its catalog, carried out as a planned write.

    Attributes:
        spark: The session that runs it.
        client: The client of the table's coordinator.
        table: The table at the coordinator.
        jtable: The table in the JVM's catalog.
        jfiles: The JVM's index of its files, which the session's relations share; None if none do.
        partitions: Its partitions in the catalog; None if it has none.
        file_options: How Spark makes the table's files.
    """

    spark: SparkSession
    client: Coordinator
    table: TableInfo
    jtable: Any
    jfiles: Any
    partitions: CatalogPartitions | None
    file_options: FileOptions

    def carry_out(self, request: Insert, spark: SparkSession, query: Any) -> Any:
        """Write the rows of the JVM's plan; return the JVM's exception if it has thrown one."""
        try:
            self._write(request, query)
        except Exception as error:
            exception = thrown_by_spark(error)
            if exception is None:
                raise
            remembered(error)
            return exception

    def _write(self, request: Insert, query: Any) -> None:
        rows = rows_of(self.spark, query).toDF(*request.columns)
        use = use_of(request)
        values = constants(self.spark, self.table, request.partition)
        partitions = self.partitions
        if partitions is None:
            run(self.client, rows, self.table, use, values, {}, self.file_options)
        else:
            there = partitions.with_values(request.partition)
            only = partitions.name_of(request.partition)
            new: set[str] = set()

            def add(folders: Sequence[str]) -> None:
                new.update(folders or ([] if only is None else [only]))
                partitions.add(new - there)

            run(self.client, rows, self.table, use, values, {}, self.file_options, add)
            if use == "overwrite":
                partitions.drop(there - new)
        self._tell_spark()

    def _tell_spark(self) -> None:
        """Let Spark's caches and statistics have the new rows, as after its own command."""
        if self.jfiles is not None:
            self.jfiles.refresh()
        jvm: Any = self.spark.sparkContext._jvm
        commands = jvm.org.apache.spark.sql.execution.command
        commands.CommandUtils.updateTableStats(self.spark._jsparkSession, self.jtable)
        name = self.jtable.identifier()
        database = name.database().get()
        self.spark.catalog.refreshTable(f"{quoted(database)}.{quoted(name.table())}")
        path = jvm.org.apache.hadoop.fs.Path(self.jtable.location())
        self.spark.catalog.refreshByPath(str(path.toString()))
