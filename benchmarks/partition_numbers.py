"""Measure how fast partitions are listed, and plans that name some of them by number.

    python benchmarks/partition_numbers.py [--quick] [--json FILE] [--files N] [--days N] [--cases NAME,…]

A table of 1,000,000 files in 20,000 partitions (500 days of 10 hours in 4 regions) is published to a
coordinator in a process of its own, over SQLite. The partitions are listed, and plans name one of
them, a day, 25 days, every twentieth and all, as ranges of numbers. The peer is the plan with a
filter on the partition columns that selects the same files, where a filter can. Times are those of
the client, which fetches all groups. Cold means the first request of a new process.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
from common import ROOT, Result, arguments, console, selected, times_table, write_json

import windrow
from windrow_calls.plans import SplitPlan
from windrow_calls.terminal.consoles import show
from windrow_core.sizes import size_text

# The tests start the same servers.
sys.path.insert(0, str(ROOT))
from tests.support.servers.coordinators import coordinator_process, peak_bytes

NAME = "partition_numbers"
TABLE = "logs"
HOURS, REGIONS = 10, ("ap", "eu", "sa", "us")
PER_DAY = HOURS * len(REGIONS)
FIRST_DAY = date(2025, 1, 1)
_TYPES = {"ds": "date", "hour": "int", "region": "string"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Some of the partitions, as ranges of their numbers and as a filter."""

    name: str
    ranges: list[tuple[int, int]]
    filter: str | None


def main() -> None:
    """Measure and report."""
    parser = arguments("Measure lists of partitions, and plans of some of them.")
    parser.add_argument("--files", type=int, help="number of files; 1,000,000 by default")
    parser.add_argument("--days", type=int, help="number of days, of 40 partitions; 500 by default")
    parser.add_argument("--cases", help="names of cases, separated by ','; all by default")
    options = parser.parse_args()
    files = options.files or (4_000 if options.quick else 1_000_000)
    days = options.days or (50 if options.quick else 500)
    options.data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.data) as name:
        folder = Path(name)
        with _client(folder) as client:
            _publish(client, folder, files, days)
        cases = selected(_cases(days), options.cases)
        results = _lists(folder, options.runs) + _plans(folder, cases, days, options.runs)
    show(times_table(results))
    if options.json is not None:
        write_json(options.json, NAME, results, files=files, partitions=days * PER_DAY)


@contextmanager
def _client(folder: Path) -> Iterator[windrow.Client]:
    """Start a new coordinator over the same database, and connect to it."""
    with coordinator_process(folder / "state", folder) as process:
        with windrow.connect(process.url, timeout_s=300) as client:
            client.config()
            yield client
        console.print(f"peak memory: {size_text(peak_bytes(process))}", style="dim")


def _publish(client: windrow.Client, folder: Path, files: int, days: int) -> None:
    client.register_table(TABLE, str(folder), columns={"id": "bigint"}, partition_columns=_TYPES)
    client.publish(TABLE, generated(files, days))


def generated(files: int, days: int) -> pa.Table:
    """Return an inventory of small files, as many in each partition, with statistics."""
    number = np.arange(files)
    partition = number * (days * PER_DAY) // files
    folders = [
        f"ds={FIRST_DAY + timedelta(day)}/hour={hour}/region={region}/"
        for day in range(days)
        for hour in range(HOURS)
        for region in REGIONS
    ]
    names = np.char.add(np.char.zfill(number.astype(str), 8), ".parquet")
    paths = np.char.add(np.array(folders)[partition], names)
    bounds = [pa.array(number * 10), pa.array(number * 10 + 9), pa.array(np.zeros(files, np.int64))]
    ids = pa.StructArray.from_arrays(bounds, names=["min", "max", "null_count"])
    return pa.table(
        {
            "path": pa.array(paths.tolist()),
            "size_bytes": 16_384 + number * 7_919 % 40_000,
            "mtime_ns": 1_700_000_000_000_000_000 + number,
            "row_count": np.full(files, 1_000),
            "stats": pa.StructArray.from_arrays([ids], names=["id"]),
        }
    )


def _cases(days: int) -> list[Case]:
    count, middle = days * PER_DAY, days // 2
    day, later = FIRST_DAY + timedelta(middle), FIRST_DAY + timedelta(middle + 25)
    at = middle * PER_DAY
    one = at + HOURS // 2 * len(REGIONS) + REGIONS.index("eu")
    return [
        Case(
            name="1 partition",
            ranges=[(one, one + 1)],
            filter=f"ds = DATE '{day}' AND hour = {HOURS // 2} AND region = 'eu'",
        ),
        Case(name="a day", ranges=[(at, at + PER_DAY)], filter=f"ds = DATE '{day}'"),
        Case(
            name="25 days",
            ranges=[(at, at + 25 * PER_DAY)],
            filter=f"ds >= DATE '{day}' AND ds < DATE '{later}'",
        ),
        Case(name="every 20th", ranges=[(at, at + 1) for at in range(0, count, 20)], filter=None),
        Case(name="every 2nd", ranges=[(at, at + 1) for at in range(0, count, 2)], filter=None),
        Case(name="all", ranges=[(0, count)], filter=None),
    ]


def _lists(folder: Path, runs: int) -> list[Result]:
    """Compare cold lists with warm ones."""
    cold, warm = [], []
    for _ in range(runs):
        with _client(folder) as client:
            cold.append(_seconds(lambda: client.partition_values(TABLE, 1)))
            warm += [_seconds(lambda: client.partition_values(TABLE, 1)) for _ in range(runs)]
    return [Result.in_seconds("list", "warm", median(warm), "Windrow, cold", median(cold))]


def _plans(folder: Path, cases: Sequence[Case], days: int, runs: int) -> list[Result]:
    """Compare plans that name partitions with plans that have a filter."""
    results = []
    for case in cases:
        numbers, filters = [], []
        cold_number, cold_filter = 0.0, 0.0

        def by_number(client: windrow.Client, case: Case = case) -> SplitPlan:
            return client.plan(TABLE, snapshot_id=1, partitions=case.ranges)

        def by_filter(client: windrow.Client, case: Case = case) -> SplitPlan:
            return client.plan(TABLE, snapshot_id=1, filter=case.filter)

        with _client(folder) as client:
            # A query lists the partitions before it plans some of them.
            client.partition_values(TABLE, 1)
            cold_number = _seconds(lambda: by_number(client))
        with _client(folder) as client:
            cold_filter = _seconds(lambda: by_filter(client))
            client.partition_values(TABLE, 1)
            _check(case, by_number(client), by_filter(client), days)
            for _ in range(runs):
                numbers.append(_seconds(lambda: by_number(client)))
                filters.append(_seconds(lambda: by_filter(client)))
        peer = f"Windrow, {'by filter' if case.filter else 'all files'}"
        results += [
            Result.in_seconds(f"plan, {case.name}", metric, number, peer, other)
            for metric, number, other in (
                ("cold", cold_number, cold_filter),
                ("warm", median(numbers), median(filters)),
            )
        ]
    return results


def _check(case: Case, number: SplitPlan, other: SplitPlan, days: int) -> None:
    """Make sure that a plan has the files that it should have."""
    named = sum(end - first for first, end in case.ranges)
    expected = number.summary.files_total * named // (days * PER_DAY)
    if number.summary.files_planned != expected:
        raise SystemExit(f"{case.name}: {number.summary.files_planned} files are not {expected}")
    if case.filter is not None and number.groups != other.groups:
        raise SystemExit(f"{case.name}: the filter plans other files")


def _seconds(work: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s


if __name__ == "__main__":
    main()
