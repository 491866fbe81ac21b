"""Read a table without Spark: `client.scan`, Polars, DuckDB and PyArrow's dataset.

    python benchmarks/scan.py [--quick] [--json FILE] [--cases cold,warm,store] [--files N]
                              [--store-files N] [--delay SECONDS] [--server NAME] [--runs N]

All sides make an Arrow table of all rows, with the partition column, and all tables are compared.

- `cold`: each read in a process of its own, from its start to the table: imports, and planning or
  listing, included. The files are in memory.
- `warm`: reads in a process that has already read, planning or listing included.
- `store`: as `warm`, but the files are in an S3 store on loopback, each answer of which is delayed:
  one in memory that costs little, or `rclone` behind a proxy. DuckDB takes part where the
  package `duckdb-extension-httpfs` of its release is installed.

The sides take turns. Windrow's coordinator runs beside them and knows the table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from common import ROOT, Result, arguments, console, times_table, write_json
from memory_store import memory_store
from object_stores import BUCKET, duckdb_if_installed, served, store_client
from rclone import environment
from scan_sides import BEGAN
from tables import KIB, generate, table_of

from windrow.connecting import connect

sys.path.insert(0, str(ROOT))
from tests.support.faults.object_proxy import object_proxy
from tests.support.servers.coordinators import coordinator_process

WINDROW, POLARS, DUCKDB, DATASET = "windrow", "polars", "duckdb", "pyarrow"
PEERS = (POLARS, DUCKDB, DATASET)
NAME, TABLE = "scan", "bench.scan"


class DisagreementError(Exception):
    """Two sides read other rows, so their figures are meaningless."""


def main() -> None:
    """Run the benchmark."""
    parser = arguments("Read a table without Spark.")
    parser.add_argument("--cases", default="cold,warm,store", help="names, separated by ','")
    parser.add_argument("--files", type=int, help="number of files; 10,000 by default")
    parser.add_argument("--store-files", type=int, help="number in the store; 2,000 by default")
    parser.add_argument("--delay", type=float, default=0.02, help="seconds each answer waits")
    parser.add_argument("--server", choices=("memory", "rclone"), default="memory")
    options = parser.parse_args()
    runs = 1 if options.quick else options.runs
    files = options.files or (60 if options.quick else 10_000)
    store_files = options.store_files or (20 if options.quick else 2_000)
    results: list[Result] = []
    for case in options.cases.split(","):
        if case == "store":
            results += _store(options, store_files, runs)
        else:
            results += _local(options, case, files, runs)
    console.print(times_table(results))
    if options.json:
        write_json(options.json, NAME, results)


# --- the cases ----------------------------------------------------------------


def _local(options: argparse.Namespace, case: str, files: int, runs: int) -> list[Result]:

    spec = table_of(files, 16 * KIB)
    location = generate(options.data.resolve(), spec)
    with (
        tempfile.TemporaryDirectory() as folder,
        coordinator_process(Path(folder) / "state", location) as coordinator,
        connect(coordinator.url) as client,
    ):
        client.register_table(TABLE, str(location))
        client.refresh(TABLE)
        sides = (WINDROW, *PEERS)
        return _results(f"{spec.title}, {case}", case, sides, str(location), coordinator.url, runs)


def _store(options: argparse.Namespace, files: int, runs: int) -> list[Result]:
    spec = table_of(files, 16 * KIB)
    store = options.data.resolve() / "scan_objects"
    generate(store / BUCKET, spec)
    location = f"s3://{BUCKET}/{spec.name}"
    with ExitStack() as stack:
        if options.server == "memory":
            endpoint = stack.enter_context(memory_store(store, options.delay))
        else:
            proxy = stack.enter_context(object_proxy(stack.enter_context(served(store, "rclone"))))
            proxy.delay(options.delay)
            endpoint = proxy.url
        client = stack.enter_context(store_client(endpoint))
        client.register_table(TABLE, location)
        client.refresh(TABLE)
        stack.enter_context(_environment(environment(endpoint)))
        title = f"{spec.title}, {options.delay * 1_000:.0f} ms away"
        sides = (WINDROW, POLARS, *duckdb_if_installed(), DATASET)
        return _results(title, "store", sides, location, client.url, runs)


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    yield
    os.environ.clear()
    os.environ.update(before)


def _results(
    title: str, case: str, sides: tuple[str, ...], location: str, url: str, runs: int
) -> list[Result]:
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    digests: dict[str, str] = {}
    # The first turn is not counted: it brings files and packages into memory.
    for turn in range(runs + 1):
        for side in sides:
            console.print(f"{title}: {side}, {turn} of {runs}", style="dim")
            reads = 1 if case == "cold" else 2
            answer = _in_a_process(side, location, url, reads, compares=not turn)
            if turn:
                seconds[side].append(answer["seconds"][-1])
            else:
                digests[side] = answer["digest"]
        if len(set(digests.values())) > 1:
            raise DisagreementError(f"{title}: the sides do not agree: {digests}")
    ours = median(seconds[WINDROW])
    return [
        Result.in_seconds(title, f"{case} read", ours, peer, median(seconds[peer]))
        for peer in sides[1:]
    ]


def _in_a_process(
    side: str, location: str, url: str, reads: int, *, compares: bool
) -> dict[str, Any]:
    program = str(Path(__file__).with_name("scan_sides.py"))
    command = [sys.executable, program, side, location, url, TABLE, str(reads)]
    command.append("compare" if compares else "time")
    environment = {**os.environ, BEGAN: str(time.time())}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DisagreementError(f"{side} failed: {done.stderr[-2_000:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


if __name__ == "__main__":
    main()
