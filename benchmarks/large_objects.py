"""Read large files on S3: Windrow beside Spark's own reader with S3A, in one session.

    python benchmarks/large_objects.py [--quick] [--json FILE] [--cases large8,large64,medium,…]
                                       [--latencies 0.02]

A store on loopback serves generated tables, and answers each request after some seconds; the session
has Hadoop's S3A. All sides run the same queries, in turns, after an untimed round: some columns, and
all. Spark's figures exclude its listing, Windrow's include planning. S3A keeps in memory what it has
read, by which the next side would gain, so it starts anew before each run. Two more sides are Windrow with
`reader="grouped"` and `reader="native"`. With several latencies, the last table says for how many
answers of the store a task waits per file, one after another, as `relation/cost.py` needs it.

S3A's jars come from Maven Central on first use.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from common import ROOT, Result, arguments, console, selected, write_json
from peers import normal
from rich import box
from rich.table import Table as RichTable
from tables import KIB, MIB, TableSpec, generate, table_of

from windrow.client import Client
from windrow.connecting import connect
from windrow_calls.terminal.consoles import show
from windrow_calls.terminal.java import require_java
from windrow_core.cards import seconds_text
from windrow_demo.local_session import local_session
from windrow_demo.measuring import Query, Side, Timing, time_in_turns
from windrow_demo.sides import SPARK_DEFAULT, SPARK_TUNED, WINDROW, sides

sys.path.insert(0, str(ROOT))
from tests.support.servers.coordinators import coordinator_process
from tests.support.servers.slow_store import SlowStore, slow_store
from tests.support.spark.s3a import s3a_jars, s3a_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME, BUCKET = "large_objects", "tables"
SLOTS = 2
GROUPED, NATIVE = "grouped", "native"
PEERS = (SPARK_DEFAULT, SPARK_TUNED, GROUPED, NATIVE)

CASES = (
    table_of(100, 8 * MIB),
    table_of(10, 64 * MIB),
    table_of(2_000, 1 * MIB),
    table_of(200, 256 * KIB),
)
QUICK_CASES = (table_of(6, 256 * KIB),)


class DisagreementError(Exception):
    """Two sides gave different answers, so their figures are meaningless."""


@dataclass(frozen=True, slots=True)
class Reads:
    """The reads of one table at one latency.

    Attributes:
        case: The table.
        latency_s: Seconds until the store answered.
        timings: Times and answers of each side and query.
        requests: Requests of the last run of each side and query.
    """

    case: TableSpec
    latency_s: float
    timings: Sequence[Timing]
    requests: dict[tuple[str, str], int]


def queries() -> tuple[Query, ...]:
    """Return the queries: one column, and all columns."""
    from pyspark.sql import functions as F

    def one(table: DataFrame) -> DataFrame:
        return table.agg(F.count(F.lit(1)), F.sum("amount"))

    def every(table: DataFrame) -> DataFrame:
        names = ("id", "region", "customer", "amount", "score", "day")
        return table.agg(F.count(F.lit(1)), F.sum("amount"), *(F.max(name) for name in names))

    return (
        Query(name="one", title="one column", columns=("amount",), ask=one),
        Query(
            name="all",
            title="all columns",
            columns=("id", "region", "customer", "amount", "score", "day"),
            ask=every,
        ),
    )


def main() -> None:
    """Run the benchmark."""
    parser = arguments("Read large files on S3.")
    parser.add_argument("--cases", help="names of the cases to run, separated by ','")
    parser.add_argument("--latencies", default="0.02", help="seconds, separated by ','")
    options = parser.parse_args()
    require_java()
    cases = selected(QUICK_CASES if options.quick else CASES, options.cases)
    data = options.data.resolve()
    for case in cases:
        generate(data, case)
    runs = 1 if options.quick else options.runs
    reads: list[Reads] = []
    with _place(data) as (spark, client, store):
        for case in cases:
            contestants = _contestants(spark, client, case)
            for latency_s in map(float, options.latencies.split(",")):
                store.latency_s = latency_s
                reads.append(_read(spark, store, contestants, case, latency_s, runs))
            store.latency_s = 0.0
    results = [result for one in reads for result in _results(one)]
    answers = _answers_per_file(reads)
    show(_table(results))
    if answers:
        show(_answers_table(answers))
    if options.json is not None:
        write_json(options.json, NAME, results, quick=options.quick, answers_per_file=answers)


@contextmanager
def _place(data: Path) -> Iterator[tuple[SparkSession, Client, SlowStore]]:
    """Run everything until the end of the block."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "store").mkdir()
        (folder / "store" / BUCKET).symlink_to(data)
        store = stack.enter_context(slow_store(folder / "store"))
        os.environ.update(store.environment)
        coordinator = stack.enter_context(
            coordinator_process(
                folder / "state", folder, WINDROW_ALLOWED_LOCATIONS=f"s3://{BUCKET}"
            )
        )
        client = stack.enter_context(connect(coordinator.url))
        settings = s3a_settings(store.environment)
        conf = {
            "spark.jars": ",".join(map(str, s3a_jars())),
            **{f"spark.hadoop.{name}": value for name, value in settings.items()},
        }
        spark = stack.enter_context(
            local_session(NAME, folder / "spark.log", master=f"local[{SLOTS}]", conf=conf)
        )
        spark.range(10).count()
        yield spark, client, store


