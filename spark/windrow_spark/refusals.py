"""What Spark may ask of tables and cannot have, and how that is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from windrow_tables.errors import UnfitReadError

# What cannot be done with a table, and what to do instead.
_REFUSALS: Final = {
    "write": (
        "Spark cannot write table {table!r} by itself, and has written nothing",
        "use client.write(df, {table!r}), with `mode` to replace rows",
    ),
    "overwrite": (
        "only rows with one value of each of some partition columns of table {table!r} can be "
        "overwritten, and nothing was written",
        "write a condition such as ds = '2026-11-01', or use overwritePartitions()",
    ),
    "writeStream": (
        "a stream of Spark Connect cannot write table {table!r} by itself",
        "use a classic session, or write each batch with .writeStream.foreachBatch(lambda df, _: client.write(df, "
        "{table!r}))",
    ),
    "readStream": (
        "table {table!r} cannot be read as a stream on Spark Connect, only at one snapshot",
        "use a classic session, or read one snapshot with spark.read instead of spark.readStream",
    ),
    "ALTER TABLE": (
        "Spark cannot change table {table!r}, whose columns and partitions are those of its files",
        "client.register_table({table!r}, …) changes its definition, client.alter_table its plan "
        "options, client.drop_partitions removes partitions, and REFRESH TABLE finds new files and "
        "partitions",
    ),
    "DROP TABLE": (
        "Spark cannot drop table {table!r}",
        "client.delete_table({table!r}) deletes its registration and leaves its files",
    ),
    "TRUNCATE TABLE": (
        "Spark cannot empty table {table!r}, and has deleted nothing",
        "use client.write(df, {table!r}, mode='overwrite') without rows",
    ),
    "TRUNCATE PARTITION": (
        "Spark cannot empty partitions of table {table!r}, and has deleted nothing",
        "client.drop_partitions({table!r}, \"ds = '2026-11-01'\") removes them",
    ),
    "DELETE": (
        "DELETE without a condition would erase all rows of table {table!r}, and has erased none",
        "use client.write(df, {table!r}, mode='overwrite') without rows, or give a condition",
    ),
    "ANALYZE TABLE": (
        "ANALYZE TABLE cannot be used for tables of a coordinator, which already has the statistics "
        "of each snapshot",
        "SET spark.sql.cbo.enabled=true, and queries use them",
    ),
    "MSCK REPAIR TABLE": (
        "table {table!r} has no list of partitions to repair: its partitions are those of its files",
        "REFRESH TABLE finds new ones",
    ),
    "LOAD DATA": (
        "LOAD DATA cannot move files into table {table!r}, and has moved none",
        "use INSERT INTO … SELECT * FROM parquet.`/folder`, or move the files yourself, then REFRESH "
        "TABLE",
    ),
    "CREATE INDEX": (
        "table {table!r} has no indexes that Spark could make or drop",
        "client.register_table({table!r}, …, bloom_columns=['id']) adds Bloom filters",
    ),
    "DESCRIBE PARTITION AS JSON": (
        "partitions of table {table!r} cannot be described as JSON",
        "use DESCRIBE EXTENDED … PARTITION (…), or client.partition_values({table!r}, …)",
    ),
    "CREATE NAMESPACE": (
        "namespace {table!r} cannot be created without a table",
        "register a table whose name begins with it: "
        "client.register_table('{table}.events', location)",
    ),
    "ALTER NAMESPACE": (
        "namespace {table!r} cannot be changed",
        "a namespace is only the beginning of the names of its tables",
    ),
    "DROP NAMESPACE": (
        "namespace {table!r} cannot be dropped",
        "delete the registrations of its tables: client.delete_table; without tables, there is no "
        "namespace",
    ),
}
# Stands for the table in the words of an error: not every way to write passes the options on.
_UNNAMED = "schema.table"


def refusal(use: str, options: Mapping[str, str]) -> UnfitReadError:
    """Return the error that refuses a use of the table that options name.

    Args:
        use: The name of Spark's method, `write`, `writeStream` or `readStream`, or a statement.
        options: Options of the format.
    """
    if "catalog" in options:
        options = json.loads(options["catalog"])
    table = options.get("table") or options.get("path") or _UNNAMED
    reason, way_out = _REFUSALS[use]
    return UnfitReadError(reason.format(table=table), way_out.format(table=table))
