"""Writes by Spark itself, and streams, are refused in words that say how to write instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.queries import refused_uses
from tests.support.servers import embedded
from tests.support.tables import hive

pytestmark = pytest.mark.spark


def assert_first_lines(uses: dict[str, list[str]]) -> None:
    for use, (first_line, words) in uses.items():
        assert first_line == words, use


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path) -> Any:
    """The table `events`, as the format `windrow` and the view `refused`."""
    with embedded.client(tmp_path / "state", [str(tmp_path)]) as client:
        client.register_table("events", str(hive.write_events(tmp_path / "events")))
        client.refresh("events")
        windrow.register(spark, client)
        client.read(spark, "events").createOrReplaceTempView("refused")
        yield client
    spark.catalog.dropTempView("refused")


def test_writes_and_streams_of_spark_are_refused_with_the_way_to_write(
    spark: SparkSession, events: windrow.Client, tmp_path: Path
) -> None:
    before = sorted(path.name for path in (tmp_path / "events").rglob("*"))
    uses = refused_uses.refusals(spark, "events", {}, tmp_path / "streams")

    assert len(uses) == 3
    refused_uses.assert_words(uses)
    assert_first_lines(uses)
    assert "'events'" in uses["CREATE TABLE AS"][1]
    assert not spark.catalog.tableExists("made")
    assert sorted(path.name for path in (tmp_path / "events").rglob("*")) == before


def test_writes_and_streams_are_refused_on_older_spark_as_well(
    on_older_sparks: list[dict[str, Any]],
) -> None:
    for older in on_older_sparks:
        refused_uses.assert_words(older["uses"])
        assert_first_lines(older["uses"])
