"""Where Spark starts executors as it needs them, no task waits for a host without one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.quick_spark import jvm_options

pytestmark = pytest.mark.spark

_ELSEWHERE = "10.255.255.1"
# Longer than a driver may take, so that a task which waits for a host is noticed.
_WAIT_S = 600
_TIMEOUT_S = 120

_PROGRAM = """
import json, os, sys
from pyspark.sql import SparkSession
from windrow.spark.placement import Descriptor, hosts_to_prefer, placed

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
elsewhere, conf = sys.argv[1:]
builder = SparkSession.builder.master("local-cluster[1,1,600]")
for name, value in json.loads(conf).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
seen = []
def look(*hosts):
    usable = hosts_to_prefer(spark)
    awaited = hosts_to_prefer(spark, awaited=True)
    rows = placed(spark, [Descriptor(content=b"", hosts=(host,)) for host in hosts]).collect()
    seen.append([sorted(usable), awaited, len(rows)])
# The executor runs on the driver's host, by another name that Spark finds by itself.
look(elsewhere, elsewhere)
(host,) = hosts_to_prefer(spark)
look(host, elsewhere, elsewhere)
print(json.dumps([host, seen]), file=answers, flush=True)
spark.stop()
"""


def test_no_host_counts_until_it_has_an_executor(tmp_path: Path) -> None:
    conf = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.maxExecutors": "1",
        "spark.dynamicAllocation.executorIdleTimeout": "600s",
        "spark.locality.wait": f"{_WAIT_S}s",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": jvm_options(),
        "spark.local.dir": str(tmp_path / "scratch"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }

    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, _ELSEWHERE, json.dumps(conf)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
    )

    assert done.returncode == 0, done.stderr[-5_000:]
    host, seen = json.loads(done.stdout)
    # Tasks that are of no use elsewhere, those of the warm-up, wait for all hosts.
    assert seen == [[[], None, 2], [[host], None, 3]]
