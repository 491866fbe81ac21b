"""Each statement on a table of the catalog works as in Spark, or is refused with a remedy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.queries.catalog_statements import (
    STATEMENTS,
    TABLE,
    files_below,
    inside_words,
    outcomes,
)
from tests.support.tables import hive
from windrow.client import Client

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture(scope="module")
def location(spark: SparkSession, client: Client, folder: Path) -> Path:
    windrow.register(spark, client)
    location = hive.write_events(folder / "events")
    client.register_table(TABLE, str(location))
    client.refresh(TABLE)
    return location


@pytest.fixture(scope="module")
def answers(spark: SparkSession, location: Path) -> Iterator[dict[str, str]]:
    before = files_below(location)
    yield outcomes(spark)
    assert files_below(location) == before
    spark.sql("DROP DATABASE stated_own CASCADE")


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_works_or_names_what_to_do_instead(
    answers: dict[str, str], statement: str
) -> None:
    words = STATEMENTS[statement]
    if words is None:
        assert answers[statement].startswith("rows: ")
    else:
        assert answers[statement].startswith("error: ")
        assert re.search(words, answers[statement])


def test_no_statement_tells_how_the_software_is_made(answers: dict[str, str]) -> None:
    assert inside_words(answers) == {}


def test_no_statement_tells_it_on_older_spark_either(on_older_sparks: list[dict[str, Any]]) -> None:
    for older in on_older_sparks:
        assert inside_words(older["statements of the catalog"]) == {}


def registered(client: Client, folder: Path, kind: str) -> str:
    """Register a table of a kind, and return its name in SQL."""
    rows = pa.table({"id": pa.array(range(5), pa.int64()), "Name": ["x", "y", None, "é", ""]})
    place = folder / kind
    place.mkdir()
    if kind == "orc":
        pa.orc.write_table(rows, str(place / "part.orc"))
        client.register_table(f"stated.{kind}", str(place), "orc")
    elif kind == "odd-Name":
        pa.csv.write_csv(rows, place / "part.csv")
        columns = {"id": "bigint", "Name": "string"}
        client.register_table(
            f"stated.{kind}", str(place), "csv", columns=columns, format_options={"header": True}
        )
    else:
        hive.write_events(place)
        options: dict[str, Any] = {
            "plain": {},
            "sorted": {"sort_columns": ["id"], "bloom_columns": ["id"]},
            "planned": {"plan_options": {"max_split_size": "1MB"}},
        }[kind]
        client.register_table(f"stated.{kind}", str(place), **options)
    client.refresh(f"stated.{kind}")
    return f"windrow.stated.`{kind}`"


@pytest.mark.parametrize("kind", ["plain", "sorted", "planned", "orc", "odd-Name"])
def test_what_show_create_table_says_makes_an_equal_table(
    spark: SparkSession, client: Client, location: Path, tmp_path_factory: Any, kind: str
) -> None:
    name = registered(client, location.parent, kind)
    text = spark.sql(f"SHOW CREATE TABLE {name}").first()[0]
    header = text.partition(" (")[0]

    spark.sql(text.replace(header, "CREATE TABLE windrow.stated.again", 1))

    again = spark.sql("SHOW CREATE TABLE windrow.stated.again").first()[0]
    old, new = spark.table(name), spark.table("windrow.stated.again")
    definition, other = (
        client.table(one).definition.model_dump(exclude={"columns", "partition_columns"})
        for one in (f"stated.{kind}", "stated.again")
    )
    assert again.partition(" (")[2] == text.partition(" (")[2]
    assert definition == other
    assert old.schema == new.schema
    assert old.exceptAll(new).count() == new.exceptAll(old).count() == 0
    assert new.count() == old.count() > 0
    client.delete_table("stated.again")


def test_names_of_fields_are_created_as_they_are_written(
    spark: SparkSession, client: Client, location: Path
) -> None:
    rows = spark.sql("SELECT 1 AS Id, named_struct('Aa', 1, 'B', map('k', 2)) AS Both")
    place = location.parent / "fields"
    spark.sql(
        "CREATE TABLE windrow.stated.fields (Id INT, Both STRUCT<Aa: INT, B: MAP<STRING, INT>>) "
        f"LOCATION '{place}'"
    )
    rows.writeTo("windrow.stated.fields").append()

    assert spark.table("windrow.stated.fields").collect() == rows.collect()
    assert spark.table("windrow.stated.fields").schema.simpleString() == rows.schema.simpleString()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("id BIGINT", "id STRING", "change neither the columns nor that property"),
        ('"orc"', '"oak"', "leave it out"),
        ('{"', "{", "leave it out"),
    ],
)
def test_what_show_create_table_says_is_refused_after_a_change_that_does_not_fit(
    spark: SparkSession,
    client: Client,
    location: Path,
    tmp_path: Path,
    old: str,
    new: str,
    words: str,
) -> None:
    place = location.parent / tmp_path.name
    place.mkdir()
    pa.orc.write_table(pa.table({"id": pa.array([1], pa.int64())}), str(place / "part.orc"))
    client.register_table("stated.changed", str(place), "orc", replace=True)
    client.refresh("stated.changed")
    text = spark.sql("SHOW CREATE TABLE windrow.stated.changed").first()[0]

    with pytest.raises(Exception, match=words):
        spark.sql(text.replace("stated.changed", "stated.new").replace(old, new))

    assert "stated.new" not in [one.name for one in client.tables()]


def test_a_table_is_described_as_json_by_its_own_names(spark: SparkSession, location: Path) -> None:
    described = json.loads(spark.sql(f"DESCRIBE EXTENDED windrow.{TABLE} AS JSON").first()[0])

    assert (described["catalog_name"], described["namespace"]) == ("windrow", ["stated"])
    assert [one["name"] for one in described["columns"]] == ["id", "name", "ds"]
    assert described["partition_columns"] == ["ds"]
    assert described["location"] == str(location)
    assert "storage_properties" not in described
