"""The queries of TPC-DS and TPC-H give Spark's rows when Windrow plans their scans."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

import windrow
from tests.judges import spark_suites
from tests.support.processes.environments import python_with, skipped_without
from tests.support.queries.select_answers import settings
from tests.support.servers import embedded
from tests.support.spark.quick_spark import COMPILED
from windrow.spark import recent_scans

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.usefixtures("interpreted")]

_DUCKDB = "1.5.5"
_ROOT = Path(__file__).parents[2]
# Spark itself fails if it interprets this query: the filter of a join runs in a task.
_COMPILED = "q5"
# How many texts of queries a benchmark has: four of TPC-DS have two.
_QUERIES = {"tpcds": 103, "tpch": 22}
_LIMIT = re.compile(r"\blimit\s+(\d+)\s*;?\s*$", re.IGNORECASE)


class Answers(NamedTuple):
    """The outcomes of the queries of a benchmark.

    Attributes:
        planned: How many scans Windrow planned, by query.
        rows: How many rows Spark returned, by query.
        differing: How rows differ, by query.
    """

    planned: dict[str, int]
    rows: dict[str, int]
    differing: dict[str, str]


@pytest.fixture(scope="module")
def python() -> str:
    packages = [f"duckdb=={_DUCKDB}"]
    packages += [f"duckdb-extension-{name}=={_DUCKDB}" for name in _QUERIES]
    with skipped_without(f"DuckDB {_DUCKDB} with its generators"):
        return python_with(packages, ".venv-tpc", f".installed-{_DUCKDB}", "--no-deps")


@pytest.fixture(scope="module", autouse=True)
def brief(spark: SparkSession) -> Iterator[None]:
    """Plan for few rows, some of whose quotients have no divisor."""
    with settings(spark, {"spark.sql.shuffle.partitions": "1", "spark.sql.ansi.enabled": "false"}):
        yield


@pytest.mark.parametrize("benchmark", _QUERIES)
def test_every_query_gives_sparks_rows(
    spark: SparkSession, tmp_path: Path, python: str, benchmark: str
) -> None:
    texts = _texts(benchmark)
    folder = tmp_path / benchmark
    program = [python, "-m", "tests.programs.tpc_tables", benchmark, str(folder)]
    subprocess.run(program, check=True, cwd=_ROOT)
    with embedded.client(tmp_path / "state", allowed_locations=[str(folder)]) as client:
        for table in sorted(folder.iterdir()):
            client.register_table(f"tpc.{table.name}", str(table))
            client.refresh(f"tpc.{table.name}")
            spark.read.parquet(str(table)).createOrReplaceTempView(table.name)

        answers = _ask(spark, client, texts)

    assert answers.differing == {}
    assert len(answers.planned) == _QUERIES[benchmark]
    assert [query for query, scans in answers.planned.items() if scans == 0] == []
    # Comparing nothing with nothing would prove little.
    assert sum(count > 0 for count in answers.rows.values()) > len(texts) * 0.5


def _texts(benchmark: str) -> dict[str, str]:
    folder = spark_suites.jars() / "classes" / "sql" / benchmark
    return {file.stem: file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.sql"))}


def _ask(spark: SparkSession, client: windrow.Client, texts: dict[str, str]) -> Answers:
    answers = Answers({}, {}, {})
    for name, text in texts.items():
        limit = _LIMIT.search(text)
        # Which rows of equal rank a limit takes is open.
        whole = _LIMIT.sub("", text)
        with settings(spark, COMPILED if name == _COMPILED else {}):
            theirs = _rows(spark, whole)
            before = _scans()
            with windrow.accelerate(spark, client, max_staleness=86_400, wait_s=120):
                ours = _rows(spark, whole)
                first = _rows(spark, text) if limit else ours
        answers.planned[name] = len(_scans() - before)
        answers.rows[name] = theirs.total()
        if ours != theirs:
            answers.differing[name] = f"missing: {theirs - ours}; not Spark's: {ours - theirs}"[
                :500
            ]
        elif limit and (first.total() != min(int(limit[1]), theirs.total()) or first - theirs):
            answers.differing[name] = f"of the first rows, not Spark's: {first - theirs}"[:500]
    return answers


def _rows(spark: SparkSession, text: str) -> Counter[str]:
    return Counter(repr([_rounded(value) for value in row]) for row in spark.sql(text).collect())


def _rounded(value: Any) -> Any:
    # Sums of floats depend on the order of rows.
    return float(f"{value:.9g}") if isinstance(value, float) else value


def _scans() -> set[str]:
    return {scan.plan.plan_id for scan in recent_scans()}
