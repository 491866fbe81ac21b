"""On a cluster whose Python cannot run tasks, the first failure says in one line what to set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.quick_spark import jvm_options

pytestmark = pytest.mark.spark

# Tells the one line of each way to run Python tasks, by the interpreter.
PROGRAM = """
import json, os, sys
from pyspark.sql import SparkSession
import windrow
from windrow.spark import plain_errors
from windrow_jobs.inventory import publish_inventory

location, state, broken, conf = sys.argv[1:]
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
builder = SparkSession.builder.master("local-cluster[1,1,600]")
for name, value in json.loads(conf).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")

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
print(json.dumps(told), file=answers, flush=True)
spark.stop()
"""


def test_the_first_failure_says_in_one_line_what_to_set(tmp_path: Path) -> None:
    location = tmp_path / "table"
    location.mkdir()
    pq.write_table(pa.table({"id": [7]}), location / "a.parquet")
    # The first Python of the path lacks all packages.
    venv.create(tmp_path / "bare", with_pip=False)
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'the disk is on fire' >&2\nexit 1\n")
    broken.chmod(0o700)
    conf = {
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": jvm_options(),
        "spark.local.dir": str(tmp_path / "scratch"),
        # The daemon of the other tests imports packages that the bare Python lacks.
        "spark.python.daemon.module": "pyspark.daemon",
        "spark.task.maxFailures": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    environment["PATH"] = os.pathsep.join([str(tmp_path / "bare" / "bin"), environment["PATH"]])

    done = subprocess.run(
        [
            *(sys.executable, "-c", PROGRAM),
            *(str(location), str(tmp_path / "state"), str(broken), json.dumps(conf)),
        ],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-5_000:]
    told = json.loads(done.stdout)
    assert told.pop("good") == {"read": [7], "job": 1}
    reasons = {
        "bare": "No module named 'pyarrow'",
        "absent": "/no/such/python, cannot be started",
        "broken": "the disk is on fire",
        "other version": "and the driver with 3.1, but Spark needs one minor version",
    }
    assert told.keys() == reasons.keys()
    for kind, texts in told.items():
        for text in texts.values():
            assert reasons[kind] in text
            assert "PYSPARK_PYTHON or the setting spark.pyspark.python" in text
            assert "on every host" in text
            assert "\n" not in text
