"""A Spark driver in a separate process that reads and writes through a coordinator on command."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.servers.redis import RedisProcess
from tests.support.servers.slow_store import SlowStore
from tests.support.spark.clusters import Cluster
from windrow.client import Client

_TIMEOUT_S = 120.0

_PROGRAM = """
import dataclasses, json, os, signal, sys, time
from contextlib import contextmanager
from pathlib import Path
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
import windrow
from windrow_core.models import Plan
from windrow.spark import read_plan, recent_scans
from windrow_jobs.warm import warm

answers = os.fdopen(os.dup(1), "w")
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

def read(table, **options):
    rows = client.read(spark, table, cached_splits="by_worker", **options)
    return sorted(rows.collect())

def write(table, rows, days, **options):
    # Rows come from a shuffle, so their order changes when a task runs again.
    ids = spark.range(rows, numPartitions=8).repartition(8, "id")
    events = ids.selectExpr("id", f"concat('day-', id % {days}) AS ds")
    return client.write(events, table, **options).model_dump(exclude={"keys"})

@contextmanager
def waiting_for_their_hosts():
    # While a host that no task prefers is idle, all tasks together wait no longer than this
    # setting. The usual wait is enough for all of them only if the machine is not busy.
    conf = spark.sparkContext._jsc.sc().conf()
    usual = conf.get("spark.locality.wait")
    conf.set("spark.locality.wait", "300s")
    try:
        yield
    finally:
        conf.set("spark.locality.wait", usual)

def read_in_order(plan, groups):
    with open(plan) as file:
        plan = Plan.model_validate_json(file.read())
    df = read_plan(spark, plan, pa.ipc.open_file(groups).read_all())
    # A host's processes have its address in their environment.
    rows = df.rdd.mapPartitionsWithIndex(
        lambda index, rows: ((index, *row, os.environ["SPARK_LOCAL_IP"]) for row in rows)
    )
    with waiting_for_their_hosts():
        return sorted(rows.collect())

def read_disturbed(table, folder, **options):
    folder = Path(folder)
    rows = client.read(spark, table, **options)

    def disturbed(index, rows):
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
            while time.monotonic() < deadline and not (folder / "twin").exists():
                time.sleep(0.05)
        for row in rows:
            yield (index, attempt, os.environ["SPARK_LOCAL_IP"], *row)
        if attempt > 0 and index == 2:
            (folder / "twin").touch()

    conf = spark.sparkContext._jsc.sc().conf()
    conf.set("spark.speculation.quantile", "0.5")
    try:
        found = rows.rdd.mapPartitionsWithIndex(disturbed).collect()
    finally:
        conf.set("spark.speculation.quantile", "1.0")
    plan = rows._jdf.queryExecution().executedPlan().toString()
    return {"plan": plan, "rows": found, "read": read_of(table)}

def read_of(table):
    return dataclasses.asdict(recent_scans(table)[0].read)

def read_with_places(table, **options):
    rows = client.read(spark, table, **options)
    placed = rows.rdd.mapPartitionsWithIndex(
        lambda index, rows: ((index, os.environ["SPARK_LOCAL_IP"], *row) for row in rows)
    )
    with waiting_for_their_hosts():
        found = placed.collect()
    return {"plan": rows._jdf.queryExecution().executedPlan().toString(), "rows": found}

def warm_up(table, rule=None):
    return dataclasses.asdict(warm(lambda: spark, client, table, rule))

def hosts():
    # Includes the driver.
    infos = spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
    return sorted(info.host() for info in infos)

for line in sys.stdin:
    asked = json.loads(line)
    answer = globals()[asked.pop("call")](**asked)
    print(json.dumps(answer, default=str), file=answers, flush=True)
spark.stop()
"""


class Driver:
    """A running driver, which executes one call at a time."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log

    def begin(self, call: str, **arguments: Any) -> None:
        """Start a call."""
        assert self._process.stdin is not None
        print(json.dumps({"call": call, **arguments}), file=self._process.stdin, flush=True)

    def finish(self) -> Any:
        """Wait for the end of the started call, and return its answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self._log.read_text()[-5_000:]
        return json.loads(line)

    def read(self, table: str, **options: Any) -> list[Any]:
        """Return the rows of a table, sorted."""
        self.begin("read", table=table, **options)
        rows: list[Any] = self.finish()
        return rows

    def wait_for_hosts(self, hosts: Sequence[str]) -> None:
        """Wait until executors run on exactly these hosts."""
        deadline = time.monotonic() + _TIMEOUT_S
        found: list[str] = []
        while found != sorted(["127.0.0.1", *hosts]):
            assert time.monotonic() < deadline, f"executors run on {found}"
            self.begin("hosts")
            found = self.finish()


@dataclass(frozen=True)
class CachingCluster:
    """A cluster with file caches, the services that its hosts use, and a driver on it.

    Attributes:
        store: The store that tables are read from.
        redis: The coordinator's Redis.
        client: A client of the coordinator.
        url: URL of the coordinator.
        cluster: The hosts.
        driver: The driver, with one executor on each host.
    """

    store: SlowStore
    redis: RedisProcess
    client: Client
    url: str
    cluster: Cluster
    driver: Driver

    def live_hosts(self) -> set[str]:
        """Return the hosts whose agents are alive to the coordinator."""
        return {worker.host for worker in self.client.workers()}

    def wait_for_hosts(self) -> None:
        """Wait until agents and executors run on all hosts."""
        deadline = time.monotonic() + _TIMEOUT_S
        while self.live_hosts() != set(self.cluster.hosts):
            assert time.monotonic() < deadline, f"agents run on {self.live_hosts()}"
            time.sleep(0.1)
        self.driver.wait_for_hosts(list(self.cluster.hosts))


@contextmanager
def driver_of(cluster: Cluster, coordinator: str, log: Path) -> Iterator[Driver]:
    """Start a driver with one task at a time on each host, and stop it at the end."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, cluster.master, coordinator, json.dumps(cluster.conf)],
            env=dict(cluster.environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
        )
    with process:
        driver = Driver(process, log)
        try:
            driver.wait_for_hosts(list(cluster.hosts))
            yield driver
        finally:
            process.kill()
