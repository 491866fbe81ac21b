"""Writes of rows read from the same table, and plans of every kind, on older and newer Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.queries.rewrites import (
    MODES,
    OPAQUE,
    PLANS,
    expected,
    results,
)
from tests.support.servers.coordinators import running
from windrow_core.models import WriteMode
from windrow_service.settings import Settings
from windrow_spark.writing import lineage

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    settings = Settings(state_dir=folder / "state", allowed_locations=[str(folder)])
    with running(settings) as url:
        yield url


@pytest.fixture(scope="module")
def on_this_spark(spark: SparkSession, url: str, folder: Path) -> dict[str, Any]:
    below = folder / "this"
    below.mkdir()
    with windrow.connect(url) as client:
        return results(spark, client, below)


@pytest.mark.parametrize("mode", MODES)
def test_rows_read_from_a_table_can_be_written_back_in_every_mode(
    on_this_spark: dict[str, Any], also_on_older_sparks: list[dict[str, Any]], mode: WriteMode
) -> None:
    for answer in (on_this_spark, *also_on_older_sparks):
        assert [tuple(row) for row in answer["rewritten"][mode]] == expected(mode)


def test_queries_of_a_table_are_planned_by_themselves_on_every_spark(
    on_this_spark: dict[str, Any], also_on_older_sparks: list[dict[str, Any]]
) -> None:
    # Even ids below 60 occur twice.
    for answer in (on_this_spark, *also_on_older_sparks):
        assert answer["queries"] == {
            "pruned": 56,
            "joined": 30 * 4 + 30,
            "formatted": 1,
            "columns": ["id"],
        }


@pytest.mark.parametrize("plan", PLANS)
def test_every_plan_is_classified_as_stable_or_unstable_on_every_spark(
    on_this_spark: dict[str, Any], also_on_older_sparks: list[dict[str, Any]], plan: str
) -> None:
    for answer in (on_this_spark, *also_on_older_sparks):
        assert set(answer["unstable"][plan]) == ({"id", "key"} if plan in OPAQUE else set())


def test_a_plan_node_without_the_expected_method_makes_columns_unstable(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = spark.range(3).selectExpr("id", "id + 1 AS x")
    # As if a later Spark had renamed a method of a known node.
    monkeypatch.setattr(lineage, "_kind", lambda thing: "Window")

    assert set(lineage.lineage_of(plan).unstable) == {"id", "x"}
