"""Measure reads of a table of small files with packs, compared with reads of the files themselves.

    python benchmarks/packs.py [--quick] [--json FILE] [--files N] [--readers NAMES]

The demo's table, of 19,486 files, is registered twice; one registration is packed, by one process.
DuckDB, Polars by both planners, PyIceberg by the coordinator's catalog and `client.scan` then group
all rows by month, each way in a process of its own: CPU seconds of that process, and seconds. The
coordinator has a process, too. Then comes a day: 0.5 % of the files are new, 0.3 % replaced, 0.3 %
gone; the tables are refreshed, and read again. All answers must be equal.

The reader `Spark` times the demo's two queries on Spark instead: by its defaults, with
`openCostInBytes=0`, and by Windrow without packs and with them, warm, by turns, planning included.

It prints the constants of `windrow_service.planner.packs` that it has measured beside those in use.
DuckDB is the release whose extensions can be installed (`tests/support/engines/environment.py`).
"""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from common import ROOT, Result, arguments, console, times_table, write_json

import windrow
from windrow_calls.terminal.consoles import show
from windrow_core.sizes import size_text
from windrow_demo.flights import DAYS_IN_THE_YEAR, write_flights
from windrow_demo.sides import WINDROW_PACKED
from windrow_service.planner.packs import PACK_BYTES_PER_SECOND, PACK_SECONDS, READ_SECONDS

# The tests start the same servers and engines.
sys.path.insert(0, str(ROOT))
from tests.support.engines.environment import python_with_engines
from tests.support.servers.coordinators import coordinator_process

NAME = "packs"
FILES = 19_486
READERS = ("DuckDB", "Polars", "Polars (own planner)", "PyIceberg", "client.scan", "Spark")
# They need packages for other releases than the tests'.
_ELSEWHERE = ("DuckDB", "Polars (own planner)")
PACKED, BARE = "demo.packed", "demo.bare"
PEER = "files"
SPARK = "Spark"
# Of 1,000 files, a day later.
_NEW, _REPLACED, _GONE = 5, 3, 3
# Packing leaves files that were written just now.
_SETTLED_S = 2.5


def main() -> None:
    """Measure and report."""
    parser = arguments("Measure reads of packs.")
    parser.add_argument("--files", type=int, help=f"about so many files; {FILES:,} by default")
    parser.add_argument("--readers", default=",".join(READERS), help="readers, separated by `,`")
    options = parser.parse_args()
    files = options.files or (400 if options.quick else FILES)
    days = max(1, round(DAYS_IN_THE_YEAR * files / FILES))
    readers = options.readers.split(",")
    options.data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.data) as name:
        folder = Path(name)
        location = folder / "flights"
        count = write_flights(location, days, lambda _: None, lambda _: None)
        time.sleep(_SETTLED_S)
        with (
            coordinator_process(folder / "state", folder) as process,
            windrow.connect(process.url, timeout_s=300) as client,
        ):
            for table in (PACKED, BARE):
                client.register_table(table, str(location))
                client.refresh(table)
            making = _in_a_process(sys.executable, process.url, "pack", 0, [PACKED])
            ask = partial(compared, process.url, location, readers, options.runs)
            results = ask(f"{count:,} files")
            later(location)
            for table in (PACKED, BARE):
                client.refresh(table)
            results += ask("a day later")
    show(times_table(results))
    constants = report(making, results, count)
    if options.json is not None:
        write_json(options.json, NAME, results, files=count, making=making, constants=constants)


