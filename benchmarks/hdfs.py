"""Read tables on HDFS: Windrow beside Spark's own reader, and where the tasks of both ran.

    python benchmarks/hdfs.py [--quick] [--json FILE] [--cases small,mix,large] [--share 0.2]
                              [--replicas 2]

A NameNode and three DataNodes of Hadoop run on loopback addresses, each block on `--replicas` of them,
and a Spark standalone cluster with an executor of one core on two addresses, or on all three if this
machine has three cores: slots that share a core favour many small tasks. The inventory job takes the
inventory, with the hosts of blocks. All sides run the same queries in one session, in turns, after an untimed
round; Spark's figures exclude its listing, Windrow's include planning.

The cluster's code comes from Maven Central on first use.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from common import ROOT, Result, arguments, console, selected, write_json
from peers import normal, queries
from rich import box
from rich.table import Table as RichTable
from tables import KIB, MIB, Part, TableSpec, generate, upload

from windrow.client import Client
from windrow.connecting import connect
from windrow_calls.terminal.consoles import show
from windrow_calls.terminal.java import require_java
from windrow_core.cards import seconds_text
from windrow_demo.local_session import local_session
from windrow_demo.measuring import Side, Timing, fingerprint, time_in_turns, timed
from windrow_demo.sides import SPARK_DEFAULT, SPARK_TUNED, WINDROW, sides
from windrow_jobs.hosts import hosts_of
from windrow_jobs.inventory import publish_inventory

sys.path.insert(0, str(ROOT))
from tests.support.servers.coordinators import coordinator_process
from tests.support.servers.hdfs import HOSTS, hdfs_cluster
from tests.support.spark.clusters import spark_cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "hdfs"
COLUMNS = ("id", "region", "customer", "amount", "score", "day")
PEERS = (SPARK_DEFAULT, SPARK_TUNED)

# Tests want executors that start soon and wait long; these are as users have them.
USUAL = {"spark.executor.extraJavaOptions": "", "spark.locality.wait": "3s"}

CASES = (
    TableSpec("small", "10,000 x 16 KB", (Part(10_000, 16 * KIB),)),
    TableSpec("mix", "2,000 x 16 KB + 10 x 64 MB", (Part(2_000, 16 * KIB), Part(10, 64 * MIB))),
    TableSpec("large", "10 x 64 MB", (Part(10, 64 * MIB),)),
)
QUICK_CASES = (
    TableSpec("quicksmall", "60 x 16 KB", (Part(60, 16 * KIB),)),
    TableSpec("quickmix", "30 x 16 KB + 3 x 4 MB", (Part(30, 16 * KIB), Part(3, 4 * MIB))),
)


class DisagreementError(Exception):
    """Two sides gave different answers, so their figures are meaningless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Locality:
    """Where the tasks of a read ran.

    Attributes:
        case: Title of the table.
        side: Name of the side.
        tasks: Number of tasks that read files.
        local_tasks: Those that ran on the host with most of the bytes that they read.
        read_bytes: Bytes of the files that were read.
        local_bytes: Those on the host of their task.
    """

    case: str
    side: str
    tasks: int
    local_tasks: int
    read_bytes: int
    local_bytes: int


def main() -> None:
    """Run the benchmark."""
    parser = arguments("Read tables on HDFS.")
    parser.add_argument("--cases", help="names of the cases to run, separated by ','")
    parser.add_argument("--share", type=float, default=1.0, help="share of the files of each case")
    parser.add_argument("--replicas", type=int, default=2, help="DataNodes that hold a block")
    options = parser.parse_args()
    require_java()
    cases = [
        _part_of(case, options.share)
        for case in selected(QUICK_CASES if options.quick else CASES, options.cases)
    ]
    data = options.data.resolve()
    for case in cases:
        generate(data, case)
    results: list[Result] = []
    localities: list[Locality] = []
    with _place(data, cases, options.replicas) as (spark, client, root):
        for case in cases:
            bench = _Bench(spark, client, case, f"{root}/{case.name}")
            results += bench.results(1 if options.quick else options.runs, warm=not options.quick)
            localities += bench.localities()
    show(_table(results))
    show(_localities_table(localities))
    if options.json is not None:
        places = [asdict(locality) for locality in localities]
        write_json(options.json, NAME, results, quick=options.quick, localities=places)


def _part_of(case: TableSpec, share: float) -> TableSpec:
    """Return a table with a share of the files of another one."""
    if share == 1:
        return case
    parts = tuple(
        Part(max(1, round(part.file_count * share)), part.file_bytes) for part in case.parts
    )
    return TableSpec(f"{case.name}{share:g}", f"{case.title}, {share:.0%} of the files", parts)


