"""On a cluster of two workers, files are read on the hosts that the plan names."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.clusters import Cluster, spark_cluster
from tests.support.plans import plan_of

pytestmark = pytest.mark.spark

HOSTS = ("127.0.0.2", "127.0.0.3")
FILE_COUNT = 16

# The driver needs its own process, as the tests' process has a local session already.
READ = """
import sys
import pyarrow as pa
from pyspark.sql import SparkSession
from windrow.models import Plan
from windrow.spark import read_plan

master, plan_file, groups_file, events = sys.argv[1:]
spark = (
    SparkSession.builder.master(master)
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.ui.enabled", "false")
    .config("spark.executor.memory", "512m")
    .config("spark.executor.cores", "1")
    # Wait for the preferred host longer than the default of three seconds.
    .config("spark.locality.wait", "60s")
    # Wait for both executors before placing the first task.
    .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
    .config("spark.scheduler.maxRegisteredResourcesWaitingTime", "60s")
    .config("spark.cores.max", "2")
    .config("spark.eventLog.enabled", "true")
    .config("spark.eventLog.dir", events)
    .config("spark.eventLog.compress", "false")
    .config("spark.eventLog.rolling.enabled", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
plan = Plan.model_validate_json(open(plan_file).read())
groups = pa.ipc.open_file(groups_file).read_all()
# Partition i holds group i, and a row shows which file its task has read.
rows = read_plan(spark, plan, groups).rdd.mapPartitionsWithIndex(
    lambda index, rows: ((index, row.n) for row in rows)
)
print("ROWS", sorted(rows.collect()))
spark.stop()
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster"), HOSTS) as cluster:
        yield cluster


def _task_hosts(events: Path) -> dict[int, str]:
    """Return the host that each partition was read on, from Spark's event log."""
    hosts: dict[int, str] = {}
    for file in events.rglob("*"):
        if not file.is_file():
            continue
        for line in file.read_text().splitlines():
            event = json.loads(line)
            if event["Event"] == "SparkListenerTaskEnd":
                assert event["Task End Reason"]["Reason"] == "Success"
                hosts[event["Task Info"]["Index"]] = event["Task Info"]["Host"]
    return hosts


def test_files_are_read_on_the_hosts_that_hold_them(cluster: Cluster, tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.mkdir()
    for n in range(FILE_COUNT):
        pq.write_table(pa.table({"n": [n]}), table / f"{n:02}.parquet")
    # Not in rotation, so that placing tasks in rotation would fail.
    wanted = {n: HOSTS[0] if n % 4 < 3 else HOSTS[1] for n in range(FILE_COUNT)}
    plan, groups = plan_of(
        table, {"n": "bigint"}, hosts={f"{n:02}.parquet": [host] for n, host in wanted.items()}
    )
    plan_file, groups_file, events = (tmp_path / name for name in ("plan", "groups", "events"))
    events.mkdir()
    plan_file.write_text(plan.model_dump_json())
    with pa.ipc.new_file(str(groups_file), groups.schema) as writer:
        writer.write_table(groups)

    done = subprocess.run(
        [sys.executable, "-c", READ, cluster.master, plan_file, groups_file, events.as_uri()],
        env=cluster.environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert f"ROWS {[(n, n) for n in range(FILE_COUNT)]}" in done.stdout, done.stderr
    assert _task_hosts(events) == wanted
