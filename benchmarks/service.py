"""Measure the coordinator as a service: replicas over PostgreSQL and Redis, on loopback.

    python benchmarks/service.py [--quick] [--json FILE] [--sizes N,…] [--callers N,…]

Tables of 100 to 1,000,000 files are published and planned: cold (the first plan of a fresh replica)
and warm, as a first page of JSON and as an Arrow stream of all groups, by 1 to 64 callers against
one and two replicas. Callers send requests as fast as they can, or at a given rate; every request
has a different filter. The load comes from a separate process on the same cores.

The peer is PyIceberg, which plans the same tables in the calling process with `plan_files`, without
a service. For the health check, the peer is the same check without load.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from common import Result, arguments, console, write_json
from health import health_waits
from inventories import generated
from load import Latencies, Load, run
from plan_peers import pyiceberg_plan, write_files
from rich import box
from rich.table import Table as RichTable
from servers import Deployment, deployment
from tests.support.servers.coordinators import peak_bytes

import windrow
from windrow_calls.terminal.consoles import show
from windrow_core.sizes import size_text

NAME = "service"
SIZES = (100, 1_000, 10_000, 1_000_000)
CALLERS = (1, 16, 64)
PEER_SIZES = (100, 10_000)
# The load that the service should handle on two cores.
RATE, RATE_CALLERS, RATE_FILES = 104.0, 16, 1_000
LARGE = 1_000_000
DELTA_FILES = 100
_COLUMNS = {"id": "bigint", "amount": "double", "day": "date"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measurement."""

    case: str
    p50_ms: float
    p99_ms: float
    rate: float
    peak_bytes: int


def main() -> None:
    """Measure and report."""
    parser = arguments("Measure the coordinator as a service.")
    parser.add_argument("--sizes", help="numbers of files, joined by ','")
    parser.add_argument("--callers", help="numbers of callers, joined by ','")
    parser.add_argument("--seconds", type=float, help="duration of each load")
    options = parser.parse_args()
    sizes = _numbers(options.sizes) or ((100, 1_000) if options.quick else SIZES)
    callers = _numbers(options.callers) or ((1,) if options.quick else CALLERS)
    seconds = options.seconds or (0.2 if options.quick else 10.0)
    figures: list[Figure] = []
    results: list[Result] = []
    with deployment() as servers:
        publishing = _publish(servers, sizes, options.runs)
        show(_publish_table(publishing))
        figures += _cold(servers, sizes)
        for replicas in (1, 2):
            with servers.replicas(replicas) as running:
                urls = [one.url for one in running]
                for load in _loads(urls, sizes, callers, seconds):
                    _warm(urls, load.table)
                    figures.append(_figure(load, run(load), replicas, running))
                if replicas == 1:
                    busy_s = 0.5 if options.quick else max(seconds, 3.0)
                    results += _health(running[0].url, sizes[-1], seconds, busy_s)
    show(_figure_table(figures))
    results += _beside_peer(figures, options.runs, quick=options.quick)
    show(_result_table(results))
    if options.json is not None:
        write_json(
            options.json,
            NAME,
            results,
            figures=[asdict(figure) for figure in figures],
            publishing=[asdict(one) for one in publishing],
        )


# --- publishing -----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The time of a publication, and how much was written."""

    case: str
    seconds: float
    bytes_written: int | None = None


def _publish(servers: Deployment, sizes: tuple[int, ...], runs: int) -> list[Published]:
    published: list[Published] = []
    with servers.replicas(1) as (replica,), windrow.connect(replica.url, timeout_s=300) as client:
        for files in sizes:
            name, inventory = f"t{files}", generated(files)
            client.register_table(
                name, str(servers.folder), columns=_COLUMNS, partition_columns={"ds": "string"}
            )
            seconds, done = _timed(partial(client.publish, name, inventory))
            published.append(_published(f"whole, {files:,} files", seconds, done))
        published += _deltas(client, sizes[-1], "warm", runs)
    with servers.replicas(1) as (replica,), windrow.connect(replica.url, timeout_s=300) as client:
        client.config()
        published += _deltas(client, sizes[-1], "cold", 1)
    return published


