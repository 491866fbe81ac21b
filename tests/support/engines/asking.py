"""What engines answer that read a coordinator's catalog, each in an environment that has it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import ALWAYS_TRUE

from tests.programs import engines_on_spark, other_engines
from tests.programs.other_engines import polars_rows, row_texts
from tests.support.engines.environment import python_with_engines
from tests.support.processes.environments import python_with, skipped_without
from tests.support.servers.maven import jar_of
from tests.support.spark.older_spark import python_with_spark

_RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
# Sail needs minutes to plan a scan for each of 19,486 partitions, and longer on a busy machine.
_TIMEOUT_S = 3600.0


def answers_elsewhere(url: str, questions: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return what DuckDB and Polars's own planner answer, as `other_engines` takes and prints it."""
    program = [python_with_engines(), other_engines.__file__, url, ""]
    answers: dict[str, Any] = _answers(program, questions)
    return answers


def answers_on_spark(engine: str, url: str, questions: Sequence[str]) -> list[Any]:
    """Return what Spark with Iceberg's runtime, or Sail, answers as `engines_on_spark` takes it."""
    if engine == "Sail":
        packages = ["pyspark==4.2.1", "pysail==0.7.2"]
        with skipped_without("Sail"):
            python = python_with(packages, ".venv-sail", ".installed", "--no-deps")
        runtime = ""
    else:
        with skipped_without("Spark 4.1"):
            python = python_with_spark("4.1.4")
        runtime = _RUNTIME
        # Spark finds it where Maven keeps what it has fetched.
        jar_of(runtime)
    answers: list[Any] = _answers([python, engines_on_spark.__file__, url, runtime], questions)
    return answers


def answers_here(engine: str, url: str, questions: Sequence[str]) -> list[Any]:
    """Return what PyIceberg, or Polars with PyIceberg's planner, answers, or the errors.

    Args:
        engine: Which of them.
        url: The coordinator.
        questions: Names of tables, of which all rows are wanted. Polars may be asked SQL instead,
            and PyIceberg a name, ` WHERE ` and a condition.
    """
    headers = {"header.X-Windrow-Reader": "polars"} if engine == "Polars" else {}
    catalog = RestCatalog("w", uri=f"{url}/iceberg", **headers)

    def by_pyiceberg(question: str) -> Any:
        name, _, condition = question.partition(" WHERE ")
        scan = catalog.load_table(name).scan(row_filter=condition or ALWAYS_TRUE)
        rows = scan.to_arrow().to_pylist()
        return [tuple(row.values()) for row in rows]

    def by_polars(question: str) -> Any:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
            return polars_rows(catalog, question)

    read = {"PyIceberg": by_pyiceberg, "Polars": by_polars}[engine]

    def answer(question: str) -> Any:
        try:
            return row_texts(read(question))
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    with closing(catalog):
        return [answer(question) for question in questions]


def _answers(program: Sequence[str], questions: Any) -> Any:
    result = subprocess.run(
        program,
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])
