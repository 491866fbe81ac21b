"""Whole SELECTs give Spark's rows, however a query gets at the tables."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import windrow
from tests.spark.conftest import NEWEST
from tests.support.laws import times
from tests.support.queries.select_answers import (
    WAYS,
    Counts,
    Site,
    Way,
    ask,
    drawn_settings,
    opened,
    settings,
    simplified,
)
from tests.support.queries.selects import Select
from tests.support.spark.older_spark import OLDEST, python_with_spark

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

_SEED = "day"


@pytest.fixture(scope="module")
def site(spark: SparkSession, client: windrow.Client, folder: Path) -> Iterator[Site]:
    with opened(spark, client, folder, _SEED) as site:
        yield site


def test_every_select_gives_sparks_rows(spark: SparkSession, site: Site) -> None:
    # Neighbours share their settings, so that a few by day come from each of several settings.
    numbers = range(0, 200, 7)
    counts = Counts()
    for number in numbers:
        with settings(spark, drawn_settings(site, number)):
            difference = ask(site, number, counts)
            if difference:
                difference += "\n" + simplified(site, number, 100)
        assert not difference, difference
    _assert_telling(counts)


def test_the_first_rows_are_compared_in_the_order_that_spark_drops(site: Site) -> None:
    first = "(SELECT id, v FROM {t} ORDER BY id DESC LIMIT 3) a"
    none = "(SELECT min(b.d) FROM {c} b WHERE b.k = a.v AND b.k < -9)"
    select = Select(text=f"SELECT id, {none} AS d FROM {first}")
    theirs, difference = site.compare(select, Way("view"))

    assert not difference
    determined = site.answer(f"SELECT id, NULL AS d FROM {first}", Way("plain"))
    assert Counter(theirs.rows) == Counter(determined.rows) != Counter()


@pytest.mark.nightly
@pytest.mark.parametrize("version", [NEWEST, OLDEST])
def test_selects_on_many_tables_give_sparks_rows(version: str, tmp_path: Path) -> None:
    python = sys.executable if version == NEWEST else python_with_spark(version)
    program, count = "tests.programs.random_selects", str(times(20_000, by_day=100))
    done = subprocess.run(
        [python, "-m", program, str(tmp_path / "tables"), secrets.token_hex(4), "0", count, "60"],
        stdout=subprocess.PIPE,
        # Spark logs each query that fails.
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ,
        timeout=8 * 3_600,
    )

    assert done.returncode == 0, done.stdout[-5_000:]
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert outcome.pop("version") == version
    counts = Counts(**outcome)
    assert counts.differing == 0, done.stdout[-20_000:]
    _assert_telling(counts)


def _assert_telling(counts: Counts) -> None:
    """The law would hold of queries that Spark refuses, or of scans that Windrow does not plan."""
    assert counts.alike > counts.queries * 0.8
    assert counts.empty < counts.queries * 0.6
    assert sum(counts.with_scans.values()) > counts.queries * 0.7
    assert all(counts.with_scans[way] > counts.ways[way] * 0.5 for way in WAYS)
