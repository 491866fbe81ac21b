"""Measure what cached files cost a plan, compared with the same plan without cache rules.

    python benchmarks/cache_plans.py [--quick] [--json FILE] [--files N] [--workers N,…]

A table is published to a coordinator with PostgreSQL and Redis and then planned, with a POST and
the whole Arrow stream, as a client does. Then a rule makes all files cacheable, workers report the
files that were placed on them, and the table is planned again: with each cacheable split alone, and
with the splits of a worker grouped. Finally a worker is forgotten, to see which files move. The
memory of Redis is measured too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median

import numpy as np
import pyarrow as pa
import redis
from common import Result, arguments, console, write_json
from inventories import generated
from rich import box
from rich.table import Table as RichTable
from servers import Deployment, deployment
from tests.support.servers.coordinators import peak_bytes

import windrow
from windrow_calls.plans import SplitPlan
from windrow_calls.terminal.consoles import show
from windrow_core.models import CachedFile, CachedFilesReport, Heartbeat
from windrow_core.sizes import size_text

NAME = "cache_plans"
FILES = 1_000_000
WORKERS = (3, 50)
TABLE = "t"
_REPORT_FILES = 10_000
_TTL_S = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Measurements with one number of workers.

    Attributes:
        workers: Number of workers.
        plain_s: Seconds for a plan without rules.
        placed_s: Seconds for the first plan with a rule, with `by_worker` and empty caches.
        separate_s: Seconds for a plan with all files cached and each split alone.
        by_worker_s: The same with the splits of a worker grouped.
        report_s: Seconds for all reports, one after another.
        redis_bytes: Additional memory of Redis.
        moved: Share of the files that move to another worker once one worker is gone.
        replica_bytes: Peak resident memory of the coordinator.
    """

    workers: int
    plain_s: float
    placed_s: float
    separate_s: float
    by_worker_s: float
    report_s: float
    redis_bytes: int
    moved: float
    replica_bytes: int


def main() -> None:
    """Measure and report."""
    parser = arguments("Measure what cached files cost a plan.")
    parser.add_argument("--files", type=int, help="files of the table")
    parser.add_argument("--workers", help="numbers of workers, joined by ','")
    options = parser.parse_args()
    files = options.files or (20_000 if options.quick else FILES)
    counts = (
        [int(each) for each in options.workers.split(",")] if options.workers else list(WORKERS)
    )
    with deployment() as servers:
        figures = [_measure(servers, files, count, options.runs) for count in counts]
    results = [
        Result(
            case=f"{files:,} cached files, {each.workers} workers, {mode}",
            metric="plan and stream",
            unit="s",
            windrow=seconds,
            peer="no cache rules",
            peer_value=each.plain_s,
        )
        for each in figures
        for mode, seconds in (("by_worker", each.by_worker_s), ("separate", each.separate_s))
    ]
    show(_table(files, figures))
    if options.json is not None:
        write_json(options.json, NAME, results, figures=[asdict(each) for each in figures])


