"""Statements that write through a relation, such as `INSERT INTO` a view of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windrow_calls.coordinator import Coordinator
from windrow_core.models import TableInfo
from windrow_spark.reading.session_times import in_session, partition_columns_in_session
from windrow_spark.relation.callbacks import Answering
from windrow_spark.relation.pins import Pin, pin_of
from windrow_spark.relation.relations import buckets_of, relation_of
from windrow_spark.relation.requests import Insert
from windrow_spark.writing.schemas import partition_columns_of
from windrow_spark.writing.statements import Use, run
from windrow_tables.errors import UnfitReadError


def insert(
    client: Coordinator,
    spark: SparkSession,
    pin: Pin,
    request: Insert,
    query: Any,
    name: Any,
    answers: Answering,
) -> None:
    """Carry out a statement, after which views of the relation have the new rows.

    Args:
        client: The client that plans.
        spark: The session that runs the statement.
        pin: What the relation reads.
        request: What the statement asks for.
        query: The JVM's plan of the rows.
        name: The JVM's identifier of the table in Spark's own catalog that was named; None if it
            was a view.
        answers: Answers the requests of relations.

    Raises:
        UnfitReadError: Rows cannot be written through the relation.
        WriteError: See `Client.write`.
    """
    _check(pin, request)
    table = client.table(pin.table)
    rows = rows_of(spark, query).toDF(*request.columns)
    run(client, rows, table, use_of(request), constants(spark, table, request.partition), {})
    if name is not None:
        spark._jsparkSession.sessionState().catalog().refreshTable(name)
    _move_views(client, spark, pin, answers)


def use_of(request: Insert) -> Use:
    """Return what becomes of the rows that a table has."""
    if not request.overwrite:
        return "append"
    return "dynamic" if request.dynamic else "overwrite"


def rows_of(spark: SparkSession, query: Any) -> DataFrame:
    """Return a plan of the JVM's that Spark has analysed as a DataFrame."""
    jvm: Any = spark.sparkContext._jvm
    sql = jvm.org.apache.spark.sql
    datasets = sql.Dataset if spark.version.startswith("3.") else sql.classic.Dataset
    # Spark's analyser does not know all that its optimiser makes.
    query.setAnalyzed()
    return DataFrame(datasets.ofRows(spark._jsparkSession, query), spark)


def _check(pin: Pin, request: Insert) -> None:
    if request.if_absent:
        raise UnfitReadError(
            f"IF NOT EXISTS is not known of partitions of table {pin.table!r}, and nothing was "
            "written",
            "leave it out, and ask SHOW PARTITIONS first",
        )
    part = None
    if pin.filter is not None:
        part = "only some of its rows"
    elif pin.at_snapshot:
        part = f"its snapshot {pin.snapshot_id}, whatever is written later"
    if part is not None:
        raise UnfitReadError(
            f"table {pin.table!r} cannot be written through what reads {part}, and nothing was "
            "written",
            f"write to windrow.{pin.table}, or use client.write(df, {pin.table!r})",
        )


def constants(
    spark: SparkSession, table: TableInfo, texts: Mapping[str, str | None]
) -> dict[str, SparkColumn]:
    """Return the partition values of a statement, as Spark takes their texts."""
    columns = partition_columns_in_session(spark, table, partition_columns_of(table))
    types = {column.name.lower(): column.type for column in columns}
    return {
        name: F.lit(text).cast(types.get(name.lower(), "string")) for name, text in texts.items()
    }


def _move_views(client: Coordinator, spark: SparkSession, pin: Pin, answers: Answering) -> None:
    """Give the session's views of a relation its table's current snapshot."""
    views = [name for name in _local_views(spark) if _shows(spark, name, pin)]
    if not views:
        return
    plan = client.probe(pin.table, columns=list(pin.types), **pin.options)
    new = replace(pin, snapshot_id=plan.info.snapshot_id)
    rows = relation_of(
        spark, in_session(spark, plan.info), new, buckets_of(client, plan, pin.reader), answers
    )
    for name in views:
        rows.createOrReplaceTempView(name)


def _local_views(spark: SparkSession) -> list[str]:
    names = spark._jsparkSession.sessionState().catalog().listLocalTempViews("*")
    return [str(names.apply(at).table()) for at in range(names.size())]


def _shows(spark: SparkSession, view: str, pin: Pin) -> bool:
    """Return whether a view is such a relation of any snapshot, without further steps.

    The view is not analysed: one of a table that is gone would fail what has been written.
    """
    definition = spark._jsparkSession.sessionState().catalog().getTempView(view)
    if definition.isEmpty():
        return False
    plan = definition.get()
    while plan.getClass().getSimpleName() in ("SubqueryAlias", "View"):
        plan = plan.children().apply(0)
    # One statement may write several times, after which the view is newer than its relation.
    other = pin_of(plan)
    return other is not None and replace(other, snapshot_id=pin.snapshot_id) == pin
