"""Rows that `df.write.format("windrow").save("sales.events")` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from windrow.calls.coordinator import Coordinator
from windrow_spark.errors import UnfitReadError
from windrow_spark.writing.schemas import partition_columns_of
from windrow_spark.writing.statements import MODE_OPTION, Use, run

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
    run(client, rows, table, use, {}, options)
