"""Read tables in an object store that is 20 ms away: Windrow, Polars, DuckDB and plain loops.

    python benchmarks/object_stores.py [--quick] [--json FILE] [--cases small,wide,limited]
                                       [--sides NAME,…] [--files N] [--delay SECONDS]
                                       [--server rclone|moto]

An S3 server runs on loopback, behind a proxy that delays, counts and limits requests. All sides run
the same query on the same files, in turns, after an untimed read. Windrow's times include planning,
and those of Polars and DuckDB listing; the plain loops are given the names:

- `one at a time`: one GET after the other.
- `two requests`: HEAD and GET by pyarrow.fs, 16 threads in each of Spark's tasks, as Windrow
  read before it kept ETags.

DuckDB takes part where the package `duckdb-extension-httpfs` of its release is installed. Spark's
own reader would need Hadoop's client for S3, which pyspark does not bring.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import ROOT, Result, arguments, console, write_json
from duckdb_extensions import NoExtensionError, load_extension, use_s3
from rclone import environment, rclone_server
from rich import box
from rich.table import Table as RichTable
from tables import KIB, generate, rows_of, table_of

from windrow.client import Client
from windrow.connecting import connect
from windrow_calls.terminal.consoles import show
from windrow_calls.terminal.java import require_java
from windrow_core.cards import seconds_text
from windrow_demo.local_session import local_session
from windrow_demo.write_once import write_once

sys.path.insert(0, str(ROOT))
from tests.support.faults.object_proxy import ObjectProxy, object_proxy
from tests.support.servers.coordinators import coordinator_process
from tests.support.servers.s3 import s3_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME, BUCKET = "object_stores", "tables"
WINDROW, POLARS, DUCKDB = "windrow", "polars", "duckdb"
ONE_AT_A_TIME, TWO_REQUESTS = "one at a time", "two requests"
LIMIT_PER_S = 200
TWO_REQUESTS_THREADS = 16
WIDE_COLUMNS = 200
_FILES_PER_FOLDER = 100
# Wide and tiny files are links to this many different files, so that gigabytes take megabytes.
_DIFFERENT_FILES = 20
_WIDE_ROWS, _TINY_ROWS = 640, 10

_CHANGED_NS = 1_700_000_000_111_000_000

# The number of rows, and the sum and maximum of the column.
Answer = tuple[Any, ...]


class DisagreementError(Exception):
    """Two sides gave different answers, so their figures are meaningless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A table, and the query on it.

    Attributes:
        name: Name of the table and its folder.
        title: Title for people.
        files: Number of files.
        column: Name of the column that is read.
        chunk_bytes: Bytes of the column's chunks in all files.
        limit: Requests per second that the store accepts; None for any number.
        slots: Tasks that Spark runs at the same time.
        sides: Names of the sides that read.
    """

    name: str
    title: str
    files: int
    column: str
    chunk_bytes: int
    limit: int | None
    slots: int
    sides: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One read of one side.

    Attributes:
        side: Name of the side.
        seconds: Seconds from planning or listing to the answer.
        requests: Requests for files, including refused ones.
        sent_bytes: Bytes of files that the store sent.
        slowed: Requests that the store refused because there were too many.
        limit_used: Share of the limit that was used; None without a limit.
        failure: Why there is no answer; empty if there is one.
    """

    side: str
    seconds: float
    requests: int
    sent_bytes: int
    slowed: int
    limit_used: float | None
    failure: str


def main() -> None:
    """Run the benchmark."""
    parser = arguments("Read tables in an object store.")
    parser.add_argument("--cases", default="small,wide,limited", help="names, separated by ','")
    parser.add_argument("--files", type=int, help="number of files of each table")
    parser.add_argument("--delay", type=float, default=0.02, help="seconds each answer waits")
    parser.add_argument("--sides", help="peers, separated by ','; all by default")
    parser.add_argument("--server", choices=("rclone", "moto"), default="rclone")
    options = parser.parse_args()
    require_java()
    store = options.data.resolve() / "objects"
    (store / BUCKET).mkdir(parents=True, exist_ok=True)
    makers = {"small": _small, "wide": _wide, "limited": _limited}
    cases = [
        makers[name](store / BUCKET, options.files or (24 if options.quick else None))
        for name in options.cases.split(",")
    ]
    if options.sides is not None:
        sides = (WINDROW, *options.sides.split(","))
        cases = [
            replace(case, sides=tuple(side for side in case.sides if side in sides))
            for case in cases
        ]
    if options.quick:
        # With the same number of slots, all cases can share what Spark starts.
        cases = [replace(case, slots=min(case.slots for case in cases)) for case in cases]
    runs = 1 if options.quick else options.runs
    reads: dict[str, list[Read]] = {}
    with ExitStack() as stack:
        endpoint = stack.enter_context(served(store, options.server))
        proxy = stack.enter_context(object_proxy(endpoint))
        client = stack.enter_context(store_client(proxy.url))
        for case in cases:
            reads[case.title] = _reads(client, proxy, store / BUCKET, case, runs, options.delay)
    results = [result for case in cases for result in _results(case, reads[case.title])]
    for case in cases:
        show(_table(case, reads[case.title]))
    if options.json is not None:
        write_json(
            options.json,
            NAME,
            results,
            quick=options.quick,
            delay_s=options.delay,
            server=options.server,
            reads={title: [asdict(read) for read in found] for title, found in reads.items()},
            chunk_bytes={case.title: case.chunk_bytes for case in cases},
        )


