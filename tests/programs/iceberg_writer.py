"""Writes Iceberg tables with Iceberg's runtime on Spark 4.1, by commits that PyIceberg does not make.

    python iceberg_writer.py FOLDER PACKAGE

writes the tables `merged`, whose rows are deleted by position, under four partition specs, and
`vectors`, of version 3, into the folder `ns` of FOLDER.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

_ROWS = (
    "SELECT id, concat('n', id % 5) AS name, 'k' || id % 2 AS kind, "
    "TIMESTAMP'2026-11-01 00:00:00Z' + make_interval(0, 0, 0, 0, id) AS at, "
    "CAST(id AS DECIMAL(9, 2)) AS price FROM range({}, {})"
)
_MERGED = (
    "PARTITIONED BY (days(at), bucket(4, id))",
    "INSERT INTO {t} " + _ROWS.format(0, 60),
    "DELETE FROM {t} WHERE id % 7 = 3",
    "ALTER TABLE {t} ADD PARTITION FIELD truncate(1, name)",
    "ALTER TABLE {t} DROP PARTITION FIELD days(at)",
    "INSERT INTO {t} " + _ROWS.format(60, 100),
    "UPDATE {t} SET price = price + 1000 WHERE id % 5 = 1",
    "ALTER TABLE {t} ADD PARTITION FIELD hours(at)",
    "ALTER TABLE {t} RENAME COLUMN kind TO sort",
    "ALTER TABLE {t} ADD COLUMN kind STRING",
    "INSERT INTO {t} SELECT id, name, sort, at, price, 'new' FROM {t} WHERE id < 10",
    "DELETE FROM {t} WHERE price > 1050 OR id = 5",
    "ALTER TABLE {t} DROP PARTITION FIELD bucket(4, id)",
    "DELETE FROM {t} WHERE id = 61",
)
_VECTORS = (
    "PARTITIONED BY (kind)",
    "INSERT INTO {t} " + _ROWS.format(0, 40),
    "DELETE FROM {t} WHERE id % 3 = 1",
    "INSERT INTO {t} " + _ROWS.format(40, 60),
    "DELETE FROM {t} WHERE id % 5 = 1",
)


def main() -> None:
    """Write both tables."""
    folder, package = sys.argv[1:]
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "700m")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.jars.packages", package)
        .config(
            "spark.sql.extensions",
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        )
        .config("spark.sql.catalog.w", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.w.type", "hadoop")
        .config("spark.sql.catalog.w.warehouse", folder)
    )
    spark = builder.getOrCreate()
    for version, name, (layout, *statements) in (
        (2, "merged", _MERGED),
        (3, "vectors", _VECTORS),
    ):
        table = f"w.ns.{name}"
        modes = ", ".join(
            f"'write.{what}.mode' = 'merge-on-read'" for what in ("delete", "update", "merge")
        )
        spark.sql(
            f"CREATE TABLE {table} (id BIGINT, name STRING, kind STRING, at TIMESTAMP, "
            f"price DECIMAL(9, 2)) USING iceberg {layout} "
            f"TBLPROPERTIES ('format-version' = '{version}', {modes})"
        )
        for statement in statements:
            spark.sql(statement.format(t=table))
    spark.stop()


if __name__ == "__main__":
    main()
