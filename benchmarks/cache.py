"""Read cached partitions of a table in a slow object store again and again, on three workers.

    python benchmarks/cache.py [--quick] [--json FILE] [--latency SECONDS]

A Spark standalone cluster, a coordinator with Redis, and the workers' agents run on loopback. So
does the S3 store, which delays and counts requests. The peer is the same read of the same table
before it had a cache rule. A quick run has one worker.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as pads
from common import ROOT, Result, arguments, console, write_json
from rich import box
from rich.table import Table as RichTable
from tables import KIB, TableSpec, generate, table_of

from windrow.client import Client
from windrow.connecting import connect
from windrow_calls.terminal.consoles import show
from windrow_calls.terminal.java import require_java
from windrow_core.cards import seconds_text
from windrow_demo.local_session import local_session

sys.path.insert(0, str(ROOT))
from tests.support.servers.coordinators import coordinator_process
from tests.support.servers.redis import redis_process
from tests.support.servers.slow_store import SlowStore, slow_store
from tests.support.spark.clusters import HOSTS, Caching, counters, spark_cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "cache"
TABLE, BUCKET = "bench.cached", "tables"
# Each day's folder holds a hundred files.
UNCACHED_DAYS, CACHED_FILES = 2, 3_000
QUICK_UNCACHED_DAYS, QUICK_CACHED_FILES = 1, 40
WITHOUT, FIRST, SECOND = "without cache", "first read", "second read"
COLUMNS = ["id", "amount"]
REPORT_TIMEOUT_S = 60.0
UNTIMED_READS = 8


class DisagreementError(Exception):
    """Two reads gave different answers, so their figures are meaningless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One read of the cached partitions.

    Attributes:
        what: Which read it is.
        seconds: Seconds from planning to the answer.
        groups: Number of groups, each read by one task.
        requests: Number of requests to the store for data files.
        on_worker: Share of cached files that their own worker read; None if no file is cached.
    """

    what: str
    seconds: float
    groups: int
    requests: int
    on_worker: float | None


def main() -> None:
    """Run the benchmark."""
    parser = arguments("Read cached partitions again.")
    parser.add_argument("--latency", type=float, default=0.02, help="seconds a request waits")
    options = parser.parse_args()
    require_java()
    first_day, cached = (
        (QUICK_UNCACHED_DAYS, QUICK_CACHED_FILES)
        if options.quick
        else (UNCACHED_DAYS, CACHED_FILES)
    )
    spec = table_of(100 * first_day + cached, 16 * KIB)
    runs, untimed, hosts = (1, 0, 1) if options.quick else (options.runs, UNTIMED_READS, len(HOSTS))
    data = options.data.resolve()
    generate(data, spec)
    with place(data, spec, first_day, options.latency, hosts) as bench:
        reads = bench.reads(runs, untimed)
        packing = bench.packing()
    show(_table(reads))
    show(_packing_table(packing, min(cached, 100)))
    if options.json is not None:
        write_json(
            options.json,
            NAME,
            [_result(spec, reads, WITHOUT), _result(spec, reads, FIRST)],
            quick=options.quick,
            latency_s=options.latency,
            reads=[_plain(read) for read in reads],
            packing=[_plain(read) for read in packing],
        )


class Bench:
    """The table, whose partitions from `first_day` on are cached, its store, and its cluster."""

    def __init__(
        self,
        spark: SparkSession,
        client: Client,
        store: SlowStore,
        first_day: int,
        expected: tuple[int, ...],
    ) -> None:
        self._first_day = first_day
        self._rule = _rule(first_day)
        self._spark = spark
        self._client = client
        self._store = store
        self._expected = expected
        self._counters = counters(client)

    def reads(self, runs: int, untimed: int) -> list[Read]:
        """Return the reads without a cache, the first one with it, and later ones."""
        # Untimed reads warm up the Python workers and four JVMs.
        for _ in range(untimed):
            self._read(WITHOUT)
        reads = [self._read(WITHOUT) for _ in range(runs)]
        self._client.cache_table(TABLE, self._rule)
        reads.append(self._read(FIRST))
        self._wait_for_reports()
        return reads + [self._read(SECOND) for _ in range(runs)]

    def packing(self) -> list[Read]:
        """Return reads of one day whose files share tasks, and reads with one file per task."""
        day = f"day = {self._first_day}"
        return [
            self._read(cached_splits, day, cached_splits=cached_splits)
            for cached_splits in ("by_worker", "separate")
        ]

    def _read(
        self, what: str, filter_: str | None = None, *, cached_splits: str = "by_worker"
    ) -> Read:
        self._store.requests.clear()
        began = time.perf_counter()
        rows = self._client.read(
            self._spark,
            TABLE,
            filter=filter_ or self._rule,
            columns=COLUMNS,
            reader="grouped",
            cached_splits=cached_splits,
        )
        answer = rows.selectExpr("count(*)", "sum(id)", "sum(amount)").first()
        seconds = time.perf_counter() - began
        if filter_ is None and tuple(answer or ()) != self._expected:
            raise DisagreementError(f"{what}: {answer}, but {self._expected} was written")
        requests = sum(self._store.data_requests().values())
        before, after = self._counters, counters(self._client)
        self._counters = after
        hits, elsewhere = after.hits - before.hits, after.elsewhere - before.elsewhere
        return Read(
            what=what,
            seconds=seconds,
            groups=rows.rdd.getNumPartitions(),
            requests=requests,
            on_worker=hits / (hits + elsewhere) if hits + elsewhere else None,
        )

    def _wait_for_reports(self) -> None:
        deadline = time.monotonic() + REPORT_TIMEOUT_S
        while True:
            plan = self._client.plan(TABLE, filter=self._rule, cached_splits="by_worker").summary
            if plan.cached_files == plan.cacheable_files:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"{plan.cached_files} of {plan.cacheable_files} are cached")
            time.sleep(0.2)


@contextmanager
def place(
    data: Path, spec: TableSpec, first_day: int, latency_s: float, hosts: int
) -> Iterator[Bench]:
    """Run everything until the end of the block."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "store").mkdir()
        (folder / "store" / BUCKET).symlink_to(data)
        store = stack.enter_context(slow_store(folder / "store", latency_s=latency_s))
        os.environ.update(store.environment)
        location = f"s3://{BUCKET}/{spec.name}"
        (folder / "redis").mkdir()
        redis = stack.enter_context(redis_process(folder / "redis"))
        coordinator = stack.enter_context(
            coordinator_process(
                folder / "state",
                folder,
                WINDROW_ALLOWED_LOCATIONS=f"s3://{BUCKET}",
                WINDROW_REDIS_URL=redis.url,
            )
        )
        client = stack.enter_context(connect(coordinator.url))
        client.register_table(TABLE, location)
        console.print(f"{spec.title}: taking the inventory", style="dim")
        client.refresh(TABLE)
        console.print("starting the cluster", style="dim")
        (folder / "cluster").mkdir()
        cluster = stack.enter_context(
            spark_cluster(
                folder / "cluster", HOSTS[:hosts], caching=Caching(coordinator=coordinator.url)
            )
        )
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        spark = stack.enter_context(
            local_session(NAME, folder / "spark.log", master=cluster.master, conf=cluster.conf)
        )
        spark.range(10).count()
        yield Bench(spark, client, store, first_day, _written(data / spec.name, first_day))


