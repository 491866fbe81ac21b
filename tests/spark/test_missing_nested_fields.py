"""Nested fields that a file lacks are NULL, and leave what they are part of as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import windrow
import windrow.errors
from windrow_spark.relation.division import Reader

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

READERS: tuple[Reader, ...] = ("grouped", "native")
BOTH = pa.struct([("a", pa.int64()), ("b", pa.string())])
ONLY_A = pa.struct([("a", pa.int64())])
# Together they are read whole; alone, Spark reads only the fields that they need.
TOGETHER = (
    "s IS NULL",
    "s.b IS NULL",
    "s IS NOT NULL AND s.b IS NULL",
    "o IS NULL",
    "o.i IS NULL",
    "get(l, 0) IS NULL",
    "size(l) > 0",
    "m['k'] IS NULL",
    "exists(l, x -> x.b IS NULL)",
    "to_json(struct(s, l, m, o))",
)
ALONE = ("s.b", "o.i.b", "l.b", "m['k'].b", "s IS NULL", "o IS NOT NULL AND o.i.b IS NULL")


def _rows(of: pa.StructType, value: dict[str, Any]) -> pa.Table:
    """Return rows with a value, with NULL, with a struct of nulls, and with empty lists."""
    nulls = dict.fromkeys(value)
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("s", of),
            ("l", pa.list_(of)),
            ("m", pa.map_(pa.string(), of)),
            ("o", pa.struct([("i", of)])),
        ]
    )
    rows = [
        {"s": value, "l": [value, None], "m": [("k", value), ("z", None)], "o": {"i": value}},
        {},
        {"s": nulls, "l": [nulls], "m": [("k", nulls)], "o": {"i": None}},
        {"s": nulls, "l": [], "m": [], "o": {"i": nulls}},
    ]
    return pa.Table.from_pylist([{"id": at, **row} for at, row in enumerate(rows)], schema)


@pytest.fixture(scope="module")
def table(spark: SparkSession, client: windrow.Client, folder: Path) -> str:
    """A table of a file with all fields, one without a nested field, and one without the columns."""
    location = folder / "t"
    location.mkdir()
    pq.write_table(_rows(BOTH, {"a": 1, "b": "x"}), location / "1.parquet")
    pq.write_table(_rows(ONLY_A, {"a": 1}), location / "2.parquet")
    pq.write_table(pa.table({"id": [9]}), location / "3.parquet")
    client.register_table("nested.t", str(location))
    client.refresh("nested.t")
    schema = client.read(spark, "nested.t").schema
    spark.read.schema(schema).parquet(str(location)).createOrReplaceTempView("nested_by_spark")
    return "nested.t"


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("asked", [TOGETHER, *((one,) for one in ALONE)])
def test_missing_nested_fields_are_as_in_spark(
    spark: SparkSession, client: windrow.Client, table: str, reader: Reader, asked: tuple[str, ...]
) -> None:
    expected = spark.table("nested_by_spark").selectExpr("id", *asked).collect()

    found = client.read(spark, table, reader=reader).selectExpr("id", *asked).collect()

    assert sorted(map(str, found)) == sorted(map(str, expected))


def test_a_struct_declared_with_none_of_a_files_fields_is_refused_by_name(
    client: windrow.Client, folder: Path
) -> None:
    location = folder / "alone"
    location.mkdir()
    pq.write_table(_rows(ONLY_A, {"a": 1}), location / "1.parquet")
    columns = {"id": "bigint", "s": "struct<b:string>"}
    client.register_table("nested.alone", str(location), columns=columns)

    # Spark's releases disagree on which of its rows are NULL.
    with pytest.raises(windrow.errors.RefreshFailedError, match="column 's' is struct<a:bigint>"):
        client.refresh("nested.alone")