# --- the tables ---------------------------------------------------------------


def _small(bucket: Path, files: int | None) -> Case:
    spec = table_of(files or 3_000, 16 * KIB)
    folder = generate(bucket, spec)
    return Case(
        name=spec.name,
        title=spec.title,
        files=spec.file_count,
        column="amount",
        chunk_bytes=_chunk_bytes(folder, "amount"),
        limit=None,
        slots=2,
        sides=(WINDROW, TWO_REQUESTS, ONE_AT_A_TIME, POLARS, *duckdb_if_installed()),
    )


def _wide(bucket: Path, files: int | None) -> Case:
    def rows(seed: int) -> pa.Table:
        random = np.random.default_rng(seed)
        return pa.table(
            {f"c{at:03}": random.integers(0, 2**40, _WIDE_ROWS) for at in range(WIDE_COLUMNS)}
        )

    count = files or 2_000
    folder = _linked(bucket, f"wide{count}", count, rows)
    return Case(
        name=folder.name,
        title=f"{count:,} x 1 MB, one column of {WIDE_COLUMNS}",
        files=count,
        column="c017",
        chunk_bytes=_chunk_bytes(folder, "c017"),
        limit=None,
        slots=2,
        sides=(WINDROW, POLARS, *duckdb_if_installed()),
    )


def _limited(bucket: Path, files: int | None) -> Case:
    count = files or 20_000
    folder = _linked(bucket, f"tiny{count}", count, lambda seed: rows_of(seed, 0, _TINY_ROWS))
    return Case(
        name=folder.name,
        title=f"{count:,} tiny files, {LIMIT_PER_S} requests a second",
        files=count,
        column="amount",
        chunk_bytes=_chunk_bytes(folder, "amount"),
        limit=LIMIT_PER_S,
        slots=4,
        sides=(WINDROW, POLARS),
    )


def _linked(bucket: Path, name: str, count: int, rows: Callable[[int], pa.Table]) -> Path:
    """Return a table in folders by `day`, most of whose files are links to a few."""
    folder = bucket / name

    def write(to: Path) -> None:
        for at in range(count):
            path = to / f"day={at // _FILES_PER_FOLDER}" / f"part-{at:06}.parquet"
            path.parent.mkdir(exist_ok=True)
            if at < _DIFFERENT_FILES:
                pq.write_table(rows(at), path, compression="none", use_dictionary=False)
            else:
                os.link(to / "day=0" / f"part-{at % _DIFFERENT_FILES:06}.parquet", path)

    write_once(folder, {"table": name, "layout": 1, "files": count}, write, file_count=count)
    return folder


