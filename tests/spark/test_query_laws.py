"""Any query on any table gives Spark's rows, whichever reader reads its files."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import windrow
from tests.support.laws import examples
from windrow_spark.relation.division import Reader

pytestmark = pytest.mark.spark

READERS: tuple[Reader, ...] = ("auto", "grouped", "native")

# How each column is stored: the table's own type first, then one that widens to it.
TYPES = {
    "id": (pa.int64(), pa.int32()),
    "name": (pa.string(), pa.dictionary(pa.int32(), pa.string())),
    "day": (pa.date32(), pa.date32()),
    "score": (pa.float64(), pa.float32()),
    "price": (pa.decimal128(12, 2), pa.decimal128(9, 2)),
    "at": (pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC")),
}
FIRST = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "id": st.integers(-5, 20),
    "name": st.sampled_from(["", "a", "ab", "é", "b%"]),
    "day": st.dates(dt.date(2026, 1, 1), dt.date(2026, 1, 9)),
    "score": st.sampled_from([-1.5, -0.0, 0.0, 0.25, 1024.0, float("nan"), float("inf")]),
    "price": st.decimals(-99, 99, places=2),
    "at": st.integers(0, 48).map(lambda hours: FIRST + dt.timedelta(hours=hours)),
}
CONDITIONS = (
    "id > 3",
    "id IS NULL OR name = 'ab'",
    "name LIKE 'a%' AND id % 2 = 0",
    "NOT (day <= '2026-01-04')",
    "score >= 0",
    "price BETWEEN -5 AND 50.5",
    "region = 'x y' OR id <=> NULL",
    "number > 1 AND score <> 0",
    "at < timestamp'2026-01-02 00:00:00'",
    "id IN (1, 2, 3, NULL)",
)
QUERIES = (
    "SELECT * FROM {t} WHERE {c}",
    "SELECT id + 1 AS next, upper(region) FROM {t} WHERE {c}",
    "SELECT count(*) FROM {t} WHERE {c}",
    "SELECT region, count(*), sum(id), max(price), count(DISTINCT name) FROM {t} WHERE {c} "
    "GROUP BY region",
    "SELECT a.id, b.name, b.number FROM (SELECT * FROM {t} WHERE {c}) a JOIN {t} b ON a.id = b.id",
    "SELECT t.id, s.word FROM {t} t JOIN (VALUES (1, 'one'), (2, 'two')) s(n, word) "
    "ON t.number = s.n WHERE {c}",
    "SELECT id, name, day, number FROM {t} WHERE {c} ORDER BY id, name, day, number LIMIT 3",
    "SELECT count(*) FROM (SELECT * FROM {t} LIMIT 4)",
    "SELECT id, rank() OVER (PARTITION BY number ORDER BY id) AS place FROM {t} WHERE {c}",
)


@st.composite
def tables(draw: st.DrawFn) -> list[tuple[str, pa.Table]]:
    """Draw the files of a table: the folder of each, and its columns.

    Files with narrower types, or dictionaries, are read in groups by every reader, so that scans
    are mixed whatever the costs of reading.
    """
    files = []
    for number in range(draw(st.integers(1, 5))):
        region = draw(st.sampled_from(["x%20y", "é", "__HIVE_DEFAULT_PARTITION__"]))
        folder = f"region={region}/number={draw(st.integers(1, 3))}"
        count = draw(st.integers(0, 8))
        columns = {}
        for name, types in TYPES.items():
            # The first file has every column, in the table's own type.
            how = draw(st.sampled_from([0, 0, 0, 1, None])) if number and name != "id" else 0
            if how is not None:
                values = draw(st.lists(st.none() | VALUES[name], min_size=count, max_size=count))
                columns[name] = pa.array(values, types[0]).cast(types[how])
        files.append((folder, pa.table(columns)))
    return files


_numbers = itertools.count()


@examples(6, deadline=None)
@given(
    files=tables(),
    asked=st.lists(
        st.tuples(st.sampled_from(QUERIES), st.sampled_from(CONDITIONS)), min_size=2, max_size=2
    ),
)
def test_every_query_gives_sparks_rows_with_every_reader(
    spark: SparkSession,
    client: windrow.Client,
    folder: Path,
    files: list[tuple[str, pa.Table]],
    asked: list[tuple[str, str]],
) -> None:
    number = next(_numbers)
    location = folder / f"table{number}"
    for place, (partition, rows) in enumerate(files):
        path = location / partition / f"part {place}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path)
    table = f"laws.table{number}"
    client.register_table(table, str(location))
    client.refresh(table)
    schema = client.read(spark, table).schema
    spark.read.schema(schema).parquet(str(location)).createOrReplaceTempView("laws_spark")
    for reader in READERS:
        client.create_view(spark, table, f"laws_{reader}", reader=reader)
    for query, condition in asked:
        with _without_pushdown(spark):
            answers = {
                side: sorted(
                    str(row) for row in spark.sql(query.format(t=side, c=condition)).collect()
                )
                for side in ("laws_spark", *(f"laws_{reader}" for reader in READERS))
            }
        assert all(answer == answers["laws_spark"] for answer in answers.values()), answers


@pytest.mark.parametrize(
    "reader", ["grouped", "native", pytest.param("auto", marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("type_", [pa.float64(), pa.struct([("f", pa.float32())])])
@pytest.mark.parametrize("value", [-0.0, math.nan])
def test_zero_and_nan_are_found_although_spark_skips_their_row_groups(
    spark: SparkSession,
    client: windrow.Client,
    folder: Path,
    value: float,
    type_: pa.DataType,
    reader: Reader,
) -> None:
    location = folder / f"zero{next(_numbers)}"
    location.mkdir()
    name = "score" if type_ == pa.float64() else "score.f"
    rows = [-1.5, value] if name == "score" else [{"f": -1.5}, {"f": value}]
    schema = pa.schema([("id", pa.int64()), ("score", type_)])
    pq.write_table(pa.table({"id": [1, 2], "score": rows}, schema), location / "part.parquet")
    table = f"laws.{location.name}"
    client.register_table(table, str(location))
    client.refresh(table)

    for asked in (f"{name} >= 0", f"id > 0 AND {name} >= 0", f"NOT ({name} < 0)"):
        found = client.read(spark, table, reader=reader).where(asked).select("id")
        assert [row.id for row in found.collect()] == [2], asked
        if name == "score":
            assert spark.read.parquet(str(location)).where(asked).collect() == []


@contextmanager
def _without_pushdown(spark: SparkSession) -> Iterator[None]:
    """Keep Spark's reader from skipping row groups, as it loses rows with -0.0 and NaN."""
    spark.conf.set("spark.sql.parquet.filterPushdown", "false")
    try:
        yield
    finally:
        spark.conf.unset("spark.sql.parquet.filterPushdown")
