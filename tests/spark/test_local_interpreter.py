"""In local mode, tasks find the driver's packages though its environment is not activated."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.spark

PROGRAM = """
import sys
from pyspark.sql import SparkSession
import windrow

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.getOrCreate()
with windrow.embedded(sys.argv[2], allowed_locations=[sys.argv[1]]) as client:
    client.register_table("local.table", sys.argv[1])
    client.refresh("local.table")
    print(client.read(spark, "local.table", reader="grouped").collect())
"""


def test_tasks_use_the_drivers_interpreter(tmp_path: Path) -> None:
    location = tmp_path / "table"
    location.mkdir()
    pq.write_table(pa.table({"id": [7]}), location / "a.parquet")
    # The first Python of the path lacks all packages.
    venv.create(tmp_path / "bare", with_pip=False)
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    environment["PATH"] = os.pathsep.join([str(tmp_path / "bare" / "bin"), environment["PATH"]])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(location), str(tmp_path / "state")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "[Row(id=7)]" in done.stdout, done.stderr
