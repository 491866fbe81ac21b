"""The doctor tells what works in a session, and what its tasks lack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import windrow
from windrow_calls.diagnosis import Check
from windrow_spark.session_checks import session_checks

pytestmark = pytest.mark.spark


def by_subject(checks: list[Check]) -> dict[str, Check]:
    return {check.subject: check for check in checks}


def test_a_classic_session_that_works_has_no_faults(
    spark: SparkSession, client: windrow.Client
) -> None:
    checks = by_subject(list(client.doctor(spark).checks))

    assert checks["session"].result == f"Spark {spark.version}, classic"
    for subject in ("session", "jvm", "tables in SQL", "tasks"):
        assert checks[subject].state == "ok", checks[subject]
    assert "on 1 host" in checks["tasks"].result


def test_a_session_whose_jvm_may_not_be_used_is_told_what_else_reads(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Some platforms let Python reach only classes of a list of theirs.
    class Forbidden:
        @property
        def java(self) -> object:
            from py4j.protocol import Py4JError

            raise Py4JError("Method java.lang.System is not whitelisted")

    monkeypatch.setattr(spark.sparkContext, "_jvm", Forbidden())

    checks = by_subject(list(session_checks(spark)))

    assert checks["jvm"].state == "failure"
    assert "not whitelisted" in checks["jvm"].result
    assert "Iceberg catalog" in checks["jvm"].remedy


def _checked_in_a_process(folder: Path, **environment: str) -> list[Check]:
    program = [sys.executable, "-m", "tests.programs.doctor", str(folder)]
    done = subprocess.run(
        program,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Check(**check) for check in json.loads(done.stdout.splitlines()[-1])]


def test_tasks_whose_python_lacks_packages_are_named(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)

    python = str(bare / "bin" / "python")
    checks = by_subject(_checked_in_a_process(tmp_path, PYSPARK_PYTHON=python))

    assert checks["tasks"].state == "failure"
    assert "no NumPy" in checks["tasks"].result
    assert "install NumPy" in checks["tasks"].remedy


@pytest.mark.nightly
def test_a_session_of_spark_connect_is_checked_too(tmp_path: Path) -> None:
    checks = by_subject(_checked_in_a_process(tmp_path, SPARK_CONNECT_MODE_ENABLED="1"))

    assert "Spark Connect" in checks["session"].result
    assert checks["tasks"].state == "ok"
    assert checks["tables"].state == "ok"
