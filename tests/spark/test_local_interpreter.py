"""Tasks run with the driver's Python unless another is chosen, and say what to set if it fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.conftest import NEWEST
from tests.support.spark.older_spark import OLDEST, OTHERS, python_with_spark

pytestmark = pytest.mark.spark

# Tells the rows of each way to run Python tasks, or the one line that says why there are none.
PROGRAM = """
import json, os, sys
from pyspark.sql import SparkSession
import windrow
from windrow.spark import plain_errors
from windrow_spark.interpreter import tasks_interpreter
from windrow_jobs.inventory import publish_inventory

location, state, bare = sys.argv[1:]

def session(**conf):
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    # The daemon of the other tests imports packages that the bare Python lacks.
    builder = builder.config("spark.python.daemon.module", "pyspark.daemon")
    for name, value in conf.items():
        builder = builder.config(name.replace("_", "."), value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark

def outcome(act):
    try:
        with plain_errors():
            return act()
    except windrow.WindrowError as error:
        return str(error)

def outcomes():
    rows = client.read(spark, "a.table", reader="grouped")
    plan = client.plan("a.table")
    return {
        "read": outcome(lambda: [row.id for row in rows.collect()]),
        "read_plan": outcome(lambda: [row.id for row in client.read_plan(spark, plan).collect()]),
        "count": outcome(lambda: client.read_plan(spark, plan).count()),
        "job": outcome(lambda: publish_inventory(spark, client, "a.table").snapshot.file_count),
    }

spark = session()
told = {}
with windrow.embedded(state, allowed_locations=[location]) as client:
    client.register_table("a.table", location)
    client.refresh("a.table")
    told["unchosen"] = outcomes()
    told["users"] = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).first()
    os.environ["PYSPARK_PYTHON"] = bare
    told["chosen"] = outcomes()
    del os.environ["PYSPARK_PYTHON"]
spark.stop()
told["set"] = tasks_interpreter(session(spark_pyspark_python="/a/python").sparkContext)
print(json.dumps(told))
"""


@pytest.mark.parametrize("version", [NEWEST, OLDEST, *OTHERS])
def test_tasks_use_the_drivers_python_unless_another_is_chosen(
    request: pytest.FixtureRequest, tmp_path: Path, version: str
) -> None:
    if version != NEWEST and not request.config.getoption("--all-sparks"):
        pytest.skip("other releases of Spark are tried by --all-sparks")
    location = tmp_path / "table"
    location.mkdir()
    pq.write_table(pa.table({"id": [7]}), location / "a.parquet")
    # The first Python of the path lacks all packages.
    venv.create(tmp_path / "bare", with_pip=False)
    bare = str(tmp_path / "bare" / "bin" / "python3")

    told = told_by(version, [str(location), str(tmp_path / "state"), bare])

    assert told["unchosen"] == {"read": [7], "read_plan": [7], "count": 1, "job": 1}
    assert told["users"] == bare
    for text in told["chosen"].values():
        assert "No module named" in text
        assert "PYSPARK_PYTHON" in text
        assert "spark.pyspark.python" in text
        assert "\n" not in text
    assert bare in told["chosen"]["read"]
    assert told["set"] == "/a/python"


def told_by(version: str, arguments: list[str]) -> dict[str, Any]:
    """Run the program on a Spark, in an environment that is not activated."""
    python = sys.executable if version == NEWEST else python_with_spark(version)
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    environment["PATH"] = os.pathsep.join([str(Path(arguments[-1]).parent), environment["PATH"]])
    done = subprocess.run(
        [python, "-c", PROGRAM, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5_000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told
