"""A map task is run again in mid-write with its rows in another order: none is lost or doubled.

A random key silently loses and doubles rows before Spark 4.2 and fails the job on newer versions.
This is tested as well, since it is the reason why no random key is offered.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.queries.lost_map_outputs import HAZARDS, SCHEMES, outcomes
from tests.support.spark import quick_spark

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]


@pytest.fixture(scope="module")
def newer(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    assert not spark.version.startswith("3.")
    local = Path(spark.sparkContext.getConf().get("spark.local.dir", ""))
    found = outcomes(spark, tmp_path_factory.mktemp("lost"), local)
    # Spark takes the session's only executor for lost: its heartbeats fail, and so would each later
    # query whose result is too large for a message.
    quick_spark.java_object(spark, "KnownExecutor").register(spark.sparkContext.applicationId)
    return found


def had_to_run_again(way: str, outcome: dict[str, Any]) -> bool:
    # Range schemes run the maps once more for their sample.
    return bool(outcome["deleted"] and outcome["runs"] > (2 if way.startswith("range") else 1))


@pytest.mark.parametrize("way", SCHEMES)
def test_no_scheme_loses_or_doubles_rows_when_a_map_runs_again(
    also_on_older_sparks: list[dict[str, Any]], newer: dict[str, dict[str, Any]], way: str
) -> None:
    for outcome in (*(older["outcomes"][way] for older in also_on_older_sparks), newer[way]):
        assert had_to_run_again(way, outcome)
        assert not outcome["failed"]
        assert (outcome["lost"], outcome["doubled"]) == (0, 0)


@pytest.mark.parametrize("way", HAZARDS)
def test_a_random_key_loses_and_doubles_rows_before_spark_4_2_and_fails_on_newer(
    also_on_older_sparks: list[dict[str, Any]], newer: dict[str, dict[str, Any]], way: str
) -> None:
    failing = [newer[way]]
    for older in also_on_older_sparks:
        outcome = older["outcomes"][way]
        if older["version"] >= "4.2":
            failing.append(outcome)
        else:
            assert not outcome["failed"], older["version"]
            assert outcome["lost"] > 0, older["version"]
            assert outcome["doubled"] > 0, older["version"]
    assert all(outcome["deleted"] and outcome["failed"] for outcome in failing)
