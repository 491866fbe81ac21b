"""Write a stream of small batches to a table with Spark's file sink, and with Windrow.

    python benchmarks/streams.py [--batches 2000] [--rows 200] [--delay 10min] [--kills N]
                                 [--seed 1] [--quick] [--json FILE]

Each batch has rows in 24 partitions. Spark writes it as Parquet files, and Windrow with
`max_delay`. Then both tables are read, by Spark as it reads folders and by Windrow, in turns; their
rows must be those of the stream, each once. The delay of a row is the time from the start of its
batch until its write has ended.

With `--kills`, the stream runs in drivers of its own on a cluster of two hosts, and one of these is
killed at random, again and again: the driver, a host with its executor, the coordinator, or its
database (PostgreSQL). Spark's sink is left out. The exit code is 1 if a row is lost or doubled, or
waited longer than it may (without kills).
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from common import ROOT, Result, arguments, console, times_table, write_json

sys.path.insert(0, str(ROOT))
from tests.programs.streaming_driver import session, write_batches
from tests.support.servers.coordinators import CoordinatorProcess, coordinator_process
from tests.support.servers.databases import PostgreSQL, postgresql
from tests.support.spark.clusters import HOSTS, Cluster, spark_cluster

import windrow
from windrow.client import Client
from windrow_calls.terminal.java import require_java
from windrow_core.models import Column
from windrow_service.store.database import server_url, upgrade_database
from windrow_spark.streaming.options import sink_options

NAME = "streams"
TABLE = "bench.stream"
# What one write takes on a busy machine; it is no part of the delay that is asked for.
_WRITE_S = 60.0
KINDS = ("driver", "executor", "coordinator", "database")
# Longest time between two kills, and for the start of a driver.
_LONGEST_S, _START_S = 8.0, 180.0
# Longest time for which a database stays away.
_AWAY_S = 2.0
_ENDLESS = 10**9


def register(client: Client, location: Path) -> None:
    """Register the table that the stream writes to."""
    location.mkdir(parents=True)
    columns = [Column(name="id", type="bigint"), Column(name="at", type="timestamp")]
    hours = [{"name": "hour", "type": "int"}]
    client.register_table(TABLE, str(location), columns=columns, partition_columns=hours)
    client.refresh(TABLE)


def files_in(location: Path) -> int:
    """Return the number of data files of a table."""
    return sum(1 for _ in location.glob("hour=*/*.parquet"))


def row_faults(rows: Any, batches: int, batch_rows: int) -> list[str]:
    """Return what is wrong with the rows of a table."""
    count, distinct, last = rows.selectExpr(
        "count(*)", "count(DISTINCT id)", "coalesce(max(id), -1)"
    ).first()
    faults = []
    if distinct != count:
        faults.append(f"{count - distinct:,} rows are doubled")
    if distinct != last + 1 or last + 1 < batches * batch_rows:
        faults.append(f"{max(last + 1, batches * batch_rows) - distinct:,} rows are lost")
    return faults


def longest_delay_s(client: Client, rows: Any, batch_rows: int) -> float:
    """Return the longest time from the start of a batch until its rows were in the table."""
    starts = rows.groupBy((rows.id / batch_rows).cast("bigint").alias("batch")).agg({"at": "min"})
    began_s = {batch: at.timestamp() for batch, at in starts.collect()}
    delays = []
    for one in client.writes(TABLE):
        if one.batch is not None and one.state == "published":
            first = 0 if one.batch.previous is None else one.batch.previous + 1
            delays.append(one.updated_at.timestamp() - began_s[first])
    return max(delays)


class Battlefield:
    """What a stream needs besides its driver, each of which can be killed.

    Args:
        stack: Ends the processes.
        data: Folder of the table, and of the processes' files.
        to_be_killed: Whether there are a cluster and a database that can be killed; otherwise
            drivers run their own tasks, and the database is a file.
    """

    def __init__(self, stack: ExitStack, data: Path, *, to_be_killed: bool) -> None:
        self._stack, self._data = stack, data
        self._environment: dict[str, str] = {}
        self._database: PostgreSQL | None = None
        self.cluster: Cluster | None = None
        if to_be_killed:
            self._database = stack.enter_context(postgresql())
            upgrade_database(server_url(self._database.url))
            self._environment["WINDROW_DATABASE_URL"] = self._database.url
            (data / "cluster").mkdir()
            self.cluster = stack.enter_context(spark_cluster(data / "cluster", HOSTS[:2]))
        self._coordinator = self._started()
        self.url = self._coordinator.url

    def kill(self, kind: str, chance: random.Random) -> None:
        """Kill something else than the driver, and start it again."""
        if kind == "coordinator":
            self._coordinator.kill()
            self._coordinator = self._started(int(self.url.rpartition(":")[2]))
        elif kind == "database":
            assert self._database is not None
            self._database.kill()
            time.sleep(chance.uniform(0, _AWAY_S))
            self._database.start()
        else:
            assert self.cluster is not None
            host = chance.choice(list(self.cluster.hosts.values()))
            host.kill()
            host.start()
            host.wait()

    def _started(self, port: int | None = None) -> CoordinatorProcess:
        return self._stack.enter_context(
            coordinator_process(self._data / "state", self._data, port=port, **self._environment)
        )


def killed(options: Any, task: dict[str, Any], field: Battlefield) -> Counter[str]:
    """Run drivers while things are killed at random, then until all batches are written.

    Returns:
        The number of kills of each kind.
    """
    assert field.cluster is not None
    chance = random.Random(options.seed)
    kills: Counter[str] = Counter()
    task |= {"master": field.cluster.master, "conf": field.cluster.conf}
    log = Path(task["checkpoint"]).with_suffix(".log")
    while kills.total() < options.kills:
        # None ends by itself before everything has been killed.
        driver = started({**task, "batches": _ENDLESS}, log, field.cluster.environment)
        wait_for_batch(Path(task["checkpoint"]), driver)
        kind, wait_s = "", chance.uniform(0, _LONGEST_S)
        while kind != "driver" and kills.total() < options.kills:
            with suppress(subprocess.TimeoutExpired):
                driver.wait(wait_s)
                # A stream may fail if what it needs is gone; the next start goes on.
                break
            kind = chance.choice(KINDS)
            if kind != "driver":
                field.kill(kind, chance)
            kills[kind] += 1
            console.print(f"{kills.total()} kills: {kind}", style="dim")
            wait_s = chance.uniform(0, _LONGEST_S)
        # Half of the time, its JVM is left to find out that Python is gone.
        if kind == "driver" and chance.random() < 0.5:
            os.kill(driver.pid, signal.SIGKILL)
        else:
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    while started(task, log, field.cluster.environment).wait():
        console.print("a driver failed, see its log", style="dim")
    return kills


def wait_for_batch(checkpoint: Path, driver: subprocess.Popen[bytes]) -> None:
    """Wait until a new driver has written a batch, unless that takes too long."""

    def newest() -> int:
        names = (path.name for path in checkpoint.glob("commits/[0-9]*"))
        return max((int(name) for name in names if name.isdigit()), default=-1)

    before, end_s = newest(), time.monotonic() + _START_S
    while newest() == before and driver.poll() is None and time.monotonic() < end_s:
        time.sleep(0.1)


def started(
    task: dict[str, Any], log: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a driver in a session of its own."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.programs.streaming_driver", json.dumps(task)],
            cwd=ROOT,
            env=dict(environment),
            start_new_session=True,
            stdout=output,
            stderr=output,
        )


def main() -> int:
    """Run the benchmark; return the exit code."""
    parser = arguments("Write a stream of small batches with Spark's file sink, and with Windrow.")
    parser.add_argument("--batches", type=int, help="number of batches")
    parser.add_argument("--rows", type=int, default=200, help="rows of a batch")
    parser.add_argument("--delay", default="10min", help="`max_delay` of the stream")
    parser.add_argument("--kills", type=int, default=0, help="how often something is killed")
    parser.add_argument("--seed", type=int, default=1, help="seed of the kills")
    options = parser.parse_args()
    require_java()
    batches = options.batches or (8 if options.quick else 2_000)
    data = options.data.resolve() / NAME
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    location, folder = data / "windrow", data / "spark"
    task: dict[str, Any] = {
        "table": TABLE,
        "location": str(location),
        "rows": options.rows,
        "batches": batches,
        "checkpoint": str(data / "checkpoint"),
        "options": {"max_delay": options.delay},
    }
    with ExitStack() as stack:
        field = Battlefield(stack, data, to_be_killed=options.kills > 0)
        task["url"] = field.url
        client = stack.enter_context(windrow.connect(field.url))
        register(client, location)
        began_s = time.monotonic()
        kills = killed(options, task, field) if options.kills else Counter[str]()
        spark = session()
        spark.sparkContext.setLogLevel("OFF")
        stack.callback(spark.stop)
        windrow.register(spark, client)
        if not options.kills:
            write_batches(spark, task)
        ours_s = time.monotonic() - began_s
        rows = client.read(spark, TABLE)
        faults = row_faults(rows, batches, options.rows)
        delay_s = longest_delay_s(client, rows, options.rows)
        allowed_s = sink_options({"max_delay": options.delay})[0].max_delay + _WRITE_S
        if not kills and delay_s > allowed_s:
            faults.append(f"a row waited {delay_s:.0f} s")
        (stream,) = client.streams(TABLE)
        print(
            f"{stream.batch_id + 1:,} batches: {files_in(location)} files, the longest delay "
            f"{delay_s:.0f} s"
        )
        if kills:
            print("killed: " + ", ".join(f"{kind} {kills[kind]}" for kind in KINDS))
        results = []
        if not options.kills:
            results = compared(spark, client, task, folder, ours_s, options.runs)
            print(f"{files_in(folder):,} files of Spark's sink")
            console.print(times_table(results[1:]))
            faults += row_faults(spark.read.parquet(str(folder)), batches, options.rows)
        for fault in faults:
            print(f"WRONG: {fault}")
        if options.json is not None:
            figures = {"batches": batches, "kills": kills, "longest_delay_s": delay_s}
            write_json(options.json, NAME, results, faults=faults, **figures)
    return bool(faults)


def compared(
    spark: Any, client: Client, task: dict[str, Any], folder: Path, ours_s: float, runs: int
) -> list[Result]:
    """Write the stream with Spark's sink, and read both tables in turns."""
    spark_task = {name: value for name, value in task.items() if name not in ("options", "table")}
    spark_task |= {"folder": str(folder), "checkpoint": f"{task['checkpoint']}-spark"}
    began_s = time.monotonic()
    write_batches(spark, {name: value for name, value in spark_task.items() if name != "location"})
    theirs_s = time.monotonic() - began_s
    times: dict[str, list[float]] = {"windrow": [], "spark": []}
    for _ in range(runs):
        for name in times:
            began_s = time.monotonic()
            rows = (
                client.read(spark, TABLE) if name == "windrow" else spark.read.parquet(str(folder))
            )
            rows.groupBy("hour").count().collect()
            times[name].append(time.monotonic() - began_s)
    ours, theirs = (statistics.median(one) for one in times.values())
    case = f"{task['batches']:,} batches"
    files = files_in(Path(task["location"])), files_in(folder)
    return [
        Result(
            case=case,
            metric="files",
            unit="files",
            windrow=files[0],
            peer="file sink",
            peer_value=files[1],
        ),
        Result.in_seconds(case, "write", ours_s, "file sink", theirs_s),
        Result.in_seconds(case, "read", ours, "file sink", theirs),
    ]


if __name__ == "__main__":
    sys.exit(main())
