"""Programs on Spark 4.1 with Iceberg's own runtime, both of which are large: for tests at night."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

from tests.programs import iceberg_on_spark
from tests.support.engines.scan_sites import ScanSite
from tests.support.processes.environments import skipped_without
from tests.support.servers.maven import jar_of
from tests.support.spark.older_spark import python_with_spark

_PACKAGE = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"


def run_with_iceberg(program: str, *arguments: str, text: str = "") -> str:
    """Run a program, and return what it prints; the test is skipped where it cannot run.

    Args:
        program: Its file.
        arguments: Its arguments, after which it gets the runtime's coordinates.
        text: What it can read.
    """
    # Spark finds it where Maven keeps what it has fetched.
    jar_of(_PACKAGE)
    with skipped_without("Spark 4.1"):
        python = python_with_spark("4.1.4")
    result = subprocess.run(
        [python, program, *arguments, _PACKAGE],
        input=text,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def check_same_rows(site: ScanSite, questions: Sequence[tuple[str, str]]) -> None:
    """Require that Spark reads the same rows whoever plans, and some.

    Args:
        site: The coordinator.
        questions: Tables and conditions.
    """
    answers = run_with_iceberg(
        iceberg_on_spark.__file__, site.url, site.mine, text=json.dumps(questions)
    )
    for question, (server, client) in zip(questions, json.loads(answers), strict=True):
        assert server == client, question
        assert server, question
