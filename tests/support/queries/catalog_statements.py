"""Statements on tables of the catalog `windrow`: what each does, or which words refuse it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

TABLE = "stated.events"
_NAMES = {"T": f"windrow.{TABLE}", "N": "windrow.stated", "O": "stated_own"}
_CHANGES = "whose columns and partitions are those of its files: client.register_table"
_NO_VIEWS = "Catalog windrow does not support views"
_WRITES = "use client.write"
_NO_ANALYSIS = r"SET spark\.sql\.cbo\.enabled=true"
_REFRESH = "REFRESH TABLE finds new ones"

# What a statement says if it is refused, on the newest Spark; None if it works. `T` is the table,
# `N` its namespace, `O` a namespace of Spark's own catalog.
STATEMENTS: Final[dict[str, str | None]] = {
    "CREATE VIEW N.v AS SELECT * FROM T": _NO_VIEWS,
    "CREATE OR REPLACE VIEW N.v (x COMMENT 'a') COMMENT 'b' AS SELECT id FROM T": _NO_VIEWS,
    "CREATE VIEW IF NOT EXISTS T AS SELECT 1 AS a": _NO_VIEWS,
    "CREATE TEMPORARY VIEW stated AS SELECT id FROM T": None,
    "CREATE VIEW O.v AS SELECT id FROM T": None,
    "SELECT * FROM O.v": None,
    "ALTER VIEW N.v AS SELECT 2 AS b": _NO_VIEWS,
    "ALTER VIEW N.v RENAME TO N.w": "TABLE_OR_VIEW_NOT_FOUND",
    "ALTER VIEW N.v SET TBLPROPERTIES ('a'='b')": _NO_VIEWS,
    "DROP VIEW N.v": _NO_VIEWS,
    "DROP VIEW IF EXISTS T": _NO_VIEWS,
    "SHOW VIEWS IN N": _NO_VIEWS,
    "CREATE FUNCTION N.f AS 'x.Y'": "does not support CREATE FUNCTION",
    "SHOW FUNCTIONS IN N": "does not support functions",
    "CALL windrow.system.x()": "call one of",
    "CALL windrow.system.refresh(table => 'stated.events')": None,
    "CALL windrow.system.erase(table => 'stated.events', where => 'id = 1', dry_run => true)": None,
    "DESCRIBE PROCEDURE windrow.system.erase": None,
    "SHOW PROCEDURES IN windrow.system": None,
    "SHOW TABLES IN N": None,
    "SHOW TABLES IN windrow.nowhere": "SCHEMA_NOT_FOUND",
    "SHOW TABLE EXTENDED IN N LIKE '*'": None,
    "SHOW TABLE EXTENDED IN N LIKE 'events' PARTITION (ds='2026-11-01')": None,
    "SHOW TBLPROPERTIES T": None,
    "SHOW TBLPROPERTIES T ('format')": None,
    "SHOW COLUMNS IN T": None,
    "SHOW PARTITIONS T": None,
    "SHOW PARTITIONS T PARTITION (ds='2026-11-01')": None,
    "SHOW PARTITIONS T PARTITION (nope=1)": "PARTITIONS_NOT_FOUND",
    "SHOW CREATE TABLE T": None,
    "SHOW CREATE TABLE T AS SERDE": "SHOW CREATE TABLE AS SERDE is not supported",
    "SHOW NAMESPACES IN windrow": None,
    "DESCRIBE T": None,
    "DESCRIBE EXTENDED T": None,
    "DESCRIBE FORMATTED T": None,
    "DESCRIBE EXTENDED T AS JSON": None,
    "DESCRIBE T id": None,
    "DESCRIBE EXTENDED T id": None,
    "DESCRIBE T nope": "UNRESOLVED_COLUMN",
    "DESCRIBE EXTENDED T PARTITION (ds='2026-11-01')": None,
    "DESCRIBE EXTENDED T PARTITION (ds='2026-11-01') AS JSON": "use DESCRIBE EXTENDED",
    "DESCRIBE NAMESPACE EXTENDED N": None,
    "DESCRIBE QUERY SELECT * FROM T": None,
    "EXPLAIN EXTENDED SELECT * FROM T": None,
    "ANALYZE TABLE T COMPUTE STATISTICS": _NO_ANALYSIS,
    "ANALYZE TABLE T COMPUTE STATISTICS NOSCAN": _NO_ANALYSIS,
    "ANALYZE TABLE T COMPUTE STATISTICS FOR ALL COLUMNS": _NO_ANALYSIS,
    "ANALYZE TABLE T PARTITION (ds='2026-11-01') COMPUTE STATISTICS": _NO_ANALYSIS,
    "ANALYZE TABLES IN N COMPUTE STATISTICS": _NO_ANALYSIS,
    "CACHE TABLE T": None,
    "UNCACHE TABLE T": None,
    "CACHE LAZY TABLE stated_rows AS SELECT * FROM T": None,
    "UNCACHE TABLE stated_rows": None,
    "REFRESH TABLE T": None,
    "REFRESH TABLE N.nothing": "TABLE_OR_VIEW_NOT_FOUND",
    "TRUNCATE TABLE T": _WRITES,
    "TRUNCATE TABLE T PARTITION (ds='2026-11-01')": "client.drop_partitions",
    "DELETE FROM T": "without a condition would erase all rows",
    "DELETE FROM T WHERE id % 2 = 1": "collect keys of the rows",
    "DELETE FROM T WHERE id IN (SELECT id FROM O.own)": "collect keys of the rows",
    "DELETE FROM T WHERE id = 1000": None,
    "UPDATE T SET name = 'y' WHERE id = 1": _WRITES,
    "MERGE INTO T t USING O.own s ON t.id = s.id WHEN MATCHED THEN DELETE": _WRITES,
    "COMMENT ON TABLE T IS 'x'": _CHANGES,
    "COMMENT ON NAMESPACE N IS 'x'": "cannot be changed",
    "COMMENT ON COLUMN T.id IS 'x'": _CHANGES,
    "MSCK REPAIR TABLE T": _REFRESH,
    "MSCK REPAIR TABLE T SYNC PARTITIONS": _REFRESH,
    "ALTER TABLE T RECOVER PARTITIONS": _REFRESH,
    "ALTER TABLE T ADD COLUMNS (x INT FIRST)": _CHANGES,
    "ALTER TABLE T DROP COLUMN name": _CHANGES,
    "ALTER TABLE T RENAME COLUMN name TO w": _CHANGES,
    "ALTER TABLE T ALTER COLUMN id COMMENT 'x'": _CHANGES,
    "ALTER TABLE T ALTER COLUMN id SET NOT NULL": "Cannot change nullable column",
    "ALTER TABLE T REPLACE COLUMNS (id bigint)": _CHANGES,
    "ALTER TABLE T RENAME TO N.other": _CHANGES,
    "ALTER TABLE T SET TBLPROPERTIES ('a'='b')": _CHANGES,
    "ALTER TABLE T UNSET TBLPROPERTIES ('a')": _CHANGES,
    "ALTER TABLE T SET LOCATION '/tmp/x'": _CHANGES,
    "ALTER TABLE T PARTITION (ds='2026-11-01') SET LOCATION '/tmp/x'": _CHANGES,
    "ALTER TABLE T SET SERDEPROPERTIES ('a'='b')": _CHANGES,
    "ALTER TABLE T ADD PARTITION (ds='2020-11-02')": _CHANGES,
    "ALTER TABLE T ADD IF NOT EXISTS PARTITION (ds='2026-11-01')": None,
    "ALTER TABLE T DROP PARTITION (ds='2026-11-01')": _CHANGES,
    "ALTER TABLE T DROP IF EXISTS PARTITION (ds='2020-11-01')": None,
    "ALTER TABLE T PARTITION (ds='2026-11-01') RENAME TO PARTITION (ds='2026-11-09')": _CHANGES,
    "ALTER TABLE T CLUSTER BY (id)": _CHANGES,
    "ALTER TABLE T ADD CONSTRAINT c CHECK (id > 0)": "does not support ADD CONSTRAINT",
    "DROP TABLE T": "client.delete_table",
    "DROP TABLE IF EXISTS N.nothing": None,
    "DROP TABLE T PURGE": "client.delete_table",
    "CREATE NAMESPACE windrow.n2": "register a table whose name begins with it",
    "CREATE NAMESPACE IF NOT EXISTS N": None,
    "DROP NAMESPACE N CASCADE": "client.delete_table",
    "ALTER NAMESPACE N SET PROPERTIES ('a'='b')": "cannot be changed",
    "LOAD DATA INPATH '/tmp/x' INTO TABLE T": "INSERT INTO",
    "CREATE TABLE N.copied LIKE T": "does not support CREATE TABLE LIKE",
    "CREATE INDEX i ON TABLE T (id)": "bloom_columns",
    "CREATE TABLE N.e (id INT) USING delta": "write USING windrow",
    "CREATE TABLE N.e (id INT NOT NULL) LOCATION '/tmp/x'": "which no table ensures",
    "CREATE TABLE N.e (id INT, CHECK (id > 0))": "does not support table constraint",
    "CREATE TABLE N.e (id INT DEFAULT 3)": "does not support column default value",
    "CREATE TABLE N.e (id INT) CLUSTERED BY (id) INTO 4 BUCKETS LOCATION '/tmp/x'": (
        "name columns alone"
    ),
    "CREATE TABLE N.e (id INT) COMMENT 'x'": "leave it out",
    "CREATE TABLE N.e (id INT) TBLPROPERTIES ('definition'='{}')": "leave it out",
    "REPLACE TABLE T AS SELECT 1 AS id": "client.delete_table",
    "INSERT INTO T VALUES (1)": "not enough data columns",
    "INSERT INTO N.nothing VALUES (1)": "TABLE_OR_VIEW_NOT_FOUND",
    "SELECT * FROM T.files": "TABLE_OR_VIEW_NOT_FOUND",
    "SELECT count(*) FROM T VERSION AS OF 1": None,
    "SELECT count(*) FROM T TABLESAMPLE (10 PERCENT)": None,
    "SELECT _metadata.file_path FROM T LIMIT 1": None,
    "USE N": None,
    "SHOW VIEWS": _NO_VIEWS,
    "DESCRIBE events": None,
    "CREATE VIEW v AS SELECT 1 AS a": _NO_VIEWS,
    "USE spark_catalog.default": None,
    "DROP VIEW O.v": None,
}
# What tells only how this software, or Spark, is made.
_INSIDE = re.compile(
    r"ClassCast|NullPointer|MatchError|INTERNAL_ERROR|Catalog@|windrow\.\w+[@$]|@\d+-\d+|"
    r"java\.lang\.|scala\.|\$\$"
)


def outcomes(spark: SparkSession) -> dict[str, str]:
    """Return what each statement gives: its rows, or its error, as text.

    Args:
        spark: A session with the catalog, whose table is there.
    """
    spark.sql("CREATE DATABASE IF NOT EXISTS stated_own")
    spark.sql("CREATE TABLE IF NOT EXISTS stated_own.own (id INT, name STRING) USING parquet")
    answers = {}
    for statement in STATEMENTS:
        text = re.sub(r"\b[TNO]\b", lambda one: _NAMES[one[0]], statement)
        try:
            answers[statement] = f"rows: {spark.sql(text).collect()}"
        except Exception as error:
            # What follows is the JVM's trace, which PySpark adds to some.
            words = str(error).partition("JVM stacktrace")[0]
            answers[statement] = f"error: {type(error).__name__}: {words}"
    return answers


def inside_words(answers: dict[str, str]) -> dict[str, str]:
    """Return what statements said that is not for users."""
    return {
        statement: text
        for statement, text in answers.items()
        if _INSIDE.search(text) or text.startswith(("error: Py4J", "error: SparkException"))
    }


def files_below(folder: Path) -> dict[str, int]:
    """Return all files of a folder with their times."""
    return {str(one): one.stat().st_mtime_ns for one in folder.rglob("*") if one.is_file()}
