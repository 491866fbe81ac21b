"""Kill drivers, compactions and replicas at random; compare rows acknowledged with rows seen.

    python benchmarks/kills.py [--kills 300] [--seed 1] [--spark 6] [--quick] [--json FILE]

Two replicas share PostgreSQL. On a table with partitions and on one without, two writers append and
overwrite, a compaction joins files, and a reader reads the files of each new plan. Every moment one
of them or a replica is killed, and now and then both replicas; three of ten writes die, or kill both
replicas, at a chosen step of their commit. After every eight kills everything that writes is killed, and then one write to
each table must succeed at once. In the end each look of a reader is compared with the rows of its
snapshot. `--spark` kills drivers with a JVM, which run `client.write` and `windrow compact`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from common import ROOT, arguments, console, write_figures
from rich import box
from rich.table import Table as RichTable

# The tests kill the same drivers.
sys.path.insert(0, str(ROOT))
from tests.support.faults.kills import Battle, Figures, Replicas, replicas
from tests.support.servers.databases import server_url

from windrow.client import Client
from windrow_calls.terminal.consoles import show

NAME = "kills"
_EACH = 8
# The longest time from the first write of a driver with a JVM to its death.
_LIFE_S = 12.0
_START_S = 90.0


def kill_spark(battle: Battle, running: Replicas, count: int, seed: int) -> None:
    """Kill drivers with a JVM, writers and compactions in turn, and write once after each."""
    random_ = random.Random(seed)
    table = battle.tables[0]
    for number in range(count):
        is_writer = number % 2 == 0
        task = json.dumps(table.asked(running, "writer", battle.next_number()))
        options = ("--min-files", "2", "--master", "local[1]", "--url", running.url)
        command = (
            (str(ROOT / "benchmarks" / "killed_spark.py"), task)
            if is_writer
            else ("-m", "windrow_cli", "compact", table.name, *options)
        )
        driver = subprocess.Popen(
            [sys.executable, *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
        )
        _wait_for_another(battle.client, table.name, driver)
        time.sleep(random_.uniform(0.0, _LIFE_S))
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
        what = "Spark writer" if is_writer else "windrow compact"
        how = "" if driver.wait() == -signal.SIGKILL else " (had ended)"
        battle.figures.kills[f"{what}{how}"] += 1
        battle.write_next(table)
        battle.compare_now(table)


def _wait_for_another(client: Client, table: str, driver: subprocess.Popen[bytes]) -> None:
    """Wait until a driver has begun a write, or has ended; it takes seconds to start."""
    newest = client.writes(table)[0].write_id
    deadline_s = time.monotonic() + _START_S
    while client.writes(table)[0].write_id == newest and driver.poll() is None:
        if time.monotonic() > deadline_s:
            raise SystemExit("a driver with a JVM has not begun to write in time")
        time.sleep(0.05)


def main() -> None:
    """Run and report; exit with 1 if anything is not as expected."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spark", type=int, default=6, help="number of killed Spark drivers")
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    kills, spark = (16, 0) if options.quick else (options.kills, options.spark)
    began_s = time.monotonic()
    with (
        server_url() as server,
        TemporaryDirectory(prefix="windrow-kills-") as folder,
        replicas(server, Path(folder)) as running,
    ):
        battle = Battle(running, Path(folder), options.seed)
        while battle.figures.kills.total() < kills and battle.figures.holds:
            battle.fight(_EACH)
            console.print(f"{battle.figures.kills.total()} of {kills} kills")
        if spark:
            kill_spark(battle, running, spark, options.seed)
        figures = battle.close()
    seconds = time.monotonic() - began_s
    _show(figures, seconds)
    if options.json is not None:
        load = [load_before, *os.getloadavg()]
        write_figures(options.json, NAME, load_average=load, seconds=seconds, **vars(figures))
    sys.exit(0 if figures.holds else 1)


def _show(figures: Figures, seconds: float) -> None:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("what")
    table.add_column("number", justify="right")
    counted = {f"killed: {what}": n for what, n in sorted(figures.kills.items())}
    counted |= {"killed": figures.kills.total(), **dict(sorted(figures.outcomes.items()))}
    counted |= {
        "rows acknowledged": figures.rows,
        "looks of readers": figures.looks,
        "looks at replaced files": figures.outdated,
        "rows lost": len(figures.lost),
        "rows doubled": len(figures.doubled),
        "rows of undone writes": len(figures.foreign),
        "writes stuck": len(figures.stuck),
        "wrong outcomes": len(figures.wrong),
    }
    for what, number in counted.items():
        table.add_row(what, f"{number:,}")
    show(table)
    console.print(f"{seconds:.0f} s", *figures.stuck[:5], *figures.wrong[:5])


if __name__ == "__main__":
    main()
