"""`DELETE FROM` erases the rows for which Spark finds its condition TRUE, and touches nothing else."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import windrow
from tests.support.laws import examples
from tests.support.queries.random_conditions import PARTITION, TYPES, column_of, conditions, tables
from tests.support.tables import hive

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

_PUSHDOWN = "spark.sql.parquet.filterPushdown"
_EACH = 6
_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _registered(spark: SparkSession, client: windrow.Client) -> None:
    windrow.register(spark, client)


@contextmanager
def _without_pushdown(spark: SparkSession) -> Iterator[None]:
    """Let Spark look at all rows: by bounds it skips row groups with zeros and NaN."""
    spark.conf.set(_PUSHDOWN, "false")
    try:
        yield
    finally:
        spark.conf.unset(_PUSHDOWN)


def marks(location: Path) -> dict[str, tuple[int, int]]:
    """Return inode and time of change of each data file."""
    return {
        path.relative_to(location).as_posix(): (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in location.glob("region=*/**/*.parquet")
    }


def bits(rows: pa.Table) -> dict[str, list[Any]]:
    """Return rows as values that differ where their bits do."""
    integers = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}
    return {
        name: (column.combine_chunks().view(integers[column.type])).to_pylist()
        if column.type in integers
        else column.to_pylist()
        for name, column in zip(rows.column_names, rows.columns, strict=True)
    }


# Not shrunk: each condition has a table of its own.
@examples(17, deadline=None, phases=[Phase.generate])
@given(files=tables(), wanted=st.lists(conditions(), min_size=_EACH, max_size=_EACH))
def test_the_rows_that_spark_finds_are_gone_and_all_others_are_the_same_bits(
    spark: SparkSession,
    client: windrow.Client,
    folder: Path,
    files: dict[str, pa.Table],
    wanted: list[str],
) -> None:
    source = folder / f"source{next(_numbers)}"
    for path, rows in files.items():
        source.joinpath(path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, source / path)
    columns = {column_of(type_): type_ for type_ in TYPES} | PARTITION
    schema = ", ".join(f"{name} {type_}" for name, type_ in ({"row": "bigint"} | columns).items())
    originals = spark.read.schema(schema).parquet(str(source)).cache()
    for condition in wanted:
        name = f"deleted{next(_numbers)}"
        location = Path(shutil.copytree(source, folder / name))
        client.register_table(f"laws.{name}", str(location), partition_columns=PARTITION)
        client.refresh(f"laws.{name}")
        before = marks(location)
        with _without_pushdown(spark):
            left = {
                row[0]
                for row in originals.where(f"({condition}) IS NOT TRUE").select("row").collect()
            }

        spark.sql(f"DELETE FROM windrow.laws.{name} WHERE {condition}")

        after = marks(location)
        for path, rows in files.items():
            stays = [number for number in rows["row"].to_pylist() if number in left]
            is_whole = len(stays) == len(rows)
            assert (after.get(path) == before[path]) == is_whole, condition
            if is_whole or not stays:
                continue
            (new,) = location.glob(path.replace(".parquet", ".erased-*.parquet"))
            expected = rows.filter(pa.array([number in left for number in rows["row"].to_pylist()]))
            assert bits(pq.ParquetFile(new).read()) == bits(expected), condition
        assert len(after) == sum(bool(left & {*rows["row"].to_pylist()}) for rows in files.values())
        shutil.rmtree(location)
        client.delete_table(f"laws.{name}")
    originals.unpersist()


@pytest.fixture
def events(client: windrow.Client, folder: Path) -> tuple[str, Path]:
    """A registered table: its name in SQL, and its folder."""
    name = f"events{next(_numbers)}"
    location = hive.write_events(folder / name)
    client.register_table(f"sales.{name}", str(location))
    client.refresh(f"sales.{name}")
    return f"windrow.sales.{name}", location


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DELETE FROM T", "without a condition"),
        ("DELETE FROM T WHERE 1 = 1", "without a condition"),
        ("DELETE FROM T WHERE id % 2 = 0", "collect keys of the rows"),
        ("DELETE FROM T WHERE id = 1 OR upper(name) = 'NAME-2'", "collect keys of the rows"),
        ("DELETE FROM T WHERE name LIKE '%1'", "collect keys of the rows"),
        ("DELETE FROM T WHERE id IN (SELECT 1L)", "collect keys of the rows"),
        ("DELETE FROM T t WHERE EXISTS (SELECT 1 FROM T s WHERE s.id > t.id)", "collect keys"),
        ("DELETE FROM T WHERE rand() < 0.5", "deterministic"),
        ("DELETE FROM T WHERE nope = 1", "nope"),
        ("MERGE INTO T t USING T s ON t.id = s.id WHEN MATCHED THEN DELETE", "use client.write"),
    ],
)
def test_what_files_are_not_searched_for_is_refused_and_nothing_goes(
    spark: SparkSession, events: tuple[str, Path], statement: str, words: str
) -> None:
    name, location = events
    before = {path: path.stat().st_ino for path in location.rglob("*.parquet")}

    with pytest.raises(Exception, match=words):
        spark.sql(re.sub(r"\bT\b", name, statement))

    assert {path: path.stat().st_ino for path in location.rglob("*.parquet")} == before


def test_conditions_that_hold_for_no_row_and_explain_change_nothing(
    spark: SparkSession, events: tuple[str, Path]
) -> None:
    name, location = events
    before = {path: path.stat().st_ino for path in location.rglob("*.parquet")}

    spark.sql(f"DELETE FROM {name} WHERE 1 = 2")
    spark.sql(f"DELETE FROM {name} WHERE NULL")
    spark.sql(f"DELETE FROM {name} WHERE id = 1000")
    plan = spark.sql(f"EXPLAIN DELETE FROM {name} WHERE id = 1").first()[0]

    assert f"Delete from {name}" in plan
    assert {path: path.stat().st_ino for path in location.rglob("*.parquet")} == before


def test_cached_rows_and_dataframes_follow(spark: SparkSession, events: tuple[str, Path]) -> None:
    name, _ = events
    spark.sql(f"CACHE TABLE {name}")
    rows = spark.table(name)
    assert rows.where("id < 3").count() == 3

    spark.sql(f"DELETE FROM {name} WHERE ID = 1 OR name = 'name-2'")

    assert rows.where("id < 3").count() == 1
    assert spark.table(name).storageLevel.useMemory
    assert sorted(row.id for row in spark.table(name).collect()) == [0, *range(3, 60)]
    spark.sql(f"UNCACHE TABLE {name}")


def test_a_table_that_is_not_erasable_says_what_to_use_there(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "orc"
    location.mkdir()
    pa.orc.write_table(pa.table({"id": [1, 2]}), str(location / "part.orc"))
    client.register_table("sales.orc", str(location), "orc")
    client.refresh("sales.orc")

    with pytest.raises(Exception, match="rewrite its partitions with Spark"):
        spark.sql("DELETE FROM windrow.sales.orc WHERE id = 1")

    assert spark.table("windrow.sales.orc").count() == 2


def test_local_times_are_compared_in_sessions_that_read_them_as_such(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "hours"
    for hour in ("09", "10"):
        place = location / f"hour=2026-11-28 {hour}%3A00%3A00"
        place.mkdir(parents=True)
        pq.write_table(pa.table({"id": [1]}), place / "part.parquet")
    client.register_table("sales.hours", str(location))
    client.refresh("sales.hours")
    statement = "DELETE FROM windrow.sales.hours WHERE hour = '2026-11-28 09:00:00'"

    with pytest.raises(Exception, match="collect keys of the rows"):
        spark.sql(statement)
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    try:
        spark.sql(statement)
    finally:
        spark.conf.unset("spark.sql.timestampType")

    assert [path.name for path in location.glob("hour=*")] == ["hour=2026-11-28 10%3A00%3A00"]


def test_many_files_are_shared_by_threads(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "many"
    location.mkdir()
    for number in range(300):
        pq.write_table(pa.table({"id": [number, -1]}), location / f"part-{number:03}.parquet")
    client.register_table("sales.many", str(location))
    client.refresh("sales.many")

    spark.sql("DELETE FROM windrow.sales.many WHERE id BETWEEN -1 AND 9")

    assert sorted(row.id for row in spark.table("windrow.sales.many").collect()) == [
        *range(10, 300)
    ]
    assert len([*location.glob("*.parquet")]) == 290
