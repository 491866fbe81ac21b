"""Rows that queries read in place from packed batches equal those of Spark's own reader."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.servers import embedded
from tests.support.spark.quick_spark import COMPILED, INTERPRETED

pytestmark = pytest.mark.spark

# More than one batch, so that rows lie in several batches and in the middle of buffers.
ROWS = 70_001


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[windrow.Client]:
    folder = tmp_path_factory.mktemp("packed")
    with embedded.client(folder / "state", allowed_locations=[str(folder.parent)]) as client:
        yield client


@pytest.fixture(scope="module")
def packed(client: windrow.Client, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the table `sales.packed`."""
    location = tmp_path_factory.mktemp("packed") / "files"
    table = pa.table(columns(ROWS))
    for part, rows in enumerate((table, table[-2_000:])):
        (location / f"part={part}").mkdir(parents=True)
        pq.write_table(rows, location / f"part={part}" / "a.parquet")
    client.register_table("sales.packed", str(location))
    client.refresh("sales.packed")
    return location


def columns(rows: int) -> dict[str, pa.Array]:
    """Return columns of every type that is packed: one without nulls, the others with nulls."""
    number = np.arange(rows)
    wide = [Decimal(10**37 - n) * (-1) ** n for n in range(251)]
    lists = {
        "flag": pa.array(number % 3 == 0),
        "tiny": pa.array((number % 256 - 128).astype(np.int8)),
        "small": pa.array((number % 65_536 - 32_768).astype(np.int16)),
        "whole": pa.array((number * 30_677 - 2**31 + 1).astype(np.int32)),
        "long": pa.array(number * -(2**47)),
        "single": pa.array((number / 7).astype(np.float32)),
        "double": pa.array(np.where(number % 5, number / 7, -0.0)),
        "day": pa.array((number - 40_000).astype(np.int32)).cast(pa.date32()),
        "at": pa.array(number * 10**9 - 10**12, pa.timestamp("us", "UTC")),
        "local": pa.array(number * 10**9 - 10**12, pa.timestamp("us")),
        "text": pa.array([["", "x", "naïve", "日本語" * 9][n % 4] for n in range(rows)]),
        "raw": pa.array([bytes(range(n % 7)) for n in range(rows)]),
        "price": pa.array(
            [Decimal(n - 9_000).scaleb(-2) for n in range(rows)], pa.decimal128(9, 2)
        ),
        "most": pa.array([wide[n % 251] for n in range(rows)], pa.decimal128(38, 0)),
    }
    mask = pa.array(number % 11 == 4)
    nullable = {
        name: pa.compute.if_else(mask, pa.scalar(None, column.type), column)
        for name, column in lists.items()
    }
    return {"id": pa.array(number), **nullable}


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(COMPILED, id="compiled"),
        pytest.param(INTERPRETED, id="interpreted", marks=pytest.mark.nightly),
    ],
)
def test_every_type_has_the_values_that_spark_reads(
    spark: SparkSession, client: windrow.Client, packed: Path, how: dict[str, str]
) -> None:
    client.read(spark, "sales.packed", reader="grouped").createOrReplaceTempView("ours")
    spark.read.parquet(str(packed)).createOrReplaceTempView("theirs")
    names = ", ".join(spark.table("theirs").columns)
    queries = (
        f"SELECT count(*), bit_xor(xxhash64({names})), sum(hash({names})) FROM {{0}}",
        # These keep values of one batch while they read the next.
        "SELECT max(text), min(raw), max(most), min(price), max(at), min(day), last(text) FROM {0} "
        "WHERE id < 70000",
        "SELECT * FROM {0} WHERE id % 9973 = 15 ORDER BY text, id, part",
        "SELECT text, collect_list(id), collect_set(raw) FROM (SELECT * FROM {0} WHERE id % 6007 = 2 "
        "ORDER BY id, part) GROUP BY text ORDER BY text",
        "SELECT id, lag(text) OVER (PARTITION BY part ORDER BY id) FROM {0} WHERE id > 69990",
    )
    for name, value in how.items():
        spark.conf.set(name, value)
    try:
        for query in queries:
            ours, theirs = (spark.sql(query.format(of)).collect() for of in ("ours", "theirs"))
            assert len(ours) > 0, query
            assert sorted(map(repr, ours)) == sorted(map(repr, theirs)), query
    finally:
        for name in how:
            spark.conf.unset(name)


def test_old_dates_and_extreme_values_arrive_unchanged(
    spark: SparkSession, client: windrow.Client, tmp_path: Path
) -> None:
    location = tmp_path / "extremes"
    location.mkdir()
    table = pa.table(
        {
            "n": pa.array([-(2**63), 2**63 - 1, None]),
            "d": pa.array([Decimal(10**38 - 1), Decimal(1 - 10**38), None], pa.decimal128(38, 0)),
            "e": pa.array([Decimal(10**18 - 1), Decimal(1 - 10**18), None], pa.decimal128(18, 0)),
            "f": pa.array([float("nan"), float("-inf"), None]),
            "day": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
        }
    )
    pq.write_table(table, location / "a.parquet")
    client.register_table("sales.extremes", str(location))
    client.refresh("sales.extremes")

    rows = client.read(spark, "sales.extremes", reader="grouped").collect()

    assert list(map(repr, rows)) == list(map(repr, spark.read.parquet(str(location)).collect()))
