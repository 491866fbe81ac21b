"""Aggregates of partitions by what packs tell of values are those of the rows, and open no file."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import windrow
from tests.support.laws import times
from tests.support.servers import embedded
from tests.support.tables.packs import pack_some, packs_for_few_files
from windrow.spark import recent_scans

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

SETTING = "spark.windrow.figures"
TABLE = "figures.sales"
_LONG_AGO_S = 1_700_000_000
_INTS = {"tiny": (pa.int8(), 8), "small": (pa.int16(), 16), "whole": (pa.int32(), 32)}


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[windrow.Client]:
    with (
        packs_for_few_files(),
        embedded.client(folder / "state", allowed_locations=[str(folder)]) as client,
    ):
        yield client


def rows_of(number: int) -> dict[str, Any]:
    """Return rows with columns of all types that have figures, and of others."""
    draw = random.Random(number)
    count = draw.choice([1, 3, 8])

    def some(values: list[Any], type_: pa.DataType) -> pa.Array:
        is_null = draw.random() < 0.1
        return pa.array(
            [None if is_null or draw.random() < 0.3 else draw.choice(values) for _ in range(count)],
            type_,
        )

    cents = [decimal.Decimal(one) / 100 for one in (-999_999, -1, 0, 7, 999_999)]
    columns = {
        name: some([-(2 ** (bits - 1)), -1, 0, 5, 2 ** (bits - 1) - 1], type_)
        for name, (type_, bits) in _INTS.items()
    }
    return columns | {
        "big": some([-(2**40), -3, 0, 11, 2**45], pa.int64()),
        # So large that sums are not certain.
        "huge": some([2**62, 2**63 - 1, -(2**63)], pa.int64()),
        "price": some(cents, pa.decimal128(8, 2)),
        "much": some([decimal.Decimal(10**27)], pa.decimal128(30, 2)),
        "day": some([dt.date(1600, 1, 1), dt.date(1969, 7, 20), dt.date(2026, 2, 3)], pa.date32()),
        "share": some([0.1, float("nan"), -0.0], pa.float64()),
        "name": some(["a", "", "é"], pa.string()),
    }


def write(path: Path, number: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(rows_of(number)), path, store_decimal_as_integer=number % 2 == 0)
    os.utime(path, (_LONG_AGO_S, _LONG_AGO_S))


@pytest.fixture(scope="module")
def sales(spark: SparkSession, client: windrow.Client, folder: Path) -> str:
    """Return a view of a packed table."""
    location = folder / "sales"
    for at in range(60):
        day = ["2026-01-01", "2026-01-02", "2026-02-01", "2026-03-05"][at % 4]
        write(location / f"ds={day}" / f"k={at % 3}" / f"{at}.parquet", at)
    client.register_table(TABLE, str(location), partition_columns={"ds": "date", "k": "int"})
    pack_some(client, TABLE)
    client.create_view(spark, TABLE, "figured_sales")
    return "figured_sales"


def both(spark: SparkSession, text: str) -> tuple[list[str], list[str], int]:
    """Return the rows of a query without figures and with them, and how many scans the latter made."""
    answers = []
    for value in ("false", "true"):
        spark.conf.set(SETTING, value)
        try:
            before = {scan.plan.plan_id for scan in recent_scans(TABLE)}
            answers.append(sorted(map(str, spark.sql(text).collect())))
        finally:
            spark.conf.unset(SETTING)
        scans = {scan.plan.plan_id for scan in recent_scans(TABLE)} - before
    return answers[0], answers[1], len(scans)


ANSWERED = (
    "SELECT count(*) FROM {t}",
    "SELECT ds, count(*), count(whole), sum(whole), min(whole), max(whole) FROM {t} GROUP BY ds",
    "SELECT sum(tiny), sum(small), sum(whole), sum(big), sum(price) FROM {t}",
    "SELECT month(ds) m, avg(whole) a, avg(tiny), avg(small) FROM {t} GROUP BY month(ds)",
    "SELECT k, min(day), max(day), count(day), min(price), max(price) FROM {t} GROUP BY k",
    "SELECT k, sum(big) FROM {t} WHERE ds > '2026-01-01' GROUP BY k HAVING sum(big) > 0",
    "SELECT k + 1, max(ds), count(DISTINCT ds), sum(price) + sum(whole) FROM {t} GROUP BY k + 1",
    "SELECT count(ds), count(1), count(k), min(k) FROM {t} WHERE ds IS NULL OR k = 2",
    "SELECT sum(s) FROM (SELECT ds, sum(whole) s FROM {t} GROUP BY ds)",
)
NEED_ROWS = (
    "SELECT sum(share) FROM {t}",
    "SELECT sum(tiny + 1) FROM {t}",
    "SELECT count(DISTINCT whole) FROM {t}",
    "SELECT sum(whole) FILTER (WHERE tiny > 0) FROM {t}",
    "SELECT sum(whole) FROM {t} WHERE tiny > 0",
    "SELECT tiny, sum(whole) FROM {t} GROUP BY tiny",
    "SELECT min(name), max(much) FROM {t}",
    "SELECT avg(price) FROM {t}",
    "SELECT try_sum(huge) FROM {t}",
    "SELECT sum(whole), max(k + tiny) FROM {t}",
    "SELECT sum(small), max(k - tiny), min(tiny) FROM {t}",
    "SELECT sum(tiny), min(tiny + 1) FROM {t} GROUP BY k",
    "SELECT whole, sum(whole) FROM {t} GROUP BY whole",
    "SELECT k, count(tiny) FROM {t} GROUP BY k, tiny",
    "SELECT k, sum(t) FROM (SELECT k, tiny AS t, tiny FROM {t}) GROUP BY k",
    "SELECT k, sum(t), max(tiny) FROM (SELECT k, tiny + 1 AS t, tiny FROM {t}) GROUP BY k",
    "SELECT k, first(tiny), sum(tiny) FROM {t} WHERE whole = 5 GROUP BY k",
    "SELECT ds, k, sum(price) FROM {t} GROUP BY ROLLUP (ds, k)",
    # Of no partition.
    "SELECT count(*), sum(whole), avg(whole), min(day) FROM {t} WHERE ds = '2001-01-01'",
    "SELECT k, count(*) FROM {t} WHERE ds = '2001-01-01' GROUP BY k",
)


@pytest.mark.parametrize("text", ANSWERED)
def test_aggregates_that_packs_tell_open_no_file(
    spark: SparkSession, sales: str, text: str
) -> None:
    plain, told, scans = both(spark, text.format(t=sales))
    assert told == plain
    assert scans == 0


@pytest.mark.parametrize("text", NEED_ROWS)
def test_other_aggregates_read_rows(spark: SparkSession, sales: str, text: str) -> None:
    plain, told, scans = both(spark, text.format(t=sales))
    assert told == plain
    assert scans > 0


@pytest.mark.parametrize("reader", ["catalog", "read", "accelerate"])
def test_each_way_to_a_table_has_the_answers_of_its_packs(
    spark: SparkSession, client: windrow.Client, sales: str, folder: Path, reader: str
) -> None:
    query = "SELECT k, count(*), sum(whole), avg(small) FROM {t} GROUP BY k"
    plain, _, _ = both(spark, query.format(t=sales))
    windrow.register(spark, client)
    if reader == "catalog":
        answers = both(spark, query.format(t=f"windrow.{TABLE}"))
    elif reader == "read":
        client.read(spark, TABLE).createOrReplaceTempView("read_sales")
        answers = both(spark, query.format(t="read_sales"))
    else:
        spark.read.parquet(str(folder / "sales")).createOrReplaceTempView("own_sales")
        with windrow.accelerate(spark, client, max_staleness=86_400, wait_s=60):
            answers = both(spark, query.format(t="own_sales"))
    assert answers == (plain, plain, 0)


def test_files_that_no_pack_holds_are_read_again(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "changing"
    for at in range(12):
        write(location / f"k={at % 3}" / f"{at}.parquet", at)
    client.register_table("figures.changing", str(location))
    pack_some(client, "figures.changing")

    def answers(where: str) -> tuple[list[str], list[str], int]:
        client.create_view(spark, "figures.changing", "changing")
        before = len(recent_scans("figures.changing"))
        plain, told, _ = both(
            spark, f"SELECT k, count(*), sum(big) FROM changing {where} GROUP BY k"
        )
        # One scan is that without figures.
        return plain, told, len(recent_scans("figures.changing")) - before - 1

    plain, told, scans = answers("")
    assert (told, scans) == (plain, 0)
    write(location / "k=1" / "new.parquet", 99)
    client.refresh("figures.changing")
    plain, told, scans = answers("")
    assert (told, scans) == (plain, 1)
    # Packs hold all files of the other partitions.
    plain, told, scans = answers("WHERE k <> 1")
    assert (told, scans) == (plain, 0)
    shutil.copy(location / "k=2" / "5.parquet", location / "k=2" / "2.parquet")
    client.refresh("figures.changing")
    plain, told, scans = answers("WHERE k = 2")
    assert (told, scans) == (plain, 1)
    (location / "k=0" / "0.parquet").unlink()
    client.refresh("figures.changing")
    plain, told, scans = answers("WHERE k = 0")
    assert (told, scans) == (plain, 0)


def test_more_columns_than_one_request_may_have_are_read(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    names = [f"c{at}" for at in range(101)]
    for at in range(4):
        path = folder / "wide" / f"k={at % 2}" / f"{at}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({name: [at, None] for name in names}), path)
        os.utime(path, (_LONG_AGO_S, _LONG_AGO_S))
    client.register_table("figures.wide", str(folder / "wide"))
    pack_some(client, "figures.wide")
    rows = client.read(spark, "figures.wide")

    sums = rows.agg(*(F.sum(name) for name in names)).collect()

    assert [tuple(row) for row in sums] == [(6,) * 101]


def test_random_aggregates_of_partitions_are_those_of_rows(spark: SparkSession, sales: str) -> None:
    columns = ("tiny", "small", "whole", "big", "huge", "price", "day", "k", "ds")
    calls = ("count", "min", "max", "sum", "avg", "count", "sum")
    keys = (
        "ds",
        "k",
        "month(ds)",
        "k % 2",
        "ds IS NULL",
        "coalesce(k, 0) + 1",
        "tiny",
        "k + small",
    )
    conditions = (
        "",
        "k <> 1",
        "ds >= '2026-01-02'",
        "ds IS NULL",
        "k IN (0, 2) OR ds < '2026-01-02'",
    )
    answered = 0
    for number in range(times(2_000, by_day=30)):
        draw = random.Random(f"aggregates/{number}")
        group = draw.sample(keys, draw.randrange(3))
        wanted = [
            f"{call}({column})"
            for call, column in [
                (draw.choice(calls), draw.choice(columns)) for _ in range(draw.randrange(1, 5))
            ]
            if not (column in ("day", "ds") and call in ("sum", "avg"))
        ]
        outputs = ", ".join([*group, *wanted, "count(*)"])
        where = draw.choice(conditions)
        text = f"SELECT {outputs} FROM {sales}" + (f" WHERE {where}" if where else "")
        text += f" GROUP BY {', '.join(group)}" if group else ""
        # Sums of the largest numbers overflow.
        with_ansi = "huge" not in text and draw.random() < 0.5
        spark.conf.set("spark.sql.ansi.enabled", json.dumps(with_ansi))
        try:
            plain, told, scans = both(spark, text)
        finally:
            spark.conf.unset("spark.sql.ansi.enabled")
        assert told == plain, text
        answered += scans == 0
    assert answered > times(2_000, by_day=30) * 0.3