def compared(
    url: str, location: Path, readers: Sequence[str], runs: int, case: str
) -> list[Result]:
    """Return the figures of all readers, whose answers must be equal."""
    results, answers = [], []
    for reader in readers:
        if reader == SPARK:
            results += on_spark(url, location, runs, case)
            continue
        python = python_with_engines() if reader in _ELSEWHERE else sys.executable
        # By turns in one process, DuckDB needs 0.2 s more of CPU for packs after it has read the files.
        figures: dict[str, Any] = {}
        for table in (PACKED, BARE):
            figures |= _in_a_process(python, url, reader, runs, [table])
        answers += [figures[table]["rows"] for table in (PACKED, BARE)]
        for metric in ("cpu_s", "wall_s"):
            packed, bare = (median(figures[table][metric][1:]) for table in (PACKED, BARE))
            label = {"cpu_s": "CPU", "wall_s": "time"}[metric]
            results.append(Result.in_seconds(f"{case}: {reader}", label, packed, PEER, bare))
    if any(answer != answers[0] for answer in answers):
        raise SystemExit(f"{case}: the answers differ: {answers}")
    return results


def on_spark(url: str, location: Path, runs: int, case: str) -> list[Result]:
    """Return how Spark's ways to read compare with packs."""
    program = str(Path(__file__).with_name("pack_spark.py"))
    log = str(location.with_name("spark.log"))
    command = [sys.executable, "-W", "ignore", program, url, PACKED, str(location), str(runs), log]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    seconds = json.loads(done.stdout.splitlines()[-1])
    return [
        Result.in_seconds(
            f"{case}: {SPARK}, {query}",
            "time",
            median(ways[WINDROW_PACKED]),
            way,
            median(ways[way]),
        )
        for query, ways in seconds.items()
        for way in ways
        if way != WINDROW_PACKED
    ]


def later(location: Path) -> None:
    """Add, replace and remove files as a day does."""
    paths = sorted(location.rglob("*.parquet"))
    new, replaced, gone = (max(1, len(paths) * one // 1_000) for one in (_NEW, _REPLACED, _GONE))
    changed = random.Random(0).sample(paths, new + replaced + gone)
    for path in changed[:new]:
        pq.write_table(pq.ParquetFile(path).read(), path.with_name("later.parquet"))
    for path in changed[new : new + replaced]:
        rows = pq.ParquetFile(path).read()
        pq.write_table(pa.concat_tables([rows, rows.slice(0, 1)]), path)
    for path in changed[new + replaced :]:
        path.unlink()


def report(making: dict[str, Any], results: Sequence[Result], files: int) -> dict[str, float]:
    """Print what packing costs, and return the constants that follow."""
    packing_s = making["cpu_s"] / making["files"]
    console.print(
        f"packed {making['files']:,} files into {size_text(making['size_bytes'])}: "
        f"{1 / packing_s:,.0f} files per CPU second, {making['wall_s']:.1f} s, peak memory "
        f"{size_text(making['peak_bytes'])}; load {os.getloadavg()[0]:.0f}",
        style="dim",
    )
    saved = {}
    for one in results:
        if one.metric != "CPU" or one.case.startswith("a day later"):
            continue
        saved[one.case] = (one.peer_value - one.windrow) / files
        reads = math.ceil(packing_s / saved[one.case]) if saved[one.case] > 0 else math.inf
        console.print(
            f"{one.case}: {saved[one.case] * 1e6:.0f} us saved per file; repaid after {reads} reads",
            style="dim",
        )
    # What the bytes take is another constant.
    own_s = packing_s - making["source_bytes"] / PACK_BYTES_PER_SECOND / making["files"]
    console.print(
        f"PACK_SECONDS {own_s:.5f} (in use {PACK_SECONDS}), READ_SECONDS "
        f"{median(saved.values()):.5f} (in use {READ_SECONDS})",
        style="dim",
    )
    return {"pack_s": own_s, **{f"saved_s: {case}": one for case, one in saved.items()}}


def _in_a_process(python: str, url: str, reader: str, runs: int, tables: Sequence[str]) -> Any:
    program = str(Path(__file__).with_name("pack_reading.py"))
    command = [python, "-W", "ignore", program, url, reader, str(runs), *tables]
    result = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(result.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