def _contestants(spark: SparkSession, client: Client, case: TableSpec) -> tuple[Side, ...]:
    client.register_table(case.name, f"s3://{BUCKET}/{case.name}")
    client.refresh(case.name)
    listed = spark.read.parquet(f"s3a://{BUCKET}/{case.name}")

    def by(reader: Any) -> Side:
        return Side(
            name=reader,
            title=f"Windrow, {reader}",
            open=lambda columns: client.read(spark, case.name, columns=columns, reader=reader),
            conf={},
        )

    return (*sides(listed, client, case.name), by(GROUPED), by(NATIVE))


def _read(
    spark: SparkSession,
    store: SlowStore,
    contestants: Sequence[Side],
    case: TableSpec,
    latency_s: float,
    runs: int,
) -> Reads:
    requests: dict[tuple[str, str], int] = {}

    def on_run(side: Side, query: Query, seconds: float) -> None:
        requests[side.name, query.name] = len(store.requests)
        console.print(
            f"{case.title}, {latency_s} s, {query.title}: {side.name}, {seconds:.2f} s", style="dim"
        )
        _start_anew(spark)
        store.requests.clear()

    _start_anew(spark)
    store.requests.clear()
    timings = time_in_turns(spark, contestants, queries(), runs=runs, on_run=on_run)
    for query in queries():
        answers = {repr(normal(one.answer)) for one in timings if one.query == query.name}
        if len(answers) != 1:
            raise DisagreementError(f"{case.title}, {query.title}: {answers}")
    return Reads(case, latency_s, timings, requests)


def _start_anew(spark: SparkSession) -> None:
    """Close S3A with what it has read and kept, and open it again."""
    jvm: Any = spark.sparkContext._jvm
    files = jvm.org.apache.hadoop.fs
    files.FileSystem.closeAll()
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    files.Path(f"s3a://{BUCKET}/").getFileSystem(settings)


def _results(reads: Reads) -> list[Result]:
    results = []
    for query in queries():
        of_query = {one.side: one for one in reads.timings if one.query == query.name}
        case = f"{reads.case.title}, {query.title}, {reads.latency_s * 1_000:.0f} ms"
        for peer in PEERS:
            seconds = of_query[WINDROW].median_s, of_query[peer].median_s
            results.append(Result.in_seconds(case, "warm read", seconds[0], peer, seconds[1]))
            counts = reads.requests[WINDROW, query.name], reads.requests[peer, query.name]
            results.append(
                Result(
                    case=case,
                    metric="requests",
                    unit="requests",
                    windrow=counts[0],
                    peer=peer,
                    peer_value=counts[1],
                )
            )
    return results


def _answers_per_file(reads: Sequence[Reads]) -> dict[str, float]:
    """Return for each table, query and side the slope of its time over the latency."""
    answers: dict[str, float] = {}
    for case in dict.fromkeys(one.case for one in reads):
        of_case = [one for one in reads if one.case == case]
        latencies = [one.latency_s for one in of_case]
        if len(latencies) < 2:
            continue
        for timing in of_case[0].timings:
            seconds = [
                one.median_s
                for each in of_case
                for one in each.timings
                if (one.side, one.query) == (timing.side, timing.query)
            ]
            slope = float(np.polyfit(latencies, seconds, 1)[0])
            what = f"{case.title}, {timing.query}: {timing.side}"
            answers[what] = slope * SLOTS / case.file_count
    return answers


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


def _answers_table(answers: dict[str, float]) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("case: side")
    table.add_column("answers waited for per file", justify="right")
    for what, slope in answers.items():
        table.add_row(what, f"{slope:.2f}")
    return table


if __name__ == "__main__":
    main()
