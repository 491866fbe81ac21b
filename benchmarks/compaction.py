"""Compact a table of small files, and read it before and after: Spark's defaults, and Windrow.

    python benchmarks/compaction.py [--quick] [--json FILE] [--store local|hdfs|s3] [--days N]
                                    [--server seaweedfs|moto]

The table holds the flights of 2013 in 19,486 files, one per hour and airport, with a folder per
month. It is compacted to files of 256 KB; then the job runs again and must find nothing to do.
Rows are compared by their hashes. Reads are warm. Spark's figures exclude its listing; Windrow's
include its planning. HDFS and S3 run on loopback, and need Maven Central on first use. The server of
S3 is SeaweedFS, of the extra `benchmark`, or moto, which takes several times as long.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from common import ROOT, Result, arguments, console, write_json
from peers import normal
from pyspark.sql import SparkSession
from rclone import environment
from rich import box
from rich.table import Table
from seaweed import seaweed_server
from sessions import spark_and_client
from tables import upload

from windrow.client import Client
from windrow_calls.terminal.consoles import show
from windrow_calls.terminal.java import require_java
from windrow_core.cards import seconds_text
from windrow_core.sizes import size_text
from windrow_demo.flights import DAYS_IN_THE_YEAR, PARTITION, flights_table
from windrow_demo.hive import write_hive_table
from windrow_demo.measuring import Fingerprint, Timing, fingerprint, time_in_turns, timed
from windrow_demo.sides import SPARK_DEFAULT, WINDROW, flight_queries, sides
from windrow_jobs.compact import Compaction, compact
from windrow_tables.commits.inventories import list_files

sys.path.insert(0, str(ROOT))
from tests.support.servers.hdfs import hdfs_cluster
from tests.support.servers.s3 import s3_server
from tests.support.spark.s3a import s3a_jars, s3a_settings

NAME = "compaction"
TABLE = "bench.flights"
TARGET = 256 * 2**10
QUICK_DAYS = 2
BEFORE = "before compaction"
BUCKET = "flights"


class DisagreementError(Exception):
    """Compaction changed rows or answers, or a second run still found work."""


def main() -> None:
    """Run the benchmark."""
    parser = arguments("Compact a table of small files, and read it before and after.")
    parser.add_argument("--store", choices=("local", "hdfs", "s3"), default="local")
    parser.add_argument(
        "--server", choices=("seaweedfs", "moto"), default="seaweedfs", help="of S3"
    )
    parser.add_argument("--days", type=int, default=DAYS_IN_THE_YEAR, help="days of flights")
    options = parser.parse_args()
    require_java()
    days = QUICK_DAYS if options.quick else options.days
    runs, warm = (1, False) if options.quick else (options.runs, True)
    data = options.data.resolve()
    folder, work = data / "compaction", data / "work-compaction"
    for one in (folder, work):
        shutil.rmtree(one, ignore_errors=True)
    console.print(f"writing the flights of {days} days", style="dim")
    write_flights(folder, days)
    with (
        _stored(options.store, options.server, folder) as (location, conf),
        spark_and_client(location, work, conf) as (spark, client),
    ):
        client.register_table(TABLE, location)
        _, refresh_s = timed(partial(client.refresh, TABLE))
        before = _Reads(spark, client, location, runs, warm)
        console.print("compacting", style="dim")
        is_remote = options.store != "local"
        work_on = partial(
            compact,
            lambda: spark,
            client,
            TABLE,
            target_file_size=TARGET,
            readers_may_see_both=is_remote,
        )
        first, first_s = timed(work_on)
        again, again_s = timed(work_on)
        after = _Reads(spark, client, location, runs, warm)
    _require_the_same(before, first, again, after)
    results = [
        Result(
            case="flights", metric="files", unit="files",
            windrow=after.files, peer=BEFORE, peer_value=before.files,
        ),
        Result(
            case="flights", metric="bytes", unit="bytes",
            windrow=after.size_bytes, peer=BEFORE, peer_value=before.size_bytes,
        ),
        *_reads(before.timings, after.timings),
    ]  # fmt: skip
    seconds = {"refresh": refresh_s, "compaction": first_s, "second run": again_s}
    show(_table(results, seconds))
    if options.json is not None:
        sizes = {"smallest": min(after.sizes), "largest": max(after.sizes), "target": TARGET}
        write_json(
            options.json,
            NAME,
            results,
            seconds=seconds,
            file_bytes=sizes,
            quick=options.quick,
            store=options.store,
        )


@contextmanager
def _stored(store: str, server: str, folder: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Copy a table to a store; yield its location, and the settings of Spark for it."""
    with ExitStack() as stack:
        if store == "local":
            yield str(folder), {}
        elif store == "hdfs":
            console.print("copying it to HDFS", style="dim")
            parts = stack.enter_context(tempfile.TemporaryDirectory())
            cluster = stack.enter_context(hdfs_cluster(Path(parts)))
            location = f"{cluster.uri}/compaction"
            upload(folder, location)
            yield location, {}
        elif server == "seaweedfs":
            console.print("copying it to SeaweedFS", style="dim")
            objects = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            variables = environment(stack.enter_context(seaweed_server(objects, BUCKET)))
            os.environ.update(variables)
            location = f"s3://{BUCKET}/{folder.name}"
            upload(folder, location)
            yield location, _s3a(variables)
        else:
            console.print("copying it to moto", style="dim")
            logging.getLogger("werkzeug").setLevel(logging.ERROR)
            moto = stack.enter_context(s3_server())
            yield moto.upload(folder, BUCKET, folder.name), _s3a(moto.environment)


