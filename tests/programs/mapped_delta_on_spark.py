"""Writes Delta tables with column mapping on Spark 4.0 with Delta's runtime.

    python mapped_delta_on_spark.py FOLDER PACKAGE

makes a table for each of `KINDS`. It prints the rows of each, as a JSON object.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

# The mapping that a table is made with; `upgraded` gets one when it has files already.
KINDS = ("upgraded", "name", "id")
_UPGRADE = (
    "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', "
    "'delta.minWriterVersion' = '5'"
)


def main() -> None:
    """Write all tables."""
    folder, package = sys.argv[1:]
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "700m")
        .config("spark.ui.enabled", "false")
        .config("spark.jars.packages", package)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .getOrCreate()
    )
    rows = {}
    for kind in KINDS:
        table = f"delta.`{folder}/{kind}`"
        for statement in _statements(table, kind):
            spark.sql(statement)
        rows[kind] = [row.asDict(recursive=True) for row in spark.table(table).collect()]
    print(json.dumps(rows))
    spark.stop()


def _statements(table: str, kind: str) -> list[str]:
    mode = f"TBLPROPERTIES ('delta.columnMapping.mode' = '{kind}')" if kind != "upgraded" else ""
    upgrade = f"ALTER TABLE {table} SET TBLPROPERTIES ({_UPGRADE})"
    return [
        f"CREATE TABLE {table} (id BIGINT, a STRING, b STRING, s STRUCT<x: BIGINT, y: STRING>, p INT) "
        f"USING delta PARTITIONED BY (p) {mode}",
        f"INSERT INTO {table} VALUES (1, 'a1', 'b1', named_struct('x', 1L, 'y', 'y1'), 1), "
        "(2, 'a2', 'b2', named_struct('x', 2L, 'y', null), null)",
        *([upgrade] if kind == "upgraded" else []),
        f"INSERT INTO {table} VALUES (3, 'a3', 'b3', named_struct('x', 3L, 'y', 'y3'), 1)",
        f"ALTER TABLE {table} RENAME COLUMN a TO c",
        f"ALTER TABLE {table} RENAME COLUMN b TO a",
        f"ALTER TABLE {table} RENAME COLUMN c TO b",
        f"ALTER TABLE {table} RENAME COLUMN p TO q",
        f"INSERT INTO {table} VALUES (4, 'b4', 'a4', null, 2)",
        f"ALTER TABLE {table} DROP COLUMN b",
        f"ALTER TABLE {table} ADD COLUMN (b STRING)",
        f"ALTER TABLE {table} RENAME COLUMN s.x TO z",
        f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        f"INSERT INTO {table} (id, a, s, b, q) VALUES "
        "(5, 'a5', named_struct('z', 5L, 'y', 'y5'), 'b5', 2), (6, 'a6', null, 'b6', 2)",
        f"DELETE FROM {table} WHERE id = 6",
    ]


if __name__ == "__main__":
    main()
