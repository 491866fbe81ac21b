"""Statements that write to tables of Spark's catalog, and become planned writes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from windrow_calls.coordinator import Coordinator
from windrow_core.models import TableInfo
from windrow_spark.acceleration.cataloged import CatalogPartitions
from windrow_spark.acceleration.comparing import check_same
from windrow_spark.acceleration.decisions import NOTHING, Decisions
from windrow_spark.acceleration.refused import NotTheSameError
from windrow_spark.failures import remembered, thrown_by_spark
from windrow_spark.reading.session_times import in_session
from windrow_spark.relation.callbacks import Answering
from windrow_spark.relation.inserts import constants, rows_of
from windrow_spark.relation.jvm_sessions import session_of
from windrow_spark.writing.expressions import quoted
from windrow_spark.writing.file_options import FileOptions
from windrow_spark.writing.row_order import order_of_plan
from windrow_spark.writing.statements import Use, run
from windrow_tables.commits.locations import local_location


class Writes:
    """Answers the planner's strategy for commands of Spark's that write.

    Args:
        spark: A session of the application.
        client: Plans the tables.
        decisions: The decisions on reads, which keep those on writes too.
    """

    def __init__(self, spark: SparkSession, client: Coordinator, decisions: Decisions) -> None:
        self._spark = spark
        self._client = client
        self._decisions = decisions

    def answer(self, text: str, arguments: Any) -> Any:
        """Return what carries out a command, or why Spark does.

        Args:
            text: The request, as `AcceleratedWrites.java` writes it.
            arguments: The JVM's array of a session, the catalog's table, the index of its files or
                None, and the plan of the rows or None.
        """
        request = json.loads(text)
        try:
            insert = self._insert(request, arguments)
            self._decisions.note(request["target"], insert.table.name, "")
            return Answering(insert.carry_out)
        # Spark can write the rows without us, whatever has gone wrong here.
        except Exception as error:
            reason = str(error) or type(error).__name__
        self._decisions.note(request["target"], None, reason)
        return reason

    def _insert(self, request: Mapping[str, Any], arguments: Any) -> CatalogedInsert:
        if "refusal" in request:
            raise NotTheSameError(request["refusal"])
        if self._client.is_closed:
            raise NotTheSameError("the client is closed")
        _check_command(request)
        rest = order_of_plan(arguments[3], request["columns"]).rest
        if rest:
            raise NotTheSameError(f"it sorts rows by {rest}, which is no column of theirs")
        spark = session_of(self._spark, arguments[0])
        table = self._decisions.table_of(request)
        if request["cataloged"]:
            # Also what others have changed in the catalog a moment ago.
            now = {**request, "running": True, "writes": NOTHING}
            self._decisions.compare(spark, table.name, now)
        late = f"the columns of {table.name!r} are compared with the catalog's"
        plan = self._decisions.patience.call(
            table.name, late, lambda: self._client.probe(table.name).info
        )
        plan = in_session(spark, plan)
        check_same(plan, {**request, "partition": request["partition_schema"]})
        local_location(table)
        partitions = None
        if request["cataloged"]:
            partitions = CatalogPartitions(spark, self._client, table, arguments[1].identifier())
            partitions.check()
        return CatalogedInsert(
            spark,
            self._client,
            table,
            arguments[1],
            arguments[2],
            partitions,
            FileOptions.of_table(request["options"]),
        )


def _check_command(request: Mapping[str, Any]) -> None:
    reason = None
    if request["mode"] not in ("Append", "Overwrite"):
        reason = f"its mode is {request['mode']}"
    elif request["if_absent"]:
        reason = "it says IF NOT EXISTS"
    elif request["bucketed"]:
        reason = "the table is bucketed"
    elif request["partitioned"] and not request["cataloged"]:
        reason = "the catalog does not list the table's partitions"
    elif "" in request["partition"].values():
        reason = "it names a partition by an empty text"
    if reason is not None:
        raise NotTheSameError(reason)


class CatalogedInsert:
    """A command of Spark's on a table of its catalog, carried out as a planned write.

    Args:
        spark: The session that runs it.
        client: The client of the table's coordinator.
        table: The table at the coordinator.
        jtable: The table in the JVM's catalog.
        jfiles: The JVM's index of its files, which the session's relations share; None if none do.
        partitions: Its partitions in the catalog; None if it has none.
        file_options: How Spark makes the table's files.
    """

    def __init__(
        self,
        spark: SparkSession,
        client: Coordinator,
        table: TableInfo,
        jtable: Any,
        jfiles: Any,
        partitions: CatalogPartitions | None,
        file_options: FileOptions,
    ) -> None:
        self.table = table
        self._file_options = file_options
        self._spark = spark
        self._client = client
        self._jtable = jtable
        self._jfiles = jfiles
        self._partitions = partitions

    def carry_out(self, text: str, arguments: Any) -> Any:
        """Write the rows; return True, or the JVM's exception or the text of an error.

        Args:
            text: The request, as `TableInsert.java` writes it.
            arguments: The JVM's array of a session and the plan of the rows.
        """
        try:
            self._write(json.loads(text), arguments[1])
            return True
        # As in `scans.answer`: an exception would reach the user as the JVM's.
        except Exception as error:
            text = remembered(error)
            return thrown_by_spark(error) or text

    def _write(self, request: Mapping[str, Any], query: Any) -> None:
        rows = rows_of(self._spark, query).toDF(*request["columns"])
        use: Use = "append"
        if request["overwrite"]:
            use = "dynamic" if request["dynamic"] else "overwrite"
        values = constants(self._spark, self.table, request["partition"])
        partitions = self._partitions
        if partitions is None:
            run(self._client, rows, self.table, use, values, {}, self._file_options)
        else:
            there = partitions.with_values(request["partition"])
            only = partitions.name_of(request["partition"])
            new: set[str] = set()

            def add(folders: Sequence[str]) -> None:
                new.update(folders or ([] if only is None else [only]))
                partitions.add(new - there)

            run(self._client, rows, self.table, use, values, {}, self._file_options, add)
            if use == "overwrite":
                partitions.drop(there - new)
        self._tell_spark()

    def _tell_spark(self) -> None:
        """Let Spark's caches and statistics have the new rows, as after its own command."""
        if self._jfiles is not None:
            self._jfiles.refresh()
        jvm: Any = self._spark.sparkContext._jvm
        commands = jvm.org.apache.spark.sql.execution.command
        commands.CommandUtils.updateTableStats(self._spark._jsparkSession, self._jtable)
        name = self._jtable.identifier()
        database = name.database().get()
        self._spark.catalog.refreshTable(f"{quoted(database)}.{quoted(name.table())}")
        path = jvm.org.apache.hadoop.fs.Path(self._jtable.location())
        self._spark.catalog.refreshByPath(str(path.toString()))
