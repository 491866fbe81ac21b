"""Other engines read the demo's table, of 19,486 small files, as Spark's own reader does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import windrow
from tests.programs.other_engines import row_texts
from tests.support.engines import asking
from tests.support.engines.cases import ALL_ENGINES, ON_SPARK
from tests.support.servers.coordinators import running
from tests.support.servers.trino import trino_server
from windrow_cli.engine_lines import Opening
from windrow_demo.engine_sides import TABLE
from windrow_demo.flights import DAYS_IN_THE_YEAR, flights_table, write_flights
from windrow_service.settings import Settings

pytestmark = [pytest.mark.nightly, pytest.mark.filterwarnings("ignore")]

ALL_ROWS = [
    "336776 rows, 98ef7e209329163b16871b7d86230f922ff4832c8b11604e47fb5d3dafc033c5",
]


@dataclass(frozen=True, slots=True)
class Site:
    """A coordinator with the demo's table, and the table's folder."""

    url: str
    folder: Path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("demo")
    folder = home / "flights"
    file_count = write_flights(folder, DAYS_IN_THE_YEAR, lambda _: None, lambda _: None)
    settings = Settings(state_dir=home / "state", port=0, allowed_locations=(str(home),))
    with running(settings) as url, windrow.connect(url) as client:
        client.register_table(TABLE, str(folder))
        snapshot = client.refresh(TABLE).snapshot
        assert snapshot is not None
        assert (snapshot.file_count, snapshot.row_count) == (file_count, 336_776)
        yield Site(url, folder)


def test_the_rows_are_those_that_were_written_and_that_spark_reads_in_the_bare_folder(
    spark: SparkSession, site: Site
) -> None:
    rows = spark.read.parquet(str(site.folder))
    written = flights_table().select(rows.columns)

    assert row_texts(zip(*written.to_pydict().values(), strict=True)) == ALL_ROWS
    assert row_texts(zip(*rows.toArrow().to_pydict().values(), strict=True)) == ALL_ROWS


@pytest.mark.parametrize("engine", ALL_ENGINES)
def test_every_engine_returns_these_rows(engine: str, site: Site, tmp_path: Path) -> None:
    assert answers(engine, site.url, tmp_path) == [ALL_ROWS]


def answers(engine: str, url: str, folder: Path) -> list[Any]:
    """Return what an engine answers when it is asked for all rows."""
    sql = [f"SELECT * FROM w.{TABLE}"]
    if engine == "Trino":
        lines = Opening(url, None, has_token=False).lines("trino")
        with trino_server(folder / "trino", {"w": lines}) as trino:
            return trino.answers(sql)
    if engine in ON_SPARK:
        return asking.answers_on_spark(engine, url, [TABLE])
    if engine == "DuckDB":
        return asking.answers_elsewhere(url, {"duckdb": sql})["duckdb"]
    if engine == "Polars, own planner":
        return asking.answers_elsewhere(url, {"polars": [TABLE]})["polars"]
    return asking.answers_here(engine, url, [TABLE])