def _paths(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.parquet"))


def _chunk_bytes(folder: Path, column: str) -> int:
    sizes: dict[int, int] = {}
    total = 0
    for path in _paths(folder):
        inode = path.stat().st_ino
        if inode not in sizes:
            footer = pq.read_metadata(path)
            at = footer.schema.to_arrow_schema().get_field_index(column)
            sizes[inode] = sum(
                footer.row_group(group).column(at).total_compressed_size
                for group in range(footer.num_row_groups)
            )
        total += sizes[inode]
    return total


# --- what runs ----------------------------------------------------------------


@contextmanager
def served(store: Path, server: str) -> Iterator[str]:
    """Serve the folders in `store` as buckets of S3, and yield the endpoint."""
    for path in (store / BUCKET).rglob("*.parquet"):
        # rclone lists 0.12 s as '.12Z', which Amazon's C++ library reads as another time.
        os.utime(path, ns=(_CHANGED_NS, _CHANGED_NS))
    if server == "rclone":
        with rclone_server(store) as endpoint:
            yield endpoint
        return
    with s3_server() as moto:
        moto.client.create_bucket(Bucket=BUCKET)
        for path in (store / BUCKET).rglob("*.parquet"):
            key = path.relative_to(store / BUCKET).as_posix()
            moto.client.upload_file(str(path), BUCKET, key)
        yield moto.environment["AWS_ENDPOINT_URL"]


@contextmanager
def store_client(endpoint: str) -> Iterator[Client]:
    """Run a coordinator that uses the store at an endpoint, and yield its client."""
    with (
        tempfile.TemporaryDirectory() as folder,
        coordinator_process(
            Path(folder) / "state",
            Path(folder),
            WINDROW_ALLOWED_LOCATIONS=f"s3://{BUCKET}",
            **environment(endpoint),
        ) as coordinator,
        connect(coordinator.url) as client,
    ):
        yield client


def _reads(
    client: Client, proxy: ObjectProxy, bucket: Path, case: Case, runs: int, delay_s: float
) -> list[Read]:
    console.print(f"{case.title}: taking the inventory", style="dim")
    client.register_table(case.name, f"s3://{BUCKET}/{case.name}")
    client.refresh(case.name)
    through_proxy = environment(proxy.url)
    os.environ.update(through_proxy)
    with (
        tempfile.TemporaryDirectory() as folder,
        local_session(
            NAME,
            Path(folder) / "spark.log",
            master=f"local[{case.slots}]",
            # A JVM that already runs keeps its own environment.
            conf={f"spark.executorEnv.{name}": value for name, value in through_proxy.items()},
        ) as spark,
    ):
        spark.range(10).count()
        asks = _asks(spark, client, bucket, case)
        # Starts the Python workers, and imports their packages.
        asks[WINDROW](f"day = {(case.files - 1) // _FILES_PER_FOLDER}")
        reads, answers = [], {}
        for run in range(runs):
            for side in case.sides:
                console.print(f"{case.title}: {side}, {run + 1} of {runs}", style="dim")
                read, answer = _read(proxy, case, side, asks[side], delay_s)
                reads.append(read)
                if not read.failure:
                    answers[side] = answer
    if len({repr(answer) for answer in answers.values()}) > 1:
        raise DisagreementError(f"{case.title}: the sides do not agree: {answers}")
    return reads


def _read(
    proxy: ObjectProxy, case: Case, side: str, ask: Callable[[], Answer], delay_s: float
) -> tuple[Read, Answer]:
    proxy.delay(delay_s)
    proxy.limit(case.limit, burst=max(1, (case.limit or 0) / 20))
    proxy.clear()
    answer, failure = (), ""
    began = time.perf_counter()
    try:
        answer = ask()
    except Exception as error:
        failure = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        console.print(f"{side}: {failure}", style="red")
    seconds = time.perf_counter() - began
    proxy.behave()
    counts = proxy.counts()
    requests, slowed = counts.for_objects().total(), counts.statuses[503]
    limit_share = (
        None if case.limit is None else (requests - slowed) / (case.limit * counts.seconds)
    )
    read = Read(
        side=side,
        seconds=seconds,
        requests=requests,
        sent_bytes=sum(size for key, size in counts.sent.items() if "/?" not in key),
        slowed=slowed,
        limit_used=limit_share,
        failure=failure,
    )
    return read, answer


# --- the sides ----------------------------------------------------------------


def _asks(
    spark: SparkSession, client: Client, bucket: Path, case: Case
) -> dict[str, Callable[..., Answer]]:
    keys = [path.relative_to(bucket).as_posix() for path in _paths(bucket / case.name)]
    sizes = [(bucket / key).stat().st_size for key in keys]
    column, location = case.column, f"s3://{BUCKET}/{case.name}/*/*.parquet"

    def windrow(filter_: str | None = None) -> Answer:
        from pyspark.sql import functions as F

        rows = client.read(spark, case.name, columns=[column], filter=filter_)
        return tuple(rows.agg(F.count(F.lit(1)), F.sum(column), F.max(column)).first() or ())

    def one_at_a_time() -> Answer:
        import obstore
        from obstore.store import S3Store

        store = S3Store(
            BUCKET,
            endpoint=os.environ["AWS_ENDPOINT_URL"],
            virtual_hosted_style_request=False,
            client_options={"allow_http": True},
        )
        return _total(_answer_of(obstore.get(store, key).bytes(), column) for key in keys)

    def two_requests() -> Answer:
        count = spark.sparkContext.defaultParallelism
        files = spark.sparkContext.parallelize(list(zip(keys, sizes, strict=True)), count)
        return _total(files.mapPartitions(_two_requests(column)).collect())

    def polars() -> Answer:
        import polars as pl

        options = {
            "aws_access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"],
            "aws_region": os.environ["AWS_REGION"],
            "aws_endpoint_url": os.environ["AWS_ENDPOINT_URL"],
            "aws_allow_http": "true",
        }
        table = pl.scan_parquet(location, hive_partitioning=True, storage_options=options)
        answer = table.select(pl.len(), pl.col(column).sum().alias("s"), pl.col(column).max())
        return answer.collect().row(0)

    def duckdb() -> Answer:
        import duckdb

        with duckdb.connect() as connection:
            use_s3(connection)
            answer = connection.execute(
                f"SELECT count(*), sum({column}), max({column}) FROM read_parquet('{location}')"
            ).fetchone()
        return tuple(answer or ())

    return {
        WINDROW: windrow,
        ONE_AT_A_TIME: one_at_a_time,
        TWO_REQUESTS: two_requests,
        POLARS: polars,
        DUCKDB: duckdb,
    }