def _measure(servers: Deployment, files: int, workers: int, runs: int) -> Figures:
    server = redis.Redis.from_url(servers.redis_url)
    with servers.replicas(1) as (replica,), windrow.connect(replica.url, timeout_s=300) as client:
        client.register_table(
            TABLE,
            str(servers.folder),
            columns={"id": "bigint", "amount": "double", "day": "date"},
            partition_columns={"ds": "string"},
        )
        client.publish(TABLE, generated(files))
        plain = _timed(runs, lambda: client.plan(TABLE))[0]
        client.cache_table(TABLE, "ds IS NOT NULL", rule="all")
        hosts = [f"worker-{number:03}" for number in range(workers)]
        beat = {"capacity_bytes": 2**50, "used_bytes": 0, "ttl_seconds": _TTL_S}
        sessions = {
            host: client.beat(host, Heartbeat.model_validate(beat | {"host": host})).session
            for host in hosts
        }
        placed, plan = _timed(runs, lambda: client.plan(TABLE, cached_splits="by_worker"))
        before = _placed(plan)
        empty = int(server.info("memory")["used_memory"])
        report_s = _report(client, plan, sessions)
        redis_bytes = int(server.info("memory")["used_memory"]) - empty
        together, plan = _timed(runs, lambda: client.plan(TABLE, cached_splits="by_worker"))
        if plan.summary.cached_files != files or _placed(plan) != before:
            raise SystemExit("not every file is read where it is held")
        separate, plan = _timed(runs, lambda: client.plan(TABLE, cached_splits="separate"))
        if len(plan) != files or _placed(plan) != before:
            raise SystemExit("a cacheable split is not alone, or not where it is held")
        client.forget_worker(hosts[0])
        after = _placed(client.plan(TABLE, cached_splits="by_worker"))
        moved = sum(host != after[path] for path, host in before.items())
        if moved != sum(host == hosts[0] for host in before.values()):
            raise SystemExit("files moved that their worker still holds")
        for host in hosts[1:]:
            client.forget_worker(host)
        client.delete_table(TABLE)
        console.print(f"{workers} workers: done")
        return Figures(
            workers=workers,
            plain_s=plain,
            placed_s=placed,
            separate_s=separate,
            by_worker_s=together,
            report_s=report_s,
            redis_bytes=redis_bytes,
            moved=moved / files,
            replica_bytes=peak_bytes(replica),
        )


def _report(client: windrow.Client, plan: SplitPlan, sessions: dict[str, str]) -> float:
    """Report each file of a plan as held by the worker that reads it; return the seconds taken."""
    spent = 0.0
    hosts = np.array(plan.groups["cached_on"].to_pylist())
    for host, session in sessions.items():
        splits = plan.groups.filter(pa.array(hosts == host))["splits"].combine_chunks().flatten()
        names = ("path", "size_bytes", "mtime_ns")
        rows = list(zip(*(splits.field(name).to_pylist() for name in names), strict=True))
        for begin in range(0, len(rows), _REPORT_FILES):
            report = CachedFilesReport(
                table=TABLE,
                session=session,
                added=[
                    CachedFile(path=path, size_bytes=size_bytes, mtime_ns=mtime_ns)
                    for path, size_bytes, mtime_ns in rows[begin : begin + _REPORT_FILES]
                ],
            )
            started = time.perf_counter()
            client.report_cached_files(host, report)
            spent += time.perf_counter() - started
    return spent


def _placed(plan: SplitPlan) -> dict[str, str]:
    """Return the worker that reads each file."""
    splits = plan.groups["splits"].combine_chunks()
    hosts = plan.groups["cached_on"].take(
        pa.array(np.repeat(range(len(splits)), splits.value_lengths()))
    )
    return dict(zip(splits.flatten().field("path").to_pylist(), hosts.to_pylist(), strict=True))


def _timed(runs: int, work: Callable[[], SplitPlan]) -> tuple[float, SplitPlan]:
    plan = work()
    seconds = []
    for _ in range(runs):
        started = time.perf_counter()
        plan = work()
        seconds.append(time.perf_counter() - started)
    return median(seconds), plan


def _table(files: int, figures: list[Figures]) -> RichTable:
    table = RichTable(
        box=box.SIMPLE, title=f"{files:,} files, all cached; POST and stream, seconds"
    )
    for column in (
        "workers",
        "no rules",
        "being placed",
        "by_worker",
        "separate",
        "by_worker / no rules",
        "separate / no rules",
        "reports",
        "Redis, per file",
        "moved when one worker is gone",
        "coordinator",
    ):
        table.add_column(column, justify="right")
    for each in figures:
        table.add_row(
            str(each.workers),
            f"{each.plain_s:.2f}",
            f"{each.placed_s:.2f}",
            f"{each.by_worker_s:.2f}",
            f"{each.separate_s:.2f}",
            f"{each.by_worker_s / each.plain_s:.2f}",
            f"{each.separate_s / each.plain_s:.2f}",
            f"{each.report_s:.1f}",
            f"{each.redis_bytes / files:.1f} bytes",
            f"{each.moved:.1%}",
            size_text(each.replica_bytes),
        )
    return table


if __name__ == "__main__":
    main()
