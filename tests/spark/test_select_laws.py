"""Whole SELECTs give Spark's rows, however a query gets at the tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.laws import is_nightly
from tests.support.queries.select_answers import (
    WAYS,
    Counts,
    Site,
    ask,
    drawn_settings,
    opened,
    settings,
    simplified,
)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

_SEED = "day"


@pytest.fixture(scope="module")
def site(spark: SparkSession, client: windrow.Client, folder: Path) -> Iterator[Site]:
    with opened(spark, client, folder, _SEED) as site:
        yield site


def test_every_select_gives_sparks_rows(spark: SparkSession, site: Site) -> None:
    # Neighbours share their settings, so that a few by day come from each of several settings.
    numbers = range(1000) if is_nightly() else range(0, 200, 7)
    counts = Counts()
    for number in numbers:
        with settings(spark, drawn_settings(site, number)):
            difference = ask(site, number, counts)
            if difference:
                difference += "\n" + simplified(site, number, 100)
        assert not difference, difference
    # The law would hold of queries that Spark refuses, or of scans that Windrow does not plan.
    assert counts.alike > len(numbers) * 0.8
    assert counts.empty < len(numbers) * 0.6
    assert sum(counts.with_scans.values()) > len(numbers) * 0.7
    assert all(counts.with_scans[way] > counts.ways[way] * 0.5 for way in WAYS)
