"""Write a year of events with every repartition scheme, and compare the files.

    python benchmarks/writes.py [--quick] [--json FILE] [--runs N]

The files are real Parquet, in one folder per day; in one table the days grow, in the other their
sizes follow Zipf's law. The peers are the textbook's schemes, and Spark's own REBALANCE with two
advisory sizes. The bytes per row are measured by writing two days beforehand. Each timed write
includes everything that it needs: sampling of ranges, counting of keys, planning. Its rows are
compared with the input.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
from common import Result, arguments, console, write_json
from pyspark.sql import functions as F
from rich import box
from rich.table import Table as RichTable

from windrow.client import Client
from windrow.connecting import embedded
from windrow_calls.terminal.consoles import show
from windrow_calls.terminal.java import require_java
from windrow_core.cards import seconds_text
from windrow_core.models import KeyCounts, WritePlan, WritePlanRequest, WriteScheme
from windrow_demo.events import Ints, growing, write_events, zipf
from windrow_demo.local_session import local_session
from windrow_demo.measuring import Fingerprint, Side, fingerprint
from windrow_demo.progress import counting
from windrow_spark.writing import place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "writes"
KIB = 2**10
EXACT, WHOLE = "exact plan", "client.write: exact, checked, committed"
# With this scheme every task writes into every day; more files are not worth the wait.
MAX_EXPLODED_FILES = 4_000
# Sane files: hardly any small files on days with more than one, and no huge file.
MAX_SMALL_SHARE, MAX_LARGEST = 0.05, 1.5
# Name, rows of each day, and files of the target size per day.
YEARS = (("growing", growing, 5), ("Zipf", zipf, 9))
_TASK = re.compile(r"part-(\d+)-")


class LostRowsError(Exception):
    """A write changed the rows, so its figures are meaningless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Year:
    """A table to write.

    Attributes:
        name: Name for people.
        rows_per_day: Number of rows of each day.
        mean_files: Average number of files that a day needs.
    """

    name: str
    rows_per_day: Ints
    mean_files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A table as one scheme wrote it.

    Attributes:
        year: Name of the table.
        scheme: Name of the scheme, for people.
        tasks: Number of tasks that wrote.
        files: Number of data files.
        optimum: Sum over days of `max(1, round(bytes / target))`.
        small: Number of files smaller than half the target.
        torn: Small files of days that hold more than the target; a better plan avoids them.
        largest_file: Size of the largest file, as a multiple of the target.
        largest_task: Most bytes written by one task, as a multiple of the target.
        seconds: Median seconds of the whole write.
    """

    year: str
    scheme: str
    tasks: int
    files: int
    optimum: int
    small: int
    torn: int
    largest_file: float
    largest_task: float
    seconds: float

    @property
    def sane(self) -> bool:
        """Whether the files are of reasonable sizes for readers."""
        return self.torn <= MAX_SMALL_SHARE * self.files and self.largest_file <= MAX_LARGEST


def main() -> None:
    """Run the benchmark."""
    parser = arguments("Write days with every repartition scheme.")
    parser.add_argument("--target", type=int, help="target size of a file, in KiB; 64 by default")
    options = parser.parse_args()
    options.target = options.target or (32 if options.quick else 64)
    require_java()
    days, years = (3, YEARS[1:]) if options.quick else (365, YEARS)
    runs = 1 if options.quick else options.runs
    written: list[Written] = []
    with place_of_work(options.data) as (spark, client, folder):
        bench = Bench(spark, client, folder, options.target * KIB)
        per_row = bench.usual_bytes_per_row(5_000 if options.quick else 50_000)
        for name, share, mean_files in years:
            mean_files = 2 if options.quick else mean_files
            rows = round(days * mean_files * bench.target / per_row)
            year = Year(name=name, rows_per_day=share(days, rows), mean_files=mean_files)
            outcomes = list(bench.run(options.data, year, runs, warm=not options.quick))
            show(_table(outcomes, days, options.target))
            written += outcomes
    if options.json is not None:
        write_json(
            options.json,
            NAME,
            _results(written),
            quick=options.quick,
            target_bytes=options.target * KIB,
            written=[{**asdict(one), "sane": one.sane} for one in written],
        )


class Bench:
    """Writes one table after another in every way."""

    def __init__(self, spark: SparkSession, client: Client, folder: Path, target: int) -> None:
        self._spark = spark
        self._client = client
        self._folder = folder
        self.target = target

    def usual_bytes_per_row(self, rows: int) -> float:
        """Return the bytes per row of two days of events, before there is a year of them."""
        sample = self._folder / "calibration"
        write_events(sample, np.array([rows, rows]), lambda _: None, files=2)
        return self._bytes_per_row(sample)

    def run(self, data: Path, year: Year, runs: int, *, warm: bool) -> Iterator[Written]:
        """Write the table in every way, and yield the outcomes."""
        row_count = int(year.rows_per_day.sum())
        events = data.resolve() / f"{year.name}-{len(year.rows_per_day)}-{row_count}"
        with counting(console, f"Writing the rows: {year.name}", row_count) as progress:
            write_events(events, year.rows_per_day, progress.advance)
        rows = self._spark.read.parquet(str(events))
        expected = _fingerprint(self._spark, rows)
        per_row = self._bytes_per_row(events)
        ways = self._ways(rows, year, per_row)
        # These differ from other schemes only in a number.
        for scheme in () if warm else ("salted x 3", "REBALANCE, 3 T"):
            del ways[scheme]
        console.print(f"{year.name}: {row_count:,} rows, {per_row:.1f} bytes a row", style="dim")
        # The first writes load and compile classes, so they are not timed.
        for scheme in (EXACT, "columns") if warm else ():
            ways[scheme](self._folder / "warm")
            shutil.rmtree(self._folder / "warm")
        with counting(console, f"Writing in {len(ways)} ways", len(ways) * runs) as progress:
            seconds: dict[str, list[float]] = {scheme: [] for scheme in ways}
            for scheme, write in ways.items():
                for _ in range(runs):
                    target = self._folder / "written"
                    began = time.perf_counter()
                    tasks = write(target)
                    seconds[scheme].append(time.perf_counter() - began)
                    progress.advance()
                    # With the schema at hand, Spark need not read a footer for it.
                    back = self._spark.read.schema(rows.schema).parquet(str(target))
                    after = _fingerprint(self._spark, back)
                    if after != expected:
                        raise LostRowsError(f"{year.name}, {scheme}: {after}, not {expected}")
                    files = _found(target)
                    shutil.rmtree(target)
                outcome = self._written(year, scheme, tasks, files, median(seconds[scheme]))
                console.print(
                    f"{scheme}: {outcome.files:,} files, {outcome.seconds:.1f} s", style="dim"
                )
                yield outcome

    def _ways(
        self, rows: DataFrame, year: Year, per_row: float
    ) -> dict[str, Callable[[Path], int]]:
        table = f"bench.{year.name.lower()}"
        days, k = len(year.rows_per_day), year.mean_files
        files = days * k
        mean_rows = round(int(year.rows_per_day.sum()) / days)
        equal = KeyCounts(values=[[str(day) for day in range(days)]], rows=[mean_rows] * days)

        def textbook(scheme: WriteScheme, /, **changed: int | str) -> Callable[[Path], int]:
            def write(folder: Path) -> int:
                # The textbook assumes that all keys are equal, and has only one k.
                request = WritePlanRequest(
                    table=table,
                    scheme=scheme,
                    target_file_size=self.target,
                    bytes_per_row=per_row,
                    keys=equal,
                    files_per_key=k if scheme == "salted" else None,
                    salt_columns=["id"],
                    max_files=10_000_000,
                )
                plan = self._client.write_plan(request).model_copy(update=changed)
                return _save(rows, plan, folder)

            return write

        def exact(folder: Path) -> int:
            plan = self._client.plan_write(
                rows, table, target_file_size=self.target, bytes_per_row=per_row
            )
            return _save(rows, plan, folder)

        def whole(folder: Path) -> int:
            self._client.register_table(
                table, str(folder), partition_columns={"ds": "string"}, replace=True
            )
            report = self._client.write(
                rows, table, target_file_size=self.target, bytes_per_row=per_row
            )
            return report.tasks

        def rebalance(advisory: int) -> Callable[[Path], int]:
            def write(folder: Path) -> int:
                key = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
                self._spark.conf.set(key, str(advisory))
                try:
                    rows.hint("rebalance", "ds").write.partitionBy("ds").parquet(str(folder))
                finally:
                    self._spark.conf.unset(key)
                return len({task for _, task, _ in _found(folder)})

            return write

        self._client.register_table(
            table, str(self._folder / "written"), partition_columns={"ds": "string"}
        )
        exploded = max(2, min(files, MAX_EXPLODED_FILES // days))
        return {
            EXACT: exact,
            # Made by hand, since with many days these two exceed the maximum files of a plan.
            "coalesce": textbook("columns", scheme="coalesce", tasks=rows.rdd.getNumPartitions()),
            f"repartition({exploded:,}), not {files:,}": textbook(
                "columns", scheme="repartition", tasks=exploded
            ),
            "columns": textbook("columns", tasks=files),
            "salted x 1": textbook("salted", tasks=files, scale=1, salts=k),
            "salted x 3": textbook("salted", tasks=3 * files, scale=3, salts=k),
            "range_hash": textbook("range_hash", tasks=files),
            "REBALANCE, T": rebalance(self.target),
            "REBALANCE, 3 T": rebalance(3 * self.target),
            WHOLE: whole,
        }

    def _bytes_per_row(self, events: Path) -> float:
        """Write two days of medium size in files of the target size, and measure them.

        They are first written in two files, to learn how many files are needed.
        """
        rows = self._spark.read.parquet(str(events))
        counts = rows.groupBy("ds").count()
        mean = counts.agg({"count": "avg"}).collect()[0][0]
        two = rows.join(counts.orderBy(F.abs(F.col("count") - mean), "ds").limit(2), "ds")
        size_bytes, count = self._sampled(two.drop("count").repartition(2, "ds"))
        per_day = max(1, round(size_bytes / 2 / self.target))
        salt = F.pmod(F.xxhash64("id"), F.lit(per_day))
        size_bytes, count = self._sampled(
            two.drop("count").repartitionByRange(2 * per_day, "ds", salt)
        )
        return size_bytes / count

    def _sampled(self, rows: DataFrame) -> tuple[int, int]:
        folder = self._folder / "sample"
        rows.sortWithinPartitions("ds").write.partitionBy("ds").parquet(str(folder))
        size_bytes = sum(size for _, _, size in _found(folder))
        count = sum(pq.read_metadata(path).num_rows for path in folder.rglob("*.parquet"))
        shutil.rmtree(folder)
        return size_bytes, count

    def _written(
        self,
        year: Year,
        scheme: str,
        tasks: int,
        files: Sequence[tuple[str, int, int]],
        seconds: float,
    ) -> Written:
        target = self.target
        sizes = np.array([size for _, _, size in files])
        by_day = _sums(np.array([day for day, _, _ in files]), sizes)
        by_task = _sums(np.array([task for _, task, _ in files]), sizes)
        large = {day for day, size_bytes in by_day.items() if size_bytes > target}
        in_large = np.array([day in large for day, _, _ in files])
        small = sizes < target / 2
        return Written(
            year=year.name,
            scheme=scheme,
            tasks=tasks,
            files=len(files),
            optimum=sum(max(1, round(size_bytes / target)) for size_bytes in by_day.values()),
            small=int(small.sum()),
            torn=int((small & in_large).sum()),
            largest_file=float(sizes.max() / target),
            largest_task=max(by_task.values()) / target,
            seconds=seconds,
        )


@contextmanager
def place_of_work(data: Path) -> Iterator[tuple[SparkSession, Client, Path]]:
    """Run Spark and a coordinator in this process; written files are removed at the end."""
    data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=data) as name:
        folder = Path(name).resolve()
        with (
            local_session(NAME, folder / "spark.log") as spark,
            embedded(state_dir=folder / "state", allowed_locations=[str(folder)]) as client,
        ):
            yield spark, client, folder


def _save(rows: DataFrame, plan: WritePlan, folder: Path) -> int:
    place(rows, plan).write.partitionBy("ds").parquet(str(folder))
    return plan.tasks


def _found(folder: Path) -> list[tuple[str, int, int]]:
    """Return the day, task number and size of each data file below a folder."""
    return [
        (os.path.basename(where), int(task[1]), os.path.getsize(os.path.join(where, name)))
        for where, _, names in os.walk(folder)
        for name in names
        if name.endswith(".parquet") and (task := _TASK.match(name))
    ]


def _sums(keys: np.ndarray, sizes: np.ndarray) -> dict[str, int]:
    names, at = np.unique(keys, return_inverse=True)
    return dict(zip(names.tolist(), np.bincount(at, sizes).tolist(), strict=True))


def _fingerprint(spark: SparkSession, rows: DataFrame) -> Fingerprint:
    # Days become dates when they are read back.
    plain = rows.selectExpr("id", "customer", "country", "amount", "cast(ds AS string) AS ds")
    side = Side(name="rows", title="rows", open=lambda _: plain, conf={})
    return fingerprint(spark, side, plain.columns)


def _results(written: list[Written]) -> list[Result]:
    results = []
    for one in written:
        if one.scheme in (EXACT, WHOLE):
            continue
        ours = next(w for w in written if (w.year, w.scheme) == (one.year, EXACT))
        for metric, unit in (("files", "files"), ("largest_task", "targets"), ("seconds", "s")):
            results.append(
                Result(
                    case=one.year,
                    metric=metric,
                    unit=unit,
                    windrow=getattr(ours, metric),
                    peer=one.scheme,
                    peer_value=getattr(one, metric),
                )
            )
    return results


def _table(written: list[Written], days: int, target: int) -> RichTable:
    optimum = next(one.optimum for one in written if one.scheme == EXACT)
    table = RichTable(
        title=f"{written[0].year}: {days} days, T = {target} KiB, {optimum:,} files at best",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("scheme", no_wrap=True)
    heads = ("tasks", "files", "under T/2", "of days over T", "largest file", "task", "time")
    for name in heads:
        table.add_column(name, justify="right")
    sane = [one.seconds for one in written if one.sane and one.scheme not in (EXACT, WHOLE)]
    for one in written:
        ratio = f" ({one.seconds / min(sane):.2f}x)" if sane else ""
        table.add_row(
            one.scheme,
            f"{one.tasks:,}",
            f"{one.files:,}",
            f"{one.small:,}",
            f"{one.torn:,}",
            f"{one.largest_file:.2f} T",
            f"{one.largest_task:.2f} T",
            seconds_text(one.seconds) + ratio,
            style="green" if one.sane else None,
        )
    return table


if __name__ == "__main__":
    main()