@contextmanager
def _place(
    data: Path, cases: Sequence[TableSpec], replicas: int
) -> Iterator[tuple[SparkSession, Client, str]]:
    """Run everything until the end of the block; yield session, client and the tables' folder."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name in ("hdfs", "spark"):
            (folder / name).mkdir()
        hdfs = stack.enter_context(hdfs_cluster(folder / "hdfs", replication=replicas))
        for case in cases:
            console.print(f"{case.title}: copying it to HDFS", style="dim")
            upload(data / case.name, f"{hdfs.uri}/{case.name}")
        coordinator = stack.enter_context(
            coordinator_process(folder / "state", folder, WINDROW_ALLOWED_LOCATIONS=hdfs.uri)
        )
        client = stack.enter_context(connect(coordinator.url))
        cluster = stack.enter_context(
            spark_cluster(folder / "spark", HOSTS[: max(2, os.cpu_count() or 2)])
        )
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        spark = stack.enter_context(
            local_session(
                NAME, folder / "spark.log", master=cluster.master, conf={**cluster.conf, **USUAL}
            )
        )
        spark.range(10).count()
        yield spark, client, hdfs.uri


class _Bench:
    """One table, read on all sides.

    Args:
        spark: Session of the cluster.
        client: Client of the coordinator.
        case: The table.
        location: URI of its folder.
    """

    def __init__(self, spark: SparkSession, client: Client, case: TableSpec, location: str) -> None:
        self._spark = spark
        self._case = case
        self._location = location
        console.print(f"{case.title}: taking the inventory", style="dim")
        client.register_table(case.name, location)
        self._inventory_s = publish_inventory(spark, client, case.name).seconds
        listed, self._listing_s = timed(partial(spark.read.parquet, location))
        self._sides = sides(listed, client, case.name)

    def results(self, runs: int, *, warm: bool) -> list[Result]:
        """Compare rows and times of all sides."""
        title = self._case.title
        prints = {side.name: fingerprint(self._spark, side, COLUMNS) for side in self._sides}
        if len(set(map(repr, prints.values()))) != 1:
            raise DisagreementError(f"{title}: the sides do not agree: {prints}")
        if prints[WINDROW].row_count != self._case.row_count:
            raise DisagreementError(f"{title}: {prints} and {self._case.row_count:,} were written")
        timings = time_in_turns(
            self._spark,
            self._sides,
            queries(),
            runs=runs,
            on_run=lambda side, query, seconds: console.print(
                f"{title}, {query.name}: {side.name}, {seconds:.2f} s", style="dim"
            ),
            warm=warm,
        )
        results = [
            Result.in_seconds(
                title, "know the files", self._inventory_s, SPARK_DEFAULT, self._listing_s
            )
        ]
        for query in queries():
            of_query = {one.side: one for one in timings if one.query == query.name}
            if len({repr(normal(one.answer)) for one in of_query.values()}) != 1:
                raise DisagreementError(f"{title}, {query.title}: {of_query}")
            results += self._compared(f"{title}, {query.title}", of_query)
        return results

    def _compared(self, case: str, timings: dict[str, Timing]) -> list[Result]:
        ours = timings[WINDROW]
        return [
            Result(
                case=case,
                metric=metric,
                unit=unit,
                windrow=value(ours),
                peer=peer,
                peer_value=value(timings[peer]),
            )
            for peer in PEERS
            for metric, unit, value in (
                ("warm read", "s", lambda timing: timing.median_s),
                ("tasks", "tasks", lambda timing: timing.task_count),
            )
        ]

    def localities(self) -> list[Locality]:
        """Read the table once more on each side, and look where the tasks ran."""
        return [self._locality(side) for side in self._sides if side.name != SPARK_TUNED]

    def _locality(self, side: Side) -> Locality:
        from pyspark.sql import functions as F

        context = self._spark.sparkContext
        group = f"locality-{self._case.name}-{side.name}"
        context.setJobGroup(group, group)
        try:
            files = (
                side.open(("amount",))
                .groupBy(F.spark_partition_id(), "_metadata.file_path", "_metadata.file_size")
                .agg(F.sum("amount"))
                .collect()
            )
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)
        host_of = _hosts_of_tasks(self._spark, group)
        paths = [path.partition(self._location)[2].lstrip("/") for _, path, _, _ in files]
        hosts = hosts_of(self._spark, self._location, pa.chunked_array([paths])).to_pylist()
        read, local = Counter[int](), Counter[int]()
        for (task, _, size_bytes, _), names in zip(files, hosts, strict=True):
            read[task] += size_bytes
            local[task] += size_bytes * (host_of[task] in {n.rpartition("/")[2] for n in names})
        return Locality(
            case=self._case.title,
            side=side.name,
            tasks=len(read),
            local_tasks=sum(2 * local[task] > read[task] for task in read),
            read_bytes=read.total(),
            local_bytes=local.total(),
        )


def _hosts_of_tasks(spark: SparkSession, group: str) -> dict[int, str]:
    """Return on which host each task of the first stage of a job group ran, by its number."""
    context: Any = spark.sparkContext
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = {stage for job in jobs if job for stage in job.stageIds}
    tasks = context._jsc.sc().statusStore().taskList(min(stages), 0, 2**30)
    each = (tasks.apply(at) for at in range(tasks.size()))
    return {task.partitionId(): task.host() for task in each}


def _table(results: Sequence[Result]) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("case", overflow="fold")
    for name in ("metric", "windrow", "peer", "peer's"):
        table.add_column(name, no_wrap=True)
    for one in results:
        figure = seconds_text if one.unit == "s" else "{:,.0f}".format
        peers = f"{figure(one.peer_value)} ({one.ratio:.2f}x)"
        table.add_row(one.case, one.metric, figure(one.windrow), one.peer, peers)
    return table


def _localities_table(localities: Sequence[Locality]) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("case", "side", "tasks", "on the host of their bytes", "bytes on their host"):
        table.add_column(name)
    for one in localities:
        table.add_row(
            one.case,
            one.side,
            f"{one.tasks:,}",
            f"{one.local_tasks / one.tasks:.1%}",
            f"{one.local_bytes / one.read_bytes:.1%}",
        )
    return table


if __name__ == "__main__":
    main()
