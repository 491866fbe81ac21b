"""A driver that reads and writes through a coordinator: one call a line, one answer a line.

`python -m tests.programs.driver MASTER COORDINATOR SETTINGS`
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

import windrow
from windrow.spark import read_plan, recent_scans
from windrow_core.models import Plan
from windrow_jobs.warm import warm

output = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
master, coordinator, conf = sys.argv[1:]
builder = SparkSession.builder.master(master)
for name, value in {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Second attempts of tasks start only in calls that lower this quantile.
    "spark.speculation": "true",
    "spark.speculation.quantile": "1.0",
    **json.loads(conf),
}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
client = windrow.connect(coordinator)


def read(table: str, **options: Any) -> list[Any]:
    rows = client.read(spark, table, cached_splits="by_worker", **options)
    return sorted(rows.collect())


def write(table: str, rows: int, days: int, **options: Any) -> dict[str, Any]:
    # Rows come from a shuffle, so their order changes when a task runs again.
    ids = spark.range(rows, numPartitions=8).repartition(8, "id")
    events = ids.selectExpr("id", f"concat('day-', id % {days}) AS ds")
    return client.write(events, table, **options).model_dump(exclude={"keys"})


@contextmanager
def waiting_for_their_hosts() -> Iterator[None]:
    # While a host that no task prefers is idle, all tasks together wait no longer than this
    # setting. The usual wait is enough for all of them only if the machine is not busy.
    conf = spark.sparkContext._jsc.sc().conf()
    usual = conf.get("spark.locality.wait")
    conf.set("spark.locality.wait", "300s")
    try:
        yield
    finally:
        conf.set("spark.locality.wait", usual)


def read_in_order(plan: str, groups: str) -> list[Any]:
    content = Path(plan).read_text()
    df = read_plan(spark, Plan.model_validate_json(content), pa.ipc.open_file(groups).read_all())
    # A host's processes have its address in their environment.
    rows = df.rdd.mapPartitionsWithIndex(
        lambda index, rows: ((index, *row, os.environ["SPARK_LOCAL_IP"]) for row in rows)
    )
    with waiting_for_their_hosts():
        return sorted(rows.collect())


def read_disturbed(table: str, folder: str, **options: Any) -> dict[str, Any]:
    twin = Path(folder, "twin")
    rows = client.read(spark, table, **options)

    def disturb(index: int, rows: Iterator[Any]) -> Iterator[tuple[Any, ...]]:
        attempt = TaskContext.get().attemptNumber()
        # After the first row, so that a part of the rows has been sent already.
        yield (index, attempt, os.environ["SPARK_LOCAL_IP"], *next(rows))
        if attempt == 0 and index == 0:
            raise RuntimeError("this task is disturbed")
        if attempt == 0 and index == 1:
            daemon = os.getppid()
            executor = int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(executor, signal.SIGKILL)
            time.sleep(60)
        if attempt == 0 and index == 2:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and not twin.exists():
                time.sleep(0.05)
        for row in rows:
            yield (index, attempt, os.environ["SPARK_LOCAL_IP"], *row)
        if attempt > 0 and index == 2:
            twin.touch()

    conf = spark.sparkContext._jsc.sc().conf()
    conf.set("spark.speculation.quantile", "0.5")
    try:
        all_rows = rows.rdd.mapPartitionsWithIndex(disturb).collect()
    finally:
        conf.set("spark.speculation.quantile", "1.0")
    native_files = recent_scans(table)[0].native_files
    return {"native_files": native_files, "rows": all_rows, "read": read_of(table)}


def read_of(table: str) -> dict[str, Any]:
    return dataclasses.asdict(recent_scans(table)[0].read)


def read_with_places(table: str, **options: Any) -> dict[str, Any]:
    rows = client.read(spark, table, **options)
    with_hosts = rows.rdd.mapPartitionsWithIndex(
        lambda index, rows: ((index, os.environ["SPARK_LOCAL_IP"], *row) for row in rows)
    )
    with waiting_for_their_hosts():
        hosted_rows = with_hosts.collect()
    return {"native_files": recent_scans(table)[0].native_files, "rows": hosted_rows}


def warm_up(table: str, rule: str | None = None) -> dict[str, Any]:
    return dataclasses.asdict(warm(lambda: spark, client, table, rule))


def hosts() -> list[str]:
    # Includes the driver.
    infos = spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
    return sorted(info.host() for info in infos)


CALLS = {
    call.__name__: call
    for call in (
        read,
        write,
        read_in_order,
        read_disturbed,
        read_of,
        read_with_places,
        warm_up,
        hosts,
    )
}

for line in sys.stdin:
    arguments = json.loads(line)
    answer = CALLS[arguments.pop("call")](**arguments)
    print(json.dumps(answer, default=str), file=output, flush=True)
spark.stop()