def _deltas(client: windrow.Client, files: int, state: str, runs: int) -> list[Published]:
    """Add, replace and remove files of the largest table, both adjacent and scattered ones."""
    name, inventory = f"t{files}", generated(files)
    count = min(DELTA_FILES, files)
    side_by_side = inventory.slice(files // 2, count)
    all_over = inventory.take(pa.array(np.linspace(0, files - 1, count).astype(np.int64)))
    cases: list[tuple[str, list[float], list[object]]] = []
    for what, rows in (("side by side", side_by_side), ("all over", all_over)):
        paths = rows["path"].to_pylist()
        named = f"-{state}-new.parquet"
        new = rows.set_column(0, "path", [[path.replace(".parquet", named) for path in paths]])
        changes: dict[str, Callable[[int], object]] = {
            "added": lambda run, new=new: client.publish_delta(name, added=_renamed(new, run)),
            "removed": lambda run, new=new: client.publish_delta(
                name, removed=_renamed(new, run)["path"].to_pylist()
            ),
            "replaced": lambda run, rows=rows: client.publish_delta(
                name, added=_touched(rows, run)
            ),
        }
        for change, publish in changes.items():
            timed = [_timed(partial(publish, run)) for run in range(runs)]
            cases.append((f"{change}, {what}", [one[0] for one in timed], [timed[-1][1]]))
    return [
        _published(f"{count} files {case} of {files:,}, {state}", median(seconds), done[0])
        for case, seconds, done in cases
    ]


def _renamed(files: pa.Table, run: int) -> pa.Table:
    paths = [path.replace("-new", f"-new{run}") for path in files["path"].to_pylist()]
    return files.set_column(0, "path", [paths])


def _touched(files: pa.Table, run: int) -> pa.Table:
    at = files.schema.get_field_index("mtime_ns")
    times = files["mtime_ns"].to_numpy() + time.time_ns() % 10**9 + run
    return files.set_column(at, "mtime_ns", pa.array(times))


def _published(case: str, seconds: float, done: object) -> Published:
    return Published(case=case, seconds=seconds, bytes_written=getattr(done, "bytes_written", None))


# --- planning -------------------------------------------------------------------


def _cold(servers: Deployment, sizes: tuple[int, ...]) -> list[Figure]:
    """Measure the first plan of fresh replicas."""
    figures = []
    for files in sizes:
        with servers.replicas(1) as running:
            load = Load(
                urls=[running[0].url], table=f"t{files}", callers=1, seconds=0.0, arrow=True
            )
            figures.append(_figure(load, run(load), 1, running, state="cold"))
    return figures


def _loads(
    urls: list[str], sizes: tuple[int, ...], callers: tuple[int, ...], seconds: float
) -> Iterator[Load]:
    for files in sizes:
        for count in callers if files < LARGE else callers[:1]:
            for arrow in (False, True):
                yield Load(
                    urls=urls,
                    table=f"t{files}",
                    callers=count,
                    seconds=seconds,
                    arrow=arrow,
                )
        if files == RATE_FILES:
            for arrow in (False, True):
                yield Load(
                    urls=urls,
                    table=f"t{files}",
                    callers=RATE_CALLERS,
                    seconds=seconds,
                    rate=RATE,
                    arrow=arrow,
                )


def _warm(urls: list[str], table: str) -> None:
    """Let each replica plan a table once, and make sure that it plans every file."""
    expected = int(table.removeprefix("t"))
    for url in urls:
        with windrow.connect(url) as client:
            plan = client.plan(table)
        splits = pc.list_flatten(plan.groups["splits"])
        planned = pc.count_distinct(pc.struct_field(splits, "path")).as_py()
        if not planned == plan.summary.files_planned >= expected:
            raise SystemExit(f"{url} planned {planned:,} of {expected:,} files")


def _figure(
    load: Load, latencies: Latencies, replicas: int, running: list[object], state: str = "warm"
) -> Figure:
    form = "Arrow stream" if load.arrow else "JSON page"
    pace = f" at {load.rate:.0f}/s" if load.rate else ""
    files = int(load.table.removeprefix("t"))
    case = (
        f"{files:,} files, {form}, {replicas} replica(s), {load.callers} caller(s){pace}, {state}"
    )
    figure = Figure(
        case=case,
        p50_ms=latencies.ms(50),
        p99_ms=latencies.ms(99),
        rate=latencies.rate,
        peak_bytes=max(peak_bytes(one) for one in running),
    )
    console.print(
        f"{case}: p50 {figure.p50_ms:.1f} ms, p99 {figure.p99_ms:.1f} ms, {latencies.rate:.0f}/s",
        style="dim",
    )
    return figure


def _health(url: str, files: int, idle_s: float, busy_s: float) -> list[Result]:
    """Return how long health checks wait with and without plans being made back to back."""
    idle = health_waits(url, idle_s)
    with _planning(url, f"t{files}"):
        busy = health_waits(url, busy_s)
    return [
        Result(
            case=f"plans of {files:,} files back to back",
            metric=f"GET /health/live, p{percent}",
            unit="ms",
            windrow=float(np.percentile(busy, percent) * 1000),
            peer="without load",
            peer_value=float(np.percentile(idle, percent) * 1000),
        )
        for percent in (50, 99)
    ]


@contextmanager
def _planning(url: str, table: str) -> Iterator[None]:
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            run(Load(urls=[url], table=table, callers=1, seconds=0.0, arrow=True))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _beside_peer(figures: list[Figure], runs: int, *, quick: bool) -> list[Result]:
    results = []
    ours = {figure.case: figure for figure in figures}
    for files in PEER_SIZES[:1] if quick else PEER_SIZES:
        case = f"{files:,} files, Arrow stream, 1 replica(s), 1 caller(s), warm"
        if case not in ours:
            continue
        inventory = generated(files)
        inventory = inventory.append_column("bucket", pa.nulls(files, pa.int32()))
        with tempfile.TemporaryDirectory() as folder:
            write_files(inventory, Path(folder))
            # This makes sure that every file is planned, as `_warm` does for Windrow.
            peer = pyiceberg_plan(inventory, Path(folder), runs=runs)
        results.append(
            Result(
                case=f"{files:,} files, one caller, warm",
                metric="plan and fetch all groups, p50",
                unit="ms",
                windrow=ours[case].p50_ms,
                peer="PyIceberg, in process",
                peer_value=peer.plan_s * 1000,
            )
        )
    return results


# --- tables for people ------------------------------------------------------------


def _publish_table(published: list[Published]) -> RichTable:
    table = RichTable("published", "seconds", "written", box=box.SIMPLE)
    for one in published:
        written = "" if one.bytes_written is None else size_text(one.bytes_written)
        table.add_row(one.case, f"{one.seconds:.3f}", written)
    return table


def _figure_table(figures: list[Figure]) -> RichTable:
    table = RichTable("plans", "p50", "p99", "plans/s", "peak memory", box=box.SIMPLE)
    for one in figures:
        row = (f"{one.p50_ms:.1f} ms", f"{one.p99_ms:.1f} ms", f"{one.rate:.1f}")
        table.add_row(one.case, *row, size_text(one.peak_bytes))
    return table


def _result_table(results: list[Result]) -> RichTable:
    table = RichTable("case", "metric", "Windrow", "peer", "ratio", box=box.SIMPLE)
    for one in results:
        peer = f"{one.peer_value:.1f} {one.unit} ({one.peer})"
        table.add_row(
            one.case, one.metric, f"{one.windrow:.1f} {one.unit}", peer, f"{one.ratio:.1f}x"
        )
    return table


def _timed(work: Callable[[], object]) -> tuple[float, object]:
    began = time.perf_counter()
    done = work()
    return time.perf_counter() - began, done


def _numbers(text: str | None) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()


if __name__ == "__main__":
    main()
