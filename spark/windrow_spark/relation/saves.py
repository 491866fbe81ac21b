"""Rows that `df.write.format("windrow").save("sales.events")` writes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from windrow_calls.coordinator import Coordinator
from windrow_spark.relation.inserts import rows_of
from windrow_spark.relation.table import ReadOptions, open_table
from windrow_spark.writing.expressions import quoted
from windrow_spark.writing.schemas import partition_columns_of
from windrow_spark.writing.statements import MODE_OPTION, Use, run
from windrow_tables.errors import UnfitReadError

# The option in which Spark passes the columns of `partitionBy`.
_PARTITION_COLUMNS = "__partition_columns"
_MODE_SETTING = "spark.sql.sources.partitionOverwriteMode"


def save(
    client: Coordinator,
    spark: SparkSession,
    name: str,
    mode: str,
    rows: DataFrame,
    options: Mapping[str, str],
) -> None:
    """Write rows to a table, whose columns they must have by name.

    Args:
        client: The client of the table's coordinator.
        spark: The session that writes.
        name: Name of the table.
        mode: `Append`, `Overwrite`, `ErrorIfExists` or `Ignore`.
        rows: The rows.
        options: Options of the writer, with names in lower case.

    Raises:
        UnfitReadError: The mode does not suit a table that exists, or the writer partitions rows in
            another way.
        WriteError: See `Client.write`.
    """
    table = client.table(name)
    if mode == "Ignore":
        return
    if mode == "ErrorIfExists":
        raise UnfitReadError(
            f"table {name!r} exists, and nothing was written",
            "add rows with .mode('append'), or replace them with .mode('overwrite')",
        )
    options = dict(options)
    columns = [column.name for column in partition_columns_of(table)]
    own = json.loads(options.pop(_PARTITION_COLUMNS, "null"))
    if own is not None and [one.lower() for one in own] != [one.lower() for one in columns]:
        raise UnfitReadError(
            f"partitionBy({', '.join(own)}) is not how table {name!r} is partitioned, and "
            "nothing was written",
            "leave partitionBy out: rows go to the partitions of the table",
        )
    use: Use = "append" if mode == "Append" else "overwrite"
    choice = options.pop(MODE_OPTION, None) or spark.conf.get(_MODE_SETTING)
    if use == "overwrite" and str(choice).lower() == "dynamic":
        use = "dynamic"
    if table.current_snapshot is not None:
        rows = _stored(client, spark, name, rows)
    run(client, rows, table, use, {}, options)


def _stored(client: Coordinator, spark: SparkSession, name: str, rows: DataFrame) -> DataFrame:
    """Return rows with the types of a table's columns, as Spark's INSERT casts them.

    Rows that it refuses, or that have other columns, are returned as they are.
    """
    table = open_table(client, spark, name, ReadOptions())
    own = {column.lower(): column for column in rows.columns}
    columns = [own.get(column.lower(), "") for column in table.columns]
    if sorted(columns) != sorted(rows.columns) or len(own) < len(columns):
        return rows
    ordered = rows.select(*map(quoted, columns))
    if [field.dataType for field in ordered.schema] == [field.dataType for field in table.schema]:
        return rows
    target, source = f"windrow_target_{uuid.uuid4().hex}", f"windrow_rows_{uuid.uuid4().hex}"
    jvm: Any = spark.sparkContext._jvm
    state = spark._jsparkSession.sessionState()
    no_execution = jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
    try:
        table.createOrReplaceTempView(target)
        ordered.createOrReplaceTempView(source)
        statement = state.sqlParser().parsePlan(f"INSERT INTO {target} SELECT * FROM {source}")
        command = state.executePlan(statement, no_execution).analyzed()
        return rows_of(spark, command.query()).toDF(*columns)
    except AnalysisException:
        return rows
    finally:
        spark.catalog.dropTempView(target)
        spark.catalog.dropTempView(source)
