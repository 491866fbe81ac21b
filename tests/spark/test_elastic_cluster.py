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

pytestmark = pytest.mark.spark

_ELSEWHERE = "10.255.255.1"
# Longer than the driver may take, so that a task which waits for a host is noticed.
_WAIT_S = 600
_TIMEOUT_S = 300

# One driver for all tests, since its processes take longer to start than they run.
PROGRAM = """
import json, os, sys
from pyspark.sql import SparkSession
import windrow
from windrow.spark import plain_errors
from windrow_spark.placement import Descriptor, hosts_to_prefer, placed
from windrow_jobs.inventory import publish_inventory

elsewhere, location, state, broken, conf = sys.argv[1:]
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
builder = SparkSession.builder.master("local-cluster[1,1,600]")
for name, value in json.loads(conf).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")

def look(*hosts):
    usable = hosts_to_prefer(spark)
    awaited = hosts_to_prefer(spark, awaited=True)
    rows = placed(spark, [Descriptor(content=b"", hosts=(host,)) for host in hosts]).collect()
    return [sorted(usable), awaited, len(rows)]

def outcome(act):
    try:
        with plain_errors():
            return act()
    except windrow.WindrowError as error:
        return str(error)

def outcomes():
    rows = client.read(spark, "a.table", reader="grouped")
    return {
        "read": outcome(lambda: [row.id for row in rows.collect()]),
        "job": outcome(lambda: publish_inventory(spark, client, "a.table").snapshot.file_count),
    }

seen = [look(elsewhere, elsewhere)]
# The executor runs on the driver's host, by a name that Spark finds by itself.
(host,) = hosts_to_prefer(spark)
seen.append(look(host, elsewhere, elsewhere))

told = {}
with windrow.embedded(state, allowed_locations=[location]) as client:
    client.register_table("a.table", location)
    client.refresh("a.table")
    told["bare"] = outcomes()
    os.environ["PYSPARK_PYTHON"] = "/no/such/python"
    told["absent"] = outcomes()
    os.environ["PYSPARK_PYTHON"] = broken
    told["broken"] = outcomes()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    told["good"] = outcomes()
    # What the driver says of itself; the check is that of Spark's worker.
    spark.sparkContext.pythonVer = "3.1"
    told["other version"] = outcomes()
print(json.dumps({"host": host, "seen": seen, "told": told}), file=answers, flush=True)
spark.stop()
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program has seen and was told."""
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
    given = (_ELSEWHERE, str(location), str(folder / "state"), str(broken), json.dumps(conf))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *given],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5_000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_no_host_counts_until_it_has_an_executor(answers: dict[str, Any]) -> None:
    # Tasks that are of no use elsewhere, those of the warm-up, wait for all hosts.
    assert answers["seen"] == [[[], None, 2], [[answers["host"]], None, 3]]


def test_the_first_failure_says_in_one_line_what_to_set(answers: dict[str, Any]) -> None:
    told = answers["told"]
    reasons = {
        "bare": "No module named 'pyarrow'",
        "absent": "/no/such/python, cannot be started",
        "broken": "the disk is on fire",
        "other version": "and the driver with 3.1, but Spark needs one minor version",
    }
    assert told.keys() == {"good", *reasons}
    assert told["good"] == {"read": [7], "job": 1}
    for kind, reason in reasons.items():
        for text in told[kind].values():
            assert reason in text
            assert "PYSPARK_PYTHON or the setting spark.pyspark.python" in text
            assert "on every host" in text
            assert "\n" not in text
