"""Opening the sinks of streaming queries, as Spark starts them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import InvalidArgumentError
from windrow_spark.relation.jvm_sessions import session_of
from windrow_spark.streaming.sink import TableSink
from windrow_spark.writing.schemas import partition_columns_of
from windrow_tables.errors import UnfitReadError


def open_sink(
    client: Coordinator, spark: SparkSession, jsink: Any, table: str, texts: Mapping[str, str]
) -> Callable[[int, Any], None]:
    """Return what takes the batches of a stream: their numbers, and the JVM's rows.

    Args:
        client: Client of the coordinator that knows the table.
        spark: A session of the application.
        jsink: The JVM's `TableSink`.
        table: Name of the table.
        texts: The other options of the stream, by name in lower case.

    Raises:
        UnfitReadError: The output mode is not `append`.
        UnfitLocationError: The table cannot be written.
        InvalidArgumentError: An option is not valid.
    """
    if jsink.mode() != "Append":
        raise UnfitReadError(
            f"a stream writes table {table!r} in output mode append, not {jsink.mode().lower()}",
            "use .outputMode('append') or, for rows that change, .foreachBatch with "
            f"client.write(df, {table!r}, mode='overwrite_partitions')",
        )
    columns = json.loads(jsink.partitionColumns())
    names = [column.name for column in partition_columns_of(client.table(table))]
    if columns and [name.lower() for name in columns] != [name.lower() for name in names]:
        raise InvalidArgumentError(
            "partitionBy",
            f"table {table!r} is partitioned by {', '.join(names) or 'nothing'}, not by "
            f"{', '.join(columns)}: leave out partitionBy",
        )
    session = session_of(spark, jsink.session())
    return TableSink(client, session, table, texts, jsink).add