def _rule(first_day: int) -> str:
    return f"day >= {first_day}"


def _written(folder: Path, first_day: int) -> tuple[int, ...]:
    """Return the expected answer, computed from the files."""
    dataset = pads.dataset(folder, format="parquet", partitioning="hive")
    rows = dataset.to_table(COLUMNS, filter=pads.field("day") >= first_day)
    return len(rows), sum(rows["id"].to_pylist()), sum(rows["amount"].to_pylist())


def _median(reads: list[Read], what: str) -> float:
    return median(read.seconds for read in reads if read.what == what)


def _result(spec: TableSpec, reads: list[Read], peer: str) -> Result:
    return Result(
        case=f"{spec.title}, cached partitions",
        metric=SECOND,
        unit="s",
        windrow=_median(reads, SECOND),
        peer=peer,
        peer_value=_median(reads, peer),
    )


def _plain(read: Read) -> dict[str, Any]:
    return {name: getattr(read, name) for name in Read.__slots__}


def _table(reads: list[Read]) -> RichTable:
    table = _reads_table(reads)
    second = _median(reads, SECOND)
    for peer in (WITHOUT, FIRST):
        table.add_row(f"{peer} : {SECOND}", f"{_median(reads, peer) / second:.1f}x")
    return table


def _packing_table(reads: list[Read], files: int) -> RichTable:
    table = _reads_table(reads)
    table.title = f"one day of {files} cached files"
    return table


def _reads_table(reads: list[Read]) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("read", no_wrap=True)
    for name in ("time", "tasks", "requests for data", "on their worker"):
        table.add_column(name, justify="right")
    for read in reads:
        share = "" if read.on_worker is None else f"{read.on_worker:.1%}"
        table.add_row(
            read.what, seconds_text(read.seconds), f"{read.groups:,}", f"{read.requests:,}", share
        )
    return table


if __name__ == "__main__":
    main()