def _s3a(variables: Mapping[str, str]) -> dict[str, str]:
    settings = {f"spark.hadoop.{name}": value for name, value in s3a_settings(variables).items()}
    return {"spark.jars": ",".join(map(str, s3a_jars())), **settings}


def write_flights(location: Path, days: int) -> None:
    """Write one file per hour and airport, in a folder per month."""
    table = flights_table(days)
    folders = {"month": "month", "day": "d", "origin": "o", "hour": "h"}
    for name in PARTITION[1:]:
        # These columns stay in the files as well.
        table = table.append_column(folders[name], table[name])
    apart = location.with_name("compaction-apart")
    shutil.rmtree(apart, ignore_errors=True)
    apart.mkdir(parents=True)
    write_hive_table(apart, table, tuple(folders.values()), lambda _: None)
    for month in apart.iterdir():
        folder = location / month.name
        folder.mkdir(parents=True)
        for file in month.rglob("*.parquet"):
            name = "-".join(part.partition("=")[2] for part in file.parent.relative_to(month).parts)
            file.rename(folder / f"{name}.parquet")
    shutil.rmtree(apart)


class _Reads:
    """The contents of a table at one time, and the times to read it."""

    def __init__(
        self, spark: SparkSession, client: Client, location: str, runs: int, warm: bool
    ) -> None:
        self.sizes: list[int] = list_files(location)["size_bytes"].to_pylist()
        listed = spark.read.parquet(location.replace("s3:", "s3a:"))
        contestants = [
            side for side in sides(listed, client, TABLE) if side.name in (SPARK_DEFAULT, WINDROW)
        ]
        self.fingerprints: list[Fingerprint] = [
            fingerprint(spark, side, listed.columns) for side in contestants
        ]
        self.timings = time_in_turns(
            spark, contestants, flight_queries(), runs=runs, on_run=lambda *_: None, warm=warm
        )

    @property
    def files(self) -> int:
        return len(self.sizes)

    @property
    def size_bytes(self) -> int:
        return sum(self.sizes)


def _require_the_same(before: _Reads, first: Compaction, again: Compaction, after: _Reads) -> None:
    fingerprints = {repr(one) for one in (*before.fingerprints, *after.fingerprints)}
    if len(fingerprints) != 1:
        raise DisagreementError(f"the rows are not the same before and after: {fingerprints}")
    answers = {(one.query, repr(normal(one.answer))) for one in (*before.timings, *after.timings)}
    if len(answers) != len({query for query, _ in answers}):
        raise DisagreementError(f"the answers are not the same before and after: {answers}")
    if first.left or again.batches:
        raise DisagreementError(
            f"partitions were left, or a second run found work: {first}, {again}"
        )


def _reads(before: Sequence[Timing], after: Sequence[Timing]) -> list[Result]:
    titles = {query.name: query.title for query in flight_queries()}
    earlier = {(one.side, one.query): one for one in before}
    return [
        Result(
            case=f"{one.side}, {titles[one.query]}",
            metric=metric,
            unit=unit,
            windrow=float(getattr(one, field)),
            peer=BEFORE,
            peer_value=float(getattr(earlier[one.side, one.query], field)),
        )
        for one in after
        for metric, unit, field in (
            ("warm read", "s", "median_s"),
            ("tasks", "tasks", "task_count"),
        )
    ]


def _table(results: Sequence[Result], seconds: dict[str, float]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("case", "metric"):
        table.add_column(name, no_wrap=True)
    for name in ("before", "after", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    text = {"s": seconds_text, "bytes": size_text}
    for one in results:
        figure = text.get(one.unit, lambda count: f"{count:,.0f}")
        table.add_row(
            one.case,
            one.metric,
            figure(one.peer_value),
            figure(one.windrow),
            f"{one.ratio:.1f}x",
        )
    for what, time_s in seconds.items():
        table.add_row("", what, "", seconds_text(time_s), "")
    return table


if __name__ == "__main__":
    main()
