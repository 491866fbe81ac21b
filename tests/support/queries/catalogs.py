"""Statements on the catalog `windrow`, asked alike on each release of Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import windrow
from tests.support.spark import quick_spark
from tests.support.tables import hive
from windrow_spark.relation.recent_scans import recent_scans

TABLE = "windrow.sales.catalog_events"
_NAME = "sales.catalog_events"

# Statements and uses that would change a table, with words that their refusals must have.
REFUSALS = {
    "CREATE TABLE windrow.sales.fresh (id INT)": "SET spark.windrow.warehouse",
    f"CREATE TABLE windrow.sales.fresh AS SELECT * FROM {TABLE}": "SET spark.windrow.warehouse",
    f"CREATE OR REPLACE TABLE {TABLE} AS SELECT 1 AS a": "client.delete_table",
    f"DROP TABLE {TABLE}": f"client.delete_table('{_NAME}')",
    f"DROP TABLE {TABLE} PURGE": "client.delete_table",
    f"ALTER TABLE {TABLE} ADD COLUMN z INT": "client.register_table",
    f"ALTER TABLE {TABLE} RENAME TO windrow.sales.z": "client.register_table",
    f"ALTER TABLE {TABLE} ADD PARTITION (ds='2026-12-01')": "REFRESH TABLE finds new files",
    f"ALTER TABLE {TABLE} DROP PARTITION (ds='2026-11-01')": "client.register_table",
    f"TRUNCATE TABLE {TABLE}": "has deleted nothing",
    f"DELETE FROM {TABLE} WHERE id % 2 = 1": "collect keys of the rows",
    f"UPDATE {TABLE} SET id = 1": "client.write(df",
    "CREATE NAMESPACE windrow.fresh": "client.register_table('fresh.events'",
    "DROP NAMESPACE windrow.sales CASCADE": "client.delete_table",
}


def results(spark: SparkSession, client: windrow.Client, folder: Path) -> dict[str, Any]:
    """Return what statements answer, by what they are about.

    Args:
        spark: A classic session whose catalog `windrow` has the tables of the client.
        client: A client of a coordinator.
        folder: A folder for files of tables.
    """
    location = hive.write_events(folder / "catalog_events")
    plain = hive.write_events(folder / "catalog_plain", days=hive.DAYS[:1])
    for name, path in {_NAME: location, "catalog_plain": plain, "cat.deep.Odd-Case": plain}.items():
        client.register_table(name, str(path))
        client.refresh(name)
    answers: dict[str, Any] = {
        "reads": _reads(spark),
        "names": _names(spark),
        "descriptions": _descriptions(spark),
        "interface": _interface(spark),
        "refusals": _refusals(spark),
    }
    answers["snapshots"] = _snapshots(spark, client, location)
    answers["files"] = hive.data_files(location)
    return answers


def rows(spark: SparkSession, statement: str) -> list[list[Any]]:
    """Return the rows of a statement as lists of what JSON has."""
    return [
        [value if isinstance(value, int | bool) else str(value) for value in row]
        for row in spark.sql(statement).collect()
    ]


def first_line(use: Callable[[], Any]) -> str:
    """Return the first line of the error that a use of a table raises."""
    try:
        use()
    except (PySparkException, Py4JError) as error:
        return str(error).partition("\n")[0]
    return "not refused"


def _or_first_line(use: Callable[[], Any]) -> Any:
    try:
        return use()
    except PySparkException as error:
        return str(error).partition("\n")[0]


def _error(use: Callable[[], Any]) -> str:
    """Return the whole text of an error: Spark may wrap ours; or nothing."""
    try:
        use()
    except (PySparkException, Py4JError) as error:
        return str(error)
    return ""


def _planned() -> list[int]:
    summary = recent_scans(_NAME)[0].plan.summary
    return [summary.files_planned, summary.files_total]


def _is_cached(table: DataFrame) -> bool:
    return "InMemoryRelation" in table._jdf.queryExecution().executedPlan().toString()


def _reads(spark: SparkSession) -> dict[str, Any]:
    return {
        "pruned": [rows(spark, f"SELECT count(*) FROM {TABLE} WHERE day(ds) = 2"), _planned()],
        "scan": "Scan windrow sales.catalog_events snapshot 1"
        in rows(spark, f"EXPLAIN SELECT * FROM {TABLE}")[0][0],
        "qualified": rows(
            spark, f"SELECT max(catalog_events.id), max(sales.catalog_events.id) FROM {TABLE}"
        ),
        "joined": rows(
            spark,
            f"SELECT count(*), sum(a.id) FROM {TABLE} a JOIN windrow.default.catalog_plain b "
            "ON a.id = b.id JOIN windrow.cat.deep.`Odd-Case` c ON c.id = b.id",
        ),
        "files": rows(
            spark,
            f"SELECT DISTINCT _metadata.file_name, "
            f"input_file_name() LIKE 'file:///%/ds=2026-11-02/part-0000_.parquet' FROM {TABLE} "
            "WHERE ds = '2026-11-02' ORDER BY 1",
        ),
    }


def _names(spark: SparkSession) -> dict[str, Any]:
    tables = "SHOW TABLES IN windrow.sales LIKE 'catalog*'"
    names = {
        "namespaces": rows(spark, "SHOW NAMESPACES IN windrow"),
        "databases": rows(spark, "SHOW DATABASES IN windrow LIKE 's*'"),
        "nested": rows(spark, "SHOW NAMESPACES IN windrow.cat"),
        "tables": rows(spark, tables),
        "nested tables": rows(spark, "SHOW TABLES IN windrow.cat.deep"),
        "without dots": rows(spark, "SHOW TABLES IN windrow LIKE 'catalog*'"),
        "no namespace": first_line(lambda: rows(spark, "SHOW TABLES IN windrow.absent")),
        "in another case": rows(spark, "SELECT count(*) FROM windrow.CAT.Deep.`ODD-CASE`"),
        "absent": first_line(lambda: rows(spark, "SELECT * FROM windrow.sales.absent")),
        "odd": first_line(lambda: rows(spark, "SELECT * FROM windrow.sales.`a``b. c/é`")),
    }
    spark.conf.set("spark.sql.caseSensitive", "true")
    names["case sensitive"] = first_line(
        lambda: rows(spark, "SELECT * FROM windrow.sales.Catalog_Events")
    )
    spark.conf.unset("spark.sql.caseSensitive")
    spark.sql("USE windrow")
    names["default namespace"] = rows(spark, "SELECT count(*), upper('a') FROM catalog_plain")
    spark.sql("USE windrow.sales")
    names["used"] = [
        rows(spark, "SELECT count(*) FROM catalog_events"),
        rows(spark, "SELECT current_catalog(), current_schema()"),
        rows(spark, "SHOW TABLES LIKE 'catalog*'"),
    ]
    spark.sql("USE spark_catalog.default")
    return names


def _descriptions(spark: SparkSession) -> dict[str, Any]:
    details = {row[0]: row[1] for row in rows(spark, f"DESCRIBE EXTENDED {TABLE}")}
    properties = dict(rows(spark, f"SHOW TBLPROPERTIES {TABLE}"))
    times = properties.pop("snapshot_created_at")
    return {
        # Only newer releases of Spark show columns of tables outside of its own catalog.
        "columns": _or_first_line(lambda: rows(spark, f"SHOW COLUMNS IN {TABLE}")),
        "described": [row[:2] for row in rows(spark, f"DESCRIBE {TABLE}")],
        "partitions": rows(spark, f"SHOW PARTITIONS {TABLE}"),
        "one partition": rows(spark, f"SHOW PARTITIONS {TABLE} PARTITION (ds = '2026-11-02')"),
        "location": details["Location"].endswith("/catalog_events"),
        "provider": details["Provider"],
        "figures": "file_count=6" in details["Table Properties"],
        "properties": properties,
        "time": datetime.fromisoformat(times).tzinfo is not None,
    }


def _interface(spark: SparkSession) -> dict[str, Any]:
    other = spark.newSession()
    # Spark's own interpreter fails to decode these lists.
    settings = {name: spark.conf.get(name) for name in quick_spark.COMPILED}
    for name, value in quick_spark.COMPILED.items():
        spark.conf.set(name, value)
    tables = [table.name for table in spark.catalog.listTables("windrow.cat.deep")]
    columns = [column.name for column in spark.catalog.listColumns(TABLE)]
    for name, value in settings.items():
        spark.conf.set(name, value)
    return {
        "tables": tables,
        "exists": [spark.catalog.tableExists(TABLE), spark.catalog.tableExists(f"{TABLE}_2")],
        "columns": columns,
        "table": spark.table(TABLE).where("id < 5").count(),
        "another session": [
            rows(other, f"SELECT count(*) FROM {TABLE} WHERE day(ds) = 3"),
            _planned(),
        ],
        "option": _error(lambda: spark.read.option("max_split_size", "1MB").table(TABLE).count()),
    }


def _refusals(spark: SparkSession) -> dict[str, str]:
    # Where Spark's own catalog has a table of this name, it is not this one.
    spark.sql("CREATE DATABASE IF NOT EXISTS sales")
    spark.sql(
        "CREATE TABLE sales.catalog_events USING parquet AS "
        "SELECT 1L AS id, 'x' AS name, DATE'2026-11-01' AS ds"
    )
    try:
        refusals = {text: first_line(partial(spark.sql, text)) for text in REFUSALS}
        refusals["rows of Spark's own table"] = str(spark.table("sales.catalog_events").count())
    finally:
        spark.sql("DROP DATABASE sales CASCADE")
    return refusals


def _snapshots(spark: SparkSession, client: windrow.Client, location: Path) -> dict[str, Any]:
    count = f"SELECT count(*) FROM {TABLE}"
    older = spark.table(TABLE)
    first = client.table(_NAME).current_snapshot
    assert first is not None
    spark.sql(f"CACHE TABLE {TABLE}")
    caches = [_is_cached(spark.table(TABLE)), spark.catalog.isCached(TABLE)]
    hive.write_file(location / "ds=2026-11-04" / "part-0.parquet", range(60, 70))
    before = datetime.now(timezone.utc)
    spark.sql(f"REFRESH TABLE {TABLE}")
    caches += [_is_cached(spark.table(TABLE)), _is_cached(older.select("id"))]
    answers = {
        "after REFRESH": rows(spark, count),
        "an older DataFrame": older.count(),
        "version": rows(spark, f"{count} VERSION AS OF {first.snapshot_id}"),
        "version as text": rows(spark, f"{count} VERSION AS OF 'snapshot-{first.snapshot_id}'"),
        # Spark 3.5 has no such option.
        "option": _error(lambda: spark.read.option("versionAsOf", first.snapshot_id).table(TABLE))
        or spark.read.option("versionAsOf", first.snapshot_id).table(TABLE).count(),
        "timestamp": rows(spark, f"{count} TIMESTAMP AS OF '{before.isoformat()}'"),
        "timestamp now": rows(spark, f"{count} TIMESTAMP AS OF now()"),
        "two at once": rows(
            spark,
            f"SELECT count(*), (SELECT count(*) FROM {TABLE}) FROM {TABLE} a "
            f"JOIN {TABLE} VERSION AS OF {first.snapshot_id} b ON a.id = b.id",
        ),
        "no version": first_line(lambda: rows(spark, f"{count} VERSION AS OF 99")),
        "no number": first_line(lambda: rows(spark, f"{count} VERSION AS OF 'main'")),
        "too early": first_line(lambda: rows(spark, f"{count} TIMESTAMP AS OF '2020-01-01'")),
    }
    spark.sql(f"UNCACHE TABLE {TABLE}")
    caches.append(_is_cached(spark.table(TABLE)))
    return answers | {"caches": caches}
