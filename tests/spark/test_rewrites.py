"""Queries after files were replaced under their names return the rows of the files that are there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

import windrow
from tests.support.laws import examples
from tests.support.queries.accelerations import accelerate
from tests.support.servers import embedded
from tests.support.tables.replacements import (
    file_of,
    ids_in,
    make_table,
    replace,
    replacements,
    write,
)
from windrow_spark.errors import TaskFailedError

pytestmark = pytest.mark.usefixtures("interpreted")

numbers = count()

BOUNDS = st.tuples(st.integers(0, 3_200), st.integers(0, 1_200)).map(lambda b: (b[0], sum(b)))
EVERYTHING = (0, 10_000)


@pytest.fixture(scope="module")
def client(spark: SparkSession, folder: Path) -> Iterator[windrow.Client]:
    with embedded.client(folder / "state", allowed_locations=[str(folder.parent)]) as client:
        windrow.register(spark, client)
        yield client


@pytest.fixture(scope="module")
def database(spark: SparkSession, folder: Path) -> Iterator[str]:
    """A database of this session's own catalog."""
    spark.sql(f"CREATE DATABASE rewritten LOCATION '{folder}/rewritten'")
    yield "rewritten"
    spark.sql("DROP DATABASE rewritten CASCADE")


def ids(rows: DataFrame) -> list[int]:
    return sorted(row["id"] for row in rows.collect())


def condition(bounds: tuple[int, int]) -> str:
    return f"id >= {bounds[0]} AND id <= {bounds[1]}"


# How a session looks at a table again, and asks. All of them are tried in each round.
def by_read(spark: SparkSession, client: windrow.Client, name: str, where: str) -> DataFrame:
    return client.read(spark, f"t.{name}", max_staleness=0).where(where)


def by_catalog(spark: SparkSession, client: windrow.Client, name: str, where: str) -> DataFrame:
    spark.sql(f"REFRESH TABLE windrow.t.{name}")
    return spark.sql(f"SELECT id FROM windrow.t.{name} WHERE {where}")


def by_table(spark: SparkSession, client: windrow.Client, name: str, where: str) -> DataFrame:
    # The acceleration itself looks every five minutes.
    spark.sql(f"REFRESH TABLE rewritten.{name}")
    return spark.sql(f"SELECT id FROM rewritten.{name} WHERE {where}")


WAYS: list[Callable[[SparkSession, windrow.Client, str, str], DataFrame]] = [
    by_read,
    by_catalog,
    by_table,
]


@examples(2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rounds=st.lists(
        st.tuples(st.lists(replacements, min_size=1, max_size=3), st.permutations(WAYS), BOUNDS),
        min_size=3,
        max_size=5,
    )
)
def test_after_a_look_at_a_table_its_rows_are_those_of_its_files(
    spark: SparkSession, client: windrow.Client, database: str, tmp_path: Path, rounds: list[Any]
) -> None:
    name = f"t{next(numbers)}"
    location = make_table(tmp_path / name)
    client.register_table(f"t.{name}", str(location))
    client.refresh(f"t.{name}")
    spark.sql(f"CREATE TABLE rewritten.{name} USING parquet LOCATION '{location}'")
    spark.sql(f"MSCK REPAIR TABLE rewritten.{name}")
    (imported,) = client.import_tables(spark, f"rewritten.{name}")
    assert imported.outcome == "created"
    with accelerate(spark, client, "rewritten.*", max_staleness=300) as acceleration:
        for changes, ways, bounds in rounds:
            for change in changes:
                replace(location, change)
            for way in ways:
                rows = ids(way(spark, client, name, condition(bounds)))

                assert rows == ids_in(location, *bounds), way.__name__
        assert acceleration.reasons() == {}


def test_an_accelerated_path_is_looked_at_before_each_query_if_that_is_wanted(
    spark: SparkSession, client: windrow.Client, tmp_path: Path
) -> None:
    location = make_table(tmp_path / "path")
    client.register_table("t.path", str(location))

    with accelerate(spark, client, "t.path", max_staleness=0) as acceleration:
        for number in range(3):
            replace(location, (number, "in_place_with_its_time", 7_000 + number, 5, True))
            rows = spark.read.parquet(str(location)).where("id >= 7000 AND id <= 7200")

            assert ids(rows) == ids_in(location, 7_000, 7_200) != []
        assert acceleration.reasons() == {}


@pytest.mark.parametrize("way", ["client.read", "the catalog", "acceleration"])
def test_a_query_that_fails_by_a_changed_file_makes_the_next_one_look(
    spark: SparkSession, client: windrow.Client, tmp_path: Path, way: str
) -> None:
    name = f"t.once{next(numbers)}"
    location = make_table(tmp_path / "table")
    client.register_table(name, str(location))

    def query() -> DataFrame:
        if way == "client.read":
            return client.read(spark, name)
        if way == "the catalog":
            return spark.sql(f"SELECT id FROM windrow.{name}")
        return spark.read.parquet(str(location))

    with accelerate(spark, client, name, max_staleness=300):
        client.refresh(name)
        assert ids(query()) == ids_in(location, *EVERYTHING)
        write(file_of(location, 2), 7_000, 5, rows=9)

        with pytest.raises(TaskFailedError, match="refresh the table and plan again"):
            query().collect()
        # Spark tells its listeners of a query's end a little later.
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()

        assert ids(query()) == ids_in(location, *EVERYTHING)
