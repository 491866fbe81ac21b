"""The residual filter keeps exactly the rows that Spark's own filter keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windrow_tables.executor.filters import matching

pytestmark = pytest.mark.spark

ROWS = """SELECT id,
CASE id % 8 WHEN 0 THEN NULL WHEN 1 THEN double('NaN') WHEN 2 THEN -0.0D WHEN 3 THEN 0.0D
  WHEN 4 THEN double('Infinity') WHEN 5 THEN double('-Infinity') ELSE id - 10D END AS f,
CASE id % 5 WHEN 0 THEN NULL WHEN 1 THEN float('NaN') ELSE CAST(id / 10 AS float) END AS g,
CASE id % 4 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN concat('é', id) ELSE 'Z%_' END AS s,
IF(id % 3 = 0, NULL, CAST(id - 10 AS tinyint)) AS i,
IF(id % 3 = 1, NULL, CAST((id - 10) / 4 AS decimal(6,2))) AS d,
IF(id % 3 = 2, NULL, date_add(DATE '1969-12-25', CAST(id AS int))) AS t,
IF(id % 4 = 1, NULL, timestamp_micros(id - 10)) AS z,
CASE id % 3 WHEN 0 THEN NULL WHEN 1 THEN true ELSE false END AS b
FROM RANGE(40)"""


def compared(op: str, column: str, value: Any) -> dict[str, Any]:
    return {"op": op, "column": column, "value": value}


SIGNS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
LITERALS: list[tuple[str, Any, str]] = [
    ("f", 0.0, "0.0D"),
    ("f", -3, "-3"),
    ("f", float("nan"), "double('NaN')"),
    ("f", float("inf"), "double('Infinity')"),
    ("g", 1.1, "1.1D"),
    ("g", float("nan"), "double('NaN')"),
    ("s", "é22", "'é22'"),
    ("s", "", "''"),
    ("i", 3, "3"),
    ("i", 4000, "4000"),
    ("d", "0.5", "0.5"),
    ("d", "0.505", "0.505"),
    ("d", "-12345678.9", "-12345678.9"),
    ("t", "1970-01-01", "DATE '1970-01-01'"),
    ("z", "1970-01-01T00:00:00.000003Z", "TIMESTAMP '1970-01-01 00:00:00.000003Z'"),
    ("b", True, "true"),
    ("i", None, "NULL"),
]
CASES = [
    (compared(op, column, value), f"{column} {sign} {text}")
    for column, value, text in LITERALS
    for op, sign in SIGNS.items()
]
CASES += [
    ({"op": "in", "column": "f", "values": [0.0, 7]}, "f IN (0.0D, 7D)"),
    ({"op": "in", "column": "f", "values": [float("nan")]}, "f IN (double('NaN'))"),
    ({"op": "in", "column": "i", "values": [1, None, 300]}, "i IN (1, NULL, 300)"),
    (
        {"op": "not", "arg": {"op": "in", "column": "i", "values": [1, None]}},
        "i NOT IN (1, NULL)",
    ),
    ({"op": "not", "arg": {"op": "in", "column": "s", "values": ["", "x"]}}, "s NOT IN ('', 'x')"),
    ({"op": "in", "column": "d", "values": ["0.5", "0.505"]}, "d IN (0.5, 0.505)"),
    ({"op": "between", "column": "f", "low": 0, "high": float("nan")}, "f BETWEEN 0 AND 'NaN'"),
    ({"op": "between", "column": "i", "low": None, "high": 3}, "i BETWEEN NULL AND 3"),
    ({"op": "starts_with", "column": "s", "prefix": "é"}, "s LIKE 'é%'"),
    ({"op": "starts_with", "column": "s", "prefix": "Z%_"}, "startswith(s, 'Z%_')"),
    ({"op": "starts_with", "column": "s", "prefix": ""}, "s LIKE '%'"),
    ({"op": "is_null", "column": "g"}, "g IS NULL"),
    ({"op": "is_not_null", "column": "z"}, "z IS NOT NULL"),
    (
        {
            "op": "or",
            "args": [compared("gt", "i", 3), {"op": "not", "arg": compared("lt", "f", 1)}],
        },
        "i > 3 OR NOT f < 1",
    ),
    (
        {
            "op": "not",
            "arg": {"op": "and", "args": [compared("eq", "b", True), compared("gt", "d", "0")]},
        },
        "NOT (b = true AND d > 0)",
    ),
]


def test_every_filter_has_the_same_values_as_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(ROWS).coalesce(1).write.parquet(str(tmp_path / "t"))
    file = next((tmp_path / "t").glob("*.parquet"))
    table = pq.ParquetFile(file, coerce_int96_timestamp_unit="us").read()
    # Spark may store instants as INT96, which Arrow reads without a zone.
    at = table.schema.get_field_index("z")
    table = table.set_column(at, "z", table["z"].cast(pa.timestamp("us", "UTC")))
    asked = [F.expr(sql).alias(str(n)) for n, (_, sql) in enumerate(CASES)]

    answers = {tree_sql: matching(tree, table).to_pylist() for tree, tree_sql in CASES}

    spark_rows = spark.read.parquet(str(tmp_path / "t")).select("id", *asked).collect()
    assert [row["id"] for row in spark_rows] == table["id"].to_pylist()
    expected = {sql: [row[n + 1] for row in spark_rows] for n, (_, sql) in enumerate(CASES)}
    assert answers == expected
