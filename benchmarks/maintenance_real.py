"""Two hours of maintenance in ten minutes, on Spark: writers, readers, and workers that are killed.

    python benchmarks/maintenance_real.py [--minutes 10] [--kill-every 60] [--workers 2] [--seed 1]
                                          [--quick] [--json FILE]

Eight tables (`maintained_tables.py`) begin with some hundred small files. Three threads write to them
with Spark, four read them without Spark and one with it, while a coordinator decides every 25 s (five
minutes, compressed twelvefold) and processes of `windrow maintain` do the work. One of these is
killed each minute: half of the time at any moment, otherwise while it rewrites files. Then the
writers and workers stop, and readers go on until the work can be judged.

Reported: rows that should be there and that are, as planned and as listed; what readers saw that they
should not have; writers that failed; the outcomes of the work; and, for each table, the read seconds
that receipts predicted and that later plans had (`gain` of receipts). Ends with 1 if a row is lost or
doubled, a writer or a reader fails, or the gain of all tables differs from the prediction by more than
a factor of two. A plan whose files were replaced before they had been read is made again, and counted.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from common import ROOT, arguments, console, write_figures
from maintained_tables import PATTERNS, Counts, Faults, MaintainedTable, counts_of, listed
from pyspark.sql import functions
from rich import box
from rich.table import Table as RichTable

sys.path.insert(0, str(ROOT))
from tests.support.servers.coordinators import coordinator_process

import windrow
from windrow.client import Client
from windrow_calls.terminal.consoles import show
from windrow_core.models import MaintenanceReceipt
from windrow_demo.local_session import local_session
from windrow_tables.commits import recover
from windrow_tables.commits.inventories import list_files

NAME = "maintenance_real"
WRITERS, SCANNERS = 3, 4
_SPEED = 12
# What the coordinator and the workers do every five minutes, and every minute.
_ROUND_S, _LEASE_S = 300 // _SPEED, 60 // _SPEED
_PAUSE_S = 0.5
# After the end, until all work can be judged by three reads; and the longest wait for a worker to
# rewrite something before it is killed.
_LAST_S, _BUSY_S = 25.0, 20.0
_CONF = {"spark.sql.shuffle.partitions": "4", "spark.driver.memory": "1g"}
_SCHEMA = "batch bigint, number int, value double, p int"
_MOST = 2.0
# Scans of the newest partition only.
_NEWEST = 0.25
_STALE = ("has changed since the plan was made", "has vanished since the plan was made")

Look: TypeAlias = Callable[[Client, MaintainedTable, random.Random], None]


@dataclass(slots=True)
class Figures:
    """What happened.

    Attributes:
        faults: What readers saw that they should not have.
        writes: Number of writes.
        looks: How often a table was read.
        outdated: How often files of a plan were replaced before they had been read.
        kills: Number of workers that were killed, by what they were doing.
        failures: Writers and readers that failed, in words.
    """

    faults: Faults = field(default_factory=Faults)
    writes: int = 0
    looks: int = 0
    outdated: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gains:
    """What receipts of a table say; seconds are those of one read of all of it.

    Attributes:
        table: Its name.
        done: Number of work items that were done.
        measured: How many of them later reads have judged.
        predicted_seconds: What those were expected to save.
        gain_seconds: What they have saved.
        files: Number of files that were rewritten.
        rewritten_bytes: Their bytes.
    """

    table: str
    done: int
    measured: int
    predicted_seconds: float
    gain_seconds: float
    files: int
    rewritten_bytes: int

    @property
    def ratio(self) -> float:
        """What was saved, as a multiple of what was predicted."""
        return self.gain_seconds / self.predicted_seconds if self.predicted_seconds else 1.0


class Bench:
    """The tables, and everybody who works on them.

    Args:
        url: The coordinator.
        spark: A session.
        folder: Folder of the tables, and of the workers' logs.
        seconds: How long writers write.
        seed: Decides who writes and reads what, and when workers are killed.
    """

    def __init__(self, url: str, spark: Any, folder: Path, seconds: float, seed: int) -> None:
        self.url, self.spark, self.folder = url, spark, folder
        self.figures = Figures()
        self.tables = [MaintainedTable(pattern, folder / pattern.name) for pattern in PATTERNS]
        self._seconds, self._seed = seconds, seed
        self._written, self._read = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._began_s = 0.0

    def run(self, workers: int, kill_every: float) -> None:
        """Write, read, maintain and kill, for as long as asked."""
        chance = random.Random(self._seed)
        with windrow.connect(self.url) as client:
            for table in self.tables:
                table.create(client, chance)
            # Nothing is quiet for long, so that workers and writers meet.
            client.set_policy("kept.*", min_age_seconds=0, target_file_size="4MB")
        self._began_s = time.monotonic()
        writers = [partial(self._write_on, number) for number in range(WRITERS)]
        looks: list[Look] = [*[self._scan] * SCANNERS, self._query]
        readers = [partial(self._read_on, number, look) for number, look in enumerate(looks)]
        threads = [threading.Thread(target=work, daemon=True) for work in (*writers, *readers)]
        for thread in threads:
            thread.start()
        with ExitStack() as stack:
            running = [Worker(self.url, self.folder, stack) for _ in range(workers)]
            for number in range(1, int(self._seconds / kill_every) + 1):
                self._wait_until(number * kill_every)
                self._kill(running.pop(0), chance, waits=number % 2 == 0)
                running.append(Worker(self.url, self.folder, stack))
            self._wait_until(self._seconds)
            self._written.set()
            for thread in threads[:WRITERS]:
                thread.join()
        time.sleep(_LAST_S)
        self._read.set()
        for thread in threads[WRITERS:]:
            thread.join()

    def _wait_until(self, seconds: float) -> None:
        time.sleep(max(self._began_s + seconds - time.monotonic(), 0.0))

    @property
    def _progress(self) -> float:
        return min((time.monotonic() - self._began_s) / self._seconds, 0.999)

    def _kill(self, worker: Worker, chance: random.Random, *, waits: bool) -> None:
        if waits:
            worker.wait_for_work(_BUSY_S)
        time.sleep(chance.uniform(0.0, 2.0))
        what = worker.kill()
        if what is None:
            self._fail("a worker", RuntimeError(f"it had ended: {worker.last_words}"))
            return
        self.figures.kills[what] += 1
        console.print(f"{self._progress:.0%}: killed a worker {what}", style="dim")

    def _fail(self, who: str, error: Exception) -> None:
        text = f"{who}: {type(error).__name__}: {str(error)[:500]}"
        console.print(text, style="red")
        with self._lock:
            self.figures.failures.append(text)

    def _write_on(self, number: int) -> None:
        """Write to some of the tables, which nobody else writes to."""
        chance = random.Random(f"{self._seed} {number}")
        mine = self.tables[number::WRITERS]
        weights = [table.pattern.weight for table in mine]
        with windrow.connect(self.url) as client:
            while not self._written.is_set():
                (table,) = chance.choices(mine, weights)
                try:
                    self._write(client, table, chance)
                except Exception as error:
                    self._fail(f"a writer of {table.name}", error)
                self._written.wait(chance.uniform(0, 2 * _PAUSE_S))

    def _write(self, client: Client, table: MaintainedTable, chance: random.Random) -> None:
        pattern = table.pattern
        rows = table.begin(table.partitions(self._progress, chance), chance)
        df = self.spark.createDataFrame(rows, _SCHEMA)
        if not pattern.is_parted:
            df = df.drop("p")
        report = client.write(
            df, table.name, pattern.mode, files_per_key=pattern.files, progress=False
        )
        table.end(rows)
        with self._lock:
            self.figures.writes += 1
            table.files += report.files
            table.size_bytes += report.bytes

    def _read_on(self, number: int, look: Look) -> None:
        chance = random.Random(f"{self._seed} reader {number}")
        with windrow.connect(self.url) as client:
            while not self._read.is_set():
                table = chance.choice(self.tables)
                try:
                    look(client, table, chance)
                except Exception as error:
                    if any(text in str(error) for text in _STALE):
                        with self._lock:
                            self.figures.outdated += 1
                    else:
                        self._fail(f"a reader of {table.name}", error)
                self._read.wait(chance.uniform(0, 2 * _PAUSE_S))

    def _scan(self, client: Client, table: MaintainedTable, chance: random.Random) -> None:
        """Read without Spark: all of a table, or now and then only its newest partition."""
        began_s, partition = time.monotonic(), None
        if table.pattern.is_parted and chance.random() < _NEWEST:
            partition = table.newest(self._progress)
        where = None if partition is None else f"p = {partition}"
        rows = client.scan(table.name, filter=where, columns=["batch", "number"], threads=1)
        self._compare(table, counts_of(rows.to_table()), began_s, partition)

    def _query(self, client: Client, table: MaintainedTable, _: random.Random) -> None:
        """Read all of a table with Spark."""
        began_s = time.monotonic()
        number = functions.col("number")
        rows = client.read(self.spark, table.name).groupBy("batch")
        counts = rows.agg(functions.count(number), functions.countDistinct(number)).collect()
        by_batch = {batch: (count, distinct) for batch, count, distinct in counts}
        self._compare(table, by_batch, began_s)

    def _compare(
        self, table: MaintainedTable, counts: Counts, began_s: float, partition: int | None = None
    ) -> None:
        with self._lock:
            table.compare(counts, began_s, time.monotonic(), self.figures.faults, partition)
            self.figures.looks += 1


class Worker:
    """A process of `windrow maintain`."""

    def __init__(self, url: str, folder: Path, stack: ExitStack) -> None:
        self._log = folder / f"worker-{time.monotonic_ns()}.log"
        options = ("--lease-seconds", str(_LEASE_S), "--master", "local[1]", "--url", url)
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "windrow_cli", "maintain", *options],
                stdout=output,
                stderr=output,
                start_new_session=True,
                env=os.environ | {"PYSPARK_PYTHON": sys.executable},
            )
        stack.callback(self._close)

    def wait_for_work(self, longest_s: float) -> None:
        """Wait until it begins to rewrite files."""
        begins, end_s = self._begins(), time.monotonic() + longest_s
        while self._begins() == begins and time.monotonic() < end_s:
            time.sleep(0.02)

    def kill(self) -> str | None:
        """Kill it by its process id; return what it was doing, or None if it had ended."""
        if self._process.poll() is not None:
            return None
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()
        text = self._log.read_text()
        is_busy = text.rfind(": files: ") > text.rfind(" became ")
        return "that was rewriting files" if is_busy else "that waited or began"

    @property
    def last_words(self) -> str:
        """The end of its log."""
        return self._log.read_text()[-500:]

    def _begins(self) -> int:
        return self._log.read_text().count(": files: ")

    def _close(self) -> None:
        # The JVM of a killed worker ends by itself; here nothing may be left.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def rows_at_the_end(bench: Bench, client: Client) -> list[dict[str, Any]]:
    """Return how many rows each table should have, and has, when everybody has stopped."""
    rows = []
    for table in bench.tables:
        recover(client, table.name)
        faults, began_s = Faults(), time.monotonic()
        planned = client.scan(table.name, columns=["batch", "number"]).to_table()
        for some in (planned, listed(table.location)):
            table.compare(counts_of(some), began_s, time.monotonic(), faults)
        files = len(list_files(str(table.location)))
        changed = client.refresh(table.name, full=True).changed
        rows.append(
            {
                "table": table.name,
                "wanted": table.rows_due,
                "planned": len(planned),
                "files_written": table.files,
                "bytes_written": table.size_bytes,
                "files": files,
                "changed": changed,
                **asdict(faults),
            }
        )
    return rows


def gains_of(bench: Bench, receipts: list[MaintenanceReceipt]) -> list[Gains]:
    """Return what receipts say about each table."""
    gains = []
    for table in bench.tables:
        done = [one for one in receipts if one.table == table.name and one.state == "done"]
        measured = [one.gain for one in done if one.gain is not None]
        outcomes = [one.outcome for one in done if one.outcome is not None]
        gains.append(
            Gains(
                table=table.name,
                done=len(done),
                measured=len(measured),
                predicted_seconds=sum(one.predicted_seconds for one in measured),
                gain_seconds=sum(one.gain_seconds for one in measured),
                files=sum(one.files_before for one in outcomes),
                rewritten_bytes=sum(one.bytes_before for one in outcomes),
            )
        )
    return gains


def main() -> None:
    """Run and report; exit with 1 if anything is not as expected."""
    parser = arguments("Two hours of maintenance in ten minutes, with killed workers.")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long writers write")
    parser.add_argument(
        "--kill-every", type=float, default=60.0, help="seconds between two killed workers"
    )
    parser.add_argument("--workers", type=int, default=2, help="workers that run at the same time")
    parser.add_argument("--seed", type=int, default=1, help="seed of writes, reads and kills")
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    seconds = 80.0 if options.quick else 60 * options.minutes
    kill_every = 35.0 if options.quick else options.kill_every
    data = options.data.resolve() / NAME
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    every = {
        "WINDROW_MAINTENANCE__EVERY": f"PT{_ROUND_S}S",
        "WINDROW_SNAPSHOTS__KEEP_LAST": "10000",
    }
    with (
        coordinator_process(data / "state", data, **every) as coordinator,
        local_session("windrow benchmark", data / "spark.log", conf=_CONF) as spark,
        windrow.connect(coordinator.url) as client,
    ):
        bench = Bench(coordinator.url, spark, data, seconds, options.seed)
        bench.run(options.workers, kill_every)
        client.decide_maintenance()
        receipts = list(client.receipts())
        gains = gains_of(bench, receipts)
        rows = rows_at_the_end(bench, client)
    states = Counter(one.state for one in receipts)
    _show(bench.figures, rows, gains, states)
    wrong = _wrong(bench.figures, rows, gains)
    for text in [*wrong, *bench.figures.failures[:5]]:
        console.print(f"WRONG: {text}")
    if options.json is not None:
        write_figures(
            options.json,
            NAME,
            load_average=[load_before, *os.getloadavg()],
            seconds=seconds,
            figures=_json_of(bench.figures),
            rows=rows,
            gains=[{**asdict(one), "ratio": one.ratio} for one in gains],
            receipts=states,
            wrong=wrong,
            results=[],
        )
    sys.exit(1 if wrong else 0)


def _json_of(figures: Figures) -> dict[str, Any]:
    named = {one.name: getattr(figures, one.name) for one in fields(figures)}
    return named | {"faults": asdict(figures.faults)}


def _wrong(figures: Figures, rows: list[dict[str, Any]], gains: list[Gains]) -> list[str]:
    """Return what is not as expected, in words."""
    wrong = [
        f"{count} rows {what}, as readers saw"
        for what, count in asdict(figures.faults).items()
        if count
    ]
    for one in rows:
        wrong += [
            f"{one['table']}: {one[what]} {what} at the end"
            for what in asdict(Faults())
            if one[what]
        ]
        if one["planned"] != one["wanted"] or one["changed"]:
            wrong.append(f"{one['table']}: {one}")
    if figures.failures:
        wrong.append(f"{len(figures.failures)} writers and readers failed")
    ratio = _total(gains).ratio
    if not 1 / _MOST <= ratio <= _MOST:
        wrong.append(f"the gain is {ratio:.2f} times the predicted one")
    return wrong


def _total(gains: list[Gains]) -> Gains:
    names = ("done", "measured", "predicted_seconds", "gain_seconds", "files", "rewritten_bytes")
    return Gains(table="all", **{name: sum(getattr(one, name) for one in gains) for name in names})


def _show(
    figures: Figures, rows: list[dict[str, Any]], gains: list[Gains], states: Counter[str]
) -> None:
    counts = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    counts.add_column("what")
    counts.add_column("number", justify="right")
    numbers = {
        "writes": figures.writes,
        "looks of readers": figures.looks,
        "looks at replaced files, repeated": figures.outdated,
        "writers and readers that failed": len(figures.failures),
        **{f"workers killed {what}": count for what, count in figures.kills.items()},
        **{f"receipts: {state}": count for state, count in sorted(states.items())},
        "rows that should be there": sum(one["wanted"] for one in rows),
        "rows that are there": sum(one["planned"] for one in rows),
        **{
            f"{what}, as readers saw, and at the end": count + sum(one[what] for one in rows)
            for what, count in asdict(figures.faults).items()
        },
    }
    for what, number in numbers.items():
        counts.add_row(what, f"{number:,}")
    show(counts)
    tables = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, title="gain of one read of all of it")
    for column in ("table", "done", "measured", "predicted", "realised", "ratio"):
        tables.add_column(column, justify="left" if column == "table" else "right")
    for column in ("files written", "left", "rewritten for each byte"):
        tables.add_column(column, justify="right")
    of_table = {one["table"]: one for one in rows}
    for gain in [*gains, _total(gains)]:
        some = [of_table[gain.table]] if gain.table in of_table else rows
        written = sum(one["bytes_written"] for one in some)
        tables.add_row(
            gain.table,
            str(gain.done),
            str(gain.measured),
            f"{1000 * gain.predicted_seconds:.1f} ms",
            f"{1000 * gain.gain_seconds:.1f} ms",
            f"{gain.ratio:.2f}",
            f"{sum(one['files_written'] for one in some):,}",
            f"{sum(one['files'] for one in some):,}",
            f"{gain.rewritten_bytes / written:.2f}",
        )
    show(tables)


if __name__ == "__main__":
    main()