def duckdb_if_installed() -> tuple[str, ...]:
    """Return DuckDB's name if it can read S3, otherwise nothing."""
    import duckdb

    try:
        with duckdb.connect() as connection:
            load_extension(connection, "httpfs")
    except NoExtensionError as error:
        console.print(f"duckdb: left out, because it cannot read from S3: {error}", style="dim")
        return ()
    return (DUCKDB,)


def _answer_of(content: bytes, column: str) -> Answer:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    values = pq.read_table(pa.BufferReader(content), columns=[column], use_threads=False)[column]
    return len(values), pc.sum(values).as_py(), pc.max(values).as_py()


def _total(answers: Iterable[Answer]) -> Answer:
    counts, sums, most = zip(*answers, strict=True)
    return sum(counts), sum(sums), max(most)


def _two_requests(column: str) -> Callable[[Iterable[tuple[str, int]]], Iterable[Answer]]:
    # These locals travel with the function by value.
    threads, bucket, answer_of = TWO_REQUESTS_THREADS, BUCKET, _answer_of

    def read(files: Iterable[tuple[str, int]]) -> Iterable[Answer]:
        import os
        from concurrent.futures import ThreadPoolExecutor

        import pyarrow.fs as pafs

        endpoint = os.environ["AWS_ENDPOINT_URL"]
        filesystem = pafs.S3FileSystem(endpoint_override=endpoint)

        def fetch(file: tuple[str, int]) -> bytes:
            key, size_bytes = file
            with filesystem.open_input_file(f"{bucket}/{key}") as opened:
                content: bytes = opened.read_at(size_bytes, 0)
            return content

        with ThreadPoolExecutor(threads) as fetching:
            for content in fetching.map(fetch, files):
                yield answer_of(content, column)

    return read


# --- what is printed ----------------------------------------------------------


def _results(case: Case, reads: list[Read]) -> list[Result]:
    ours = _middle(reads, WINDROW)
    results = []
    for side in case.sides[1:]:
        peer = _middle(reads, side)
        if ours is None or peer is None:
            continue
        figures = (
            ("time", "s", ours.seconds, peer.seconds),
            ("requests per file", "requests", *_per(case.files, ours.requests, peer.requests)),
            (
                "bytes per byte asked for",
                "bytes",
                *_per(case.chunk_bytes, ours.sent_bytes, peer.sent_bytes),
            ),
        )
        results += [
            Result(
                case=case.title,
                metric=metric,
                unit=unit,
                windrow=value,
                peer=side,
                peer_value=peer_value,
            )
            for metric, unit, value, peer_value in figures
        ]
    return results


def _per(whole: int, *parts: int) -> tuple[float, ...]:
    return tuple(part / whole for part in parts)


def _middle(reads: list[Read], side: str) -> Read | None:
    """Return the read of a side closest to the median time; None if it never gave an answer."""
    successes = [read for read in reads if read.side == side and not read.failure]
    if not successes:
        return None
    middle = median(read.seconds for read in successes)
    return min(successes, key=lambda read: abs(read.seconds - middle))


def _table(case: Case, reads: list[Read]) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, title=case.title)
    table.add_column("side", no_wrap=True)
    for name in ("time", "ratio", "requests per file", "bytes per byte asked for", "limit used"):
        table.add_column(name, justify="right")
    ours = _middle(reads, WINDROW)
    for side in case.sides:
        read = _middle(reads, side)
        if read is None:
            failure = next(one.failure for one in reads if one.side == side)
            table.add_row(side, failure[:40])
            continue
        table.add_row(
            side,
            seconds_text(read.seconds),
            f"{read.seconds / ours.seconds:.1f}x" if ours else "",
            f"{read.requests / case.files:.3f}",
            f"{read.sent_bytes / case.chunk_bytes:.2f}",
            "" if read.limit_used is None else f"{read.limit_used:.0%}",
        )
    return table


if __name__ == "__main__":
    main()
