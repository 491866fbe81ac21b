"""Statements and writers of Spark's that write tables, beside Spark's own writer on a copy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windrow
from windrow_spark.writing.recent_writes import recent_writes

NAME = "sales.statements"
CATALOG = f"windrow.{NAME}"
VIEW = "written"
COPY = "statement_copies.copy"

_FIRST = "SELECT id, concat('n', id) AS name, date_add(DATE'2026-11-01', CAST(id % 3 AS INT)) AS ds FROM range(9)"
_DYNAMIC = "spark.sql.sources.partitionOverwriteMode"

# With the name of the table for `{t}`, also where it is read, `{s}`.
SQL = {
    "INSERT INTO … VALUES": "INSERT INTO {t} VALUES (100, 'x', DATE'2026-11-01'), (101, NULL, NULL)",
    "INSERT INTO … SELECT": "INSERT INTO {t} SELECT id + 200, name, ds FROM {s} WHERE id < 9",
    "INSERT INTO (columns)": "INSERT INTO {t} (ds, id) VALUES (DATE'2026-11-05', 300)",
    "INSERT INTO … BY NAME": "INSERT INTO {t} BY NAME SELECT DATE'2026-11-05' AS DS, 301L AS id, 'b' AS name",
    "INSERT INTO … PARTITION": "INSERT INTO {t} PARTITION (ds = '2026-11-06') SELECT 400, 'p'",
    "VALUES with DEFAULT": "INSERT INTO {t} VALUES (500, DEFAULT, DATE'2026-11-06')",
    "INSERT OVERWRITE … PARTITION": "INSERT OVERWRITE {t} PARTITION (ds = '2026-11-01') SELECT 600, 'o'",
    "… without rows": "INSERT OVERWRITE {t} PARTITION (ds = '2026-11-06') SELECT 601, 'o' WHERE false",
    "dynamic INSERT OVERWRITE": "INSERT OVERWRITE {t} SELECT 700, 'd', DATE'2026-11-02'",
    "INSERT OVERWRITE of itself": "INSERT OVERWRITE {t} SELECT id + 1, name, ds FROM {s} WHERE id > 3",
    "INSERT OVERWRITE without rows": "INSERT OVERWRITE {t} SELECT * FROM {s} WHERE false",
    "INSERT INTO an empty table": "INSERT INTO {t} VALUES (800, 'e', DATE'2026-11-07')",
}

_NEVER_DRAWN = ("INSERT INTO (columns)", "VALUES with DEFAULT")


def _rows(spark: SparkSession, ids: range, day: str) -> DataFrame:
    return spark.range(ids.start, ids.stop).selectExpr("id", "'w' AS name", f"DATE'{day}' AS ds")


# Writers by table name, each with the statement that does the same to Spark's own table.
WRITERS: dict[str, tuple[Callable[[SparkSession], Any], str]] = {
    "insertInto": (
        lambda spark: _rows(spark, range(3), "2026-12-01").write.insertInto(CATALOG),
        "INSERT INTO {t} SELECT id, 'w', DATE'2026-12-01' FROM range(3)",
    ),
    "insertInto, dynamic": (
        lambda spark: (
            _rows(spark, range(1), "2026-12-01")
            .write.option("partitionOverwriteMode", "dynamic")
            .insertInto(CATALOG, overwrite=True)
        ),
        "INSERT OVERWRITE {t} PARTITION (ds = '2026-12-01') SELECT 0, 'w'",
    ),
    "saveAsTable, append": (
        lambda spark: (
            _rows(spark, range(2), "2026-12-02").write.mode("append").saveAsTable(CATALOG)
        ),
        "INSERT INTO {t} SELECT id, 'w', DATE'2026-12-02' FROM range(2)",
    ),
    "writeTo.append": (
        lambda spark: _rows(spark, range(2), "2026-12-03").writeTo(CATALOG).append(),
        "INSERT INTO {t} SELECT id, 'w', DATE'2026-12-03' FROM range(2)",
    ),
    "writeTo.overwritePartitions": (
        lambda spark: _rows(spark, range(1), "2026-12-03").writeTo(CATALOG).overwritePartitions(),
        "INSERT OVERWRITE {t} PARTITION (ds = '2026-12-03') SELECT 0, 'w'",
    ),
    "writeTo.overwrite": (
        lambda spark: (
            _rows(spark, range(0), "2026-12-02")
            .writeTo(CATALOG)
            .overwrite(F.col("ds") == F.lit("2026-12-02").cast("date"))
        ),
        "INSERT OVERWRITE {t} PARTITION (ds = '2026-12-02') SELECT 0, 'w' WHERE false",
    ),
    "save, append": (
        lambda spark: (
            _rows(spark, range(4), "2026-12-04")
            .write.format("windrow")
            .mode("append")
            .option("target_rows", 100)
            .save(NAME)
        ),
        "INSERT INTO {t} SELECT id, 'w', DATE'2026-12-04' FROM range(4)",
    ),
    "save, overwrite": (
        lambda spark: (
            _rows(spark, range(2), "2026-12-05")
            .write.format("windrow")
            .mode("overwrite")
            .option("table", NAME)
            .save()
        ),
        "INSERT OVERWRITE {t} SELECT id, 'w', DATE'2026-12-05' FROM range(2)",
    ),
}

# What is refused, and words of the refusals.
REFUSALS: dict[str, tuple[Callable[[SparkSession], Any], str]] = {
    "another type": (
        lambda spark: spark.sql(f"INSERT INTO {VIEW} VALUES ('x', 'y', DATE'2026-11-01')"),
        "CANNOT_SAFELY_CAST",
    ),
    "too few columns": (
        lambda spark: spark.sql(f"INSERT INTO {VIEW} VALUES (1, 'y')"),
        "NOT_ENOUGH_DATA_COLUMNS",
    ),
    "overwrite by another condition": (
        lambda spark: (
            _rows(spark, range(1), "2026-12-01")
            .writeTo(CATALOG)
            .overwrite(F.col("ds") > "2026-01-01")
        ),
        "only rows with one value",
    ),
    "overwrite by another column": (
        lambda spark: (
            _rows(spark, range(1), "2026-12-01").writeTo(CATALOG).overwrite(F.col("id") == 1)
        ),
        "partitioned by 'ds'",
    ),
    "save, error": (
        lambda spark: _rows(spark, range(1), "2026-12-01").write.format("windrow").save(NAME),
        "exists, and nothing was written",
    ),
    "save, partitionBy": (
        lambda spark: (
            _rows(spark, range(1), "2026-12-01")
            .write.format("windrow")
            .partitionBy("name")
            .mode("append")
            .save(NAME)
        ),
        "is not how table 'sales.statements' is partitioned",
    ),
    "an unknown option": (
        lambda spark: (
            _rows(spark, range(1), "2026-12-01")
            .write.format("windrow")
            .option("target_size", "1MB")
            .mode("append")
            .save(NAME)
        ),
        "no option 'target_size' of writes, only counts, conflict",
    ),
    "IF NOT EXISTS": (
        lambda spark: spark.sql(
            f"INSERT OVERWRITE {VIEW} PARTITION (ds = '2026-11-01') IF NOT EXISTS SELECT 1, 'y'"
        ),
        "leave it out",
    ),
}


def outcomes(
    spark: SparkSession, client: windrow.Client, folder: Path, *, every: bool = True
) -> dict[str, str]:
    """Return the outcome of each statement: `same` rows as Spark's own writer leaves, or an error.

    Args:
        spark: A classic session whose catalog `windrow` has the tables of the client.
        client: A client of a coordinator.
        folder: A folder for files of tables.
        every: Whether to try each writer, and each statement of SQL on a view and by the catalog, or
            every other writer, and only the statements that `random_statements` never draws.
    """
    client.register_table(
        NAME,
        str(folder / "statements"),
        columns={"id": "bigint", "name": "string"},
        partition_columns={"ds": "date"},
    )
    client.write(spark.sql(_FIRST), NAME)
    client.read(spark, NAME).createOrReplaceTempView(VIEW)
    spark.sql("CREATE DATABASE IF NOT EXISTS statement_copies")
    results = {}
    try:
        spark.sql(f"CREATE TABLE {COPY} USING parquet PARTITIONED BY (ds) AS {_FIRST}")
        tables = VIEW, CATALOG
        uses = product(tables, SQL) if every else zip(tables, _NEVER_DRAWN, strict=True)
        for table, name in uses:
            mode = "dynamic" if name.startswith("dynamic") else "static"
            spark.conf.set(_DYNAMIC, mode)
            results[f"{name} ({table})"] = _compared(
                spark,
                partial(spark.sql, SQL[name].format(t=table, s=table)),
                SQL[name],
                table,
            )
        for name, (write, text) in list(WRITERS.items())[:: 1 if every else 2]:
            results[name] = _compared(spark, partial(write, spark), text, CATALOG)
        results |= _created(spark, folder)
        before = _ids(spark, CATALOG)
        for name, (write, words) in REFUSALS.items():
            error = _error(partial(write, spark))
            results[name] = "refused" if words in error else f"not refused: {error}"
        if _ids(spark, CATALOG) != before:
            results["refusals"] = "changed rows"
    finally:
        spark.conf.unset(_DYNAMIC)
        spark.sql("DROP DATABASE statement_copies CASCADE")
        spark.catalog.dropTempView(VIEW)
    return results


def _created(spark: SparkSession, folder: Path) -> dict[str, str]:
    """Return the outcomes of statements that create tables."""
    rows = _rows(spark, range(4), "2026-12-06")
    spark.conf.set("spark.windrow.warehouse", str(folder / "created"))
    results = {}
    uses: dict[str, tuple[Callable[[], Any], str, int]] = {
        "CREATE TABLE AS": (
            lambda: spark.sql(
                f"CREATE TABLE windrow.made.one PARTITIONED BY (ds) AS SELECT * FROM {COPY}"
            ),
            "windrow.made.one",
            spark.table(COPY).count(),
        ),
        "CREATE TABLE": (
            lambda: spark.sql(
                "CREATE TABLE windrow.made.two (id BIGINT, ds DATE) USING windrow "
                f"PARTITIONED BY (ds) LOCATION '{folder / 'two'}'"
            ),
            "windrow.made.two",
            0,
        ),
        "writeTo.create": (
            lambda: rows.writeTo("windrow.made.three").partitionedBy(F.col("ds")).create(),
            "windrow.made.three",
            4,
        ),
        "saveAsTable": (
            lambda: rows.write.format("windrow").partitionBy("ds").saveAsTable("windrow.made.four"),
            "windrow.made.four",
            4,
        ),
        "saveAsTable, overwrite": (
            lambda: (
                rows.limit(1)
                .write.format("windrow")
                .partitionBy("ds")
                .mode("overwrite")
                .saveAsTable("windrow.made.four")
            ),
            "windrow.made.four",
            1,
        ),
    }
    for name, (use, table, count) in uses.items():
        outcome = _error(use) or f"{spark.table(table).count()} rows"
        results[name] = "same" if outcome == f"{count} rows" else outcome
    spark.conf.unset("spark.windrow.warehouse")
    return results


def _compared(spark: SparkSession, write: Callable[[], Any], text: str, table: str) -> str:
    writes = len(recent_writes(NAME))
    if error := _error(write):
        return error
    # Spark itself cannot overwrite what it reads.
    spark.table(COPY).localCheckpoint().createOrReplaceTempView("statement_source")
    spark.sql(text.format(t=COPY, s="statement_source"))
    spark.catalog.dropTempView("statement_source")
    ours, copy = _ids(spark, table), _ids(spark, COPY)
    if ours != copy:
        return f"{ours} instead of {copy}"
    report = recent_writes(NAME)[0].report
    if len(recent_writes(NAME)) != writes + 1 and writes < 100:
        return "no report"
    return "same" if report.files <= (report.planned_files or 0) + 1 else "too many files"


def _ids(spark: SparkSession, table: str) -> list[Any]:
    rows = spark.sql(f"SELECT id, name, CAST(ds AS STRING) FROM {table}").collect()
    return sorted(map(str, rows))


def _error(write: Callable[[], Any]) -> str:
    try:
        write()
    except (PySparkException, Py4JError) as error:
        return str(error).partition("\n")[0]
    return ""
