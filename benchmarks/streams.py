"""Write a stream of small batches to a table with Spark's file sink, and with Windrow.

    python benchmarks/streams.py [--batches 2000] [--rows 200] [--delay 10min] [--kills N]
                                 [--seed 1] [--quick] [--json FILE]

Each batch has rows in 24 partitions. Spark writes it as Parquet files, and Windrow with
`max_delay`. Then both tables are read, by Spark as it reads folders and by Windrow, in turns; their
rows must be those of the stream, each once. The delay of a row is the time from the start of its
batch until its write has ended.

With `--kills`, the stream runs in drivers of its own, and a driver, or now and then the
coordinator, is killed at random; Spark's sink is left out. The exit code is 1 if a row is lost or
doubled, or waited longer than it may (without kills).
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
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from common import ROOT, Result, arguments, console, times_table, write_json

sys.path.insert(0, str(ROOT))
from tests.programs.streaming_driver import session, write_batches
from tests.support.servers.coordinators import CoordinatorProcess, coordinator_process

import windrow
from windrow.client import Client
from windrow.terminal.java import require_java
from windrow_core.models import Column
from windrow_spark.streaming.options import sink_options

NAME = "streams"
TABLE = "bench.stream"
# What one write takes on a busy machine; it is no part of the delay that is asked for.
_WRITE_S = 60.0
_COORDINATORS = 0.2
# A driver takes some seconds to start its stream.
_SHORTEST_S, _LONGEST_S = 8.0, 30.0


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


def killed(options: Any, task: dict[str, Any], coordinator: Coordinator) -> int:
    """Run drivers that are killed at random until all batches are written; return the kills."""
    chance = random.Random(options.seed)
    command = [sys.executable, "-m", "tests.programs.streaming_driver"]
    kills = 0
    while True:
        with (Path(task["checkpoint"]).with_suffix(".log")).open("ab") as log:
            driver = subprocess.Popen(
                [*command, json.dumps(task)], cwd=ROOT, start_new_session=True, stderr=log
            )
        wait_s = chance.uniform(_SHORTEST_S, _LONGEST_S) if kills < options.kills else None
        try:
            code = driver.wait(wait_s)
        except subprocess.TimeoutExpired:
            kills += 1
            if chance.random() < _COORDINATORS:
                coordinator.restart()
                kills += 1
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
            console.print(f"{kills} kills", style="dim")
            continue
        if code == 0:
            return kills


class Coordinator:
    """A coordinator process that can be killed and started again at the same address."""

    def __init__(self, stack: ExitStack, work: Path, data: Path) -> None:
        self._stack, self._work, self._data = stack, work, data
        self.process: CoordinatorProcess = self._start()

    def _start(self, port: int | None = None) -> CoordinatorProcess:
        return self._stack.enter_context(
            coordinator_process(self._work / "state", self._data, port=port)
        )

    def restart(self) -> None:
        """Kill the process, and start it again."""
        self.process.kill()
        self.process = self._start(int(self.process.url.rpartition(":")[2]))


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
        coordinator = Coordinator(stack, data, data)
        task["url"] = coordinator.process.url
        client = stack.enter_context(windrow.connect(coordinator.process.url))
        register(client, location)
        began_s = time.monotonic()
        kills = killed(options, task, coordinator) if options.kills else 0
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
        print(f"{batches:,} batches: {files_in(location)} files, the longest delay {delay_s:.0f} s")
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
