"""A cluster that starts executors as it needs them: where tasks run, and with which Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.spark.quick_spark import jvm_options

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

_ELSEWHERE = "10.255.255.1"
# Longer than the driver may take, so that a task which waits for a host is noticed.
_WAIT_S = 600
_TIMEOUT_S = 300


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program sees: one driver for all tests, which starts more slowly than it runs."""
    folder = tmp_path_factory.mktemp("elastic")
    location = folder / "table"
    location.mkdir()
    pq.write_table(pa.table({"id": [7]}), location / "a.parquet")
    # The first Python of the path lacks all packages.
    venv.create(folder / "bare", with_pip=False)
    broken = folder / "broken"
    broken.write_text("#!/bin/sh\necho 'the disk is on fire' >&2\nexit 1\n")
    broken.chmod(0o700)
    conf = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.maxExecutors": "1",
        "spark.dynamicAllocation.executorIdleTimeout": "600s",
        "spark.locality.wait": f"{_WAIT_S}s",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": jvm_options(),
        # The daemon of the other tests imports packages that the bare Python lacks.
        "spark.python.daemon.module": "pyspark.daemon",
        "spark.task.maxFailures": "1",
        "spark.local.dir": str(folder / "scratch"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    environment["PATH"] = os.pathsep.join([str(folder / "bare" / "bin"), environment["PATH"]])
    arguments = (_ELSEWHERE, str(location), str(folder / "state"), str(broken), json.dumps(conf))
    done = subprocess.run(
        [sys.executable, "-m", "tests.programs.elastic_cluster", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5_000:]
    output: dict[str, Any] = json.loads(done.stdout)
    return output


def test_no_host_counts_until_it_has_an_executor(answers: dict[str, Any]) -> None:
    # Tasks that are of no use elsewhere, those of the warm-up, wait for all hosts.
    assert answers["looks"] == [[[], None, 2], [[answers["host"]], None, 3]]


def test_the_first_failure_says_in_one_line_what_to_set(answers: dict[str, Any]) -> None:
    outcomes = answers["outcomes"]
    reasons = {
        "bare": "No module named 'pyarrow'",
        "absent": "/no/such/python, cannot be started",
        "broken": "the disk is on fire",
        "other version": "and the driver with 3.1, but Spark needs one minor version",
    }
    assert outcomes.keys() == {"good", *reasons}
    assert outcomes["good"] == {"read": [7], "job": 1}
    for kind, reason in reasons.items():
        for text in outcomes[kind].values():
            assert reason in text
            assert "PYSPARK_PYTHON or the setting spark.pyspark.python" in text
            assert "on every host" in text
            assert "\n" not in text
