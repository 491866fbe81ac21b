"""Measure when the first and the last byte of a dashboard's pages arrive, with many tables and files.

Each page is the first request to a fresh process, and is then requested again. The peer is the
bound that pages have to keep.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
from common import ROOT, Result, arguments, console, write_json
from rich.table import Table

from windrow_service.store.database import embedded_url

sys.path.insert(0, str(ROOT))
from tests.support.api.dashboards import Operated, multiply, multiply_plans, written
from tests.support.servers.coordinators import coordinator_process, wait_until
from tests.support.servers.databases import on_database
from tests.support.tables.many_files import publish_days

_BOUND_MS = 300.0
_TABLE = "big.one"
_PAGES = (
    f"tables/{_TABLE}",
    "overview",
    "tables",
    "tables?sort=health&namespace=some&health=good",
    "tables?sort=mean&at=200",
    "tables?health=poor",
    "work",
    "maintenance",
    "receipts?of=waiting",
    "plans",
    "cache",
)
_FILES_PER_DAY = 50_000
# Of each other table, and its reads of the last days.
_COLUMNS, _PLANS_PER_TABLE = 100, 10


def main() -> None:
    """Measure, print a table, and write the JSON if asked to."""
    options = arguments(__doc__ or "").parse_args()
    tables, days = (100, 2) if options.quick else (10_000, 200)
    runs = 1 if options.quick else options.runs
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder, "state")
        _fill(state, tables, days)
        for page in _PAGES[:1] if options.quick else _PAGES:
            waits = [_first_and_next(state, page, forked=options.quick) for _ in range(runs)]
            for number, page_of_process in enumerate(("first", "next")):
                for at, metric in enumerate(("first byte", "whole page")):
                    results.append(
                        Result(
                            case=f"{tables:,} tables, one of {days * _FILES_PER_DAY:,} files: "
                            f"/{page}",
                            metric=f"{metric}, {page_of_process} page of a process",
                            unit="ms",
                            windrow=statistics.median(wait[number][at] for wait in waits),
                            peer="bound",
                            peer_value=_BOUND_MS,
                        )
                    )
    table = Table("case", "metric", "ms")
    for result in results:
        table.add_row(result.case, result.metric, f"{result.windrow:.0f}")
    console.print(table)
    if options.json:
        write_json(options.json, "pages", results)


def _fill(state: Path, tables: int, days: int) -> None:
    with coordinator_process(state, state.parent) as coordinator:
        operated = Operated(coordinator.url)
        for number in range(2):
            name = f"some.t{number}"
            columns = [{"name": f"column_{at}", "type": "string"} for at in range(_COLUMNS)]
            operated.register(name, location=f"{state.parent}/{name}", columns=columns)
            files = written(["ds=2026-11-02"], 20 * (number + 1), 1_000, day=1)
            body = {"columns": columns, "added": files}
            operated.http.post(f"/tables/{name}/snapshots", json=body).raise_for_status()
            operated.http.post("/plans", json={"table": name}).raise_for_status()
        multiply(state, tables - 1)
        multiply_plans(state, _PLANS_PER_TABLE * tables)
        operated.register(_TABLE, location=f"{state.parent}/{_TABLE}")
        operated.http.close()
    on_database(
        embedded_url(state),
        lambda database: publish_days(database, _TABLE, days, _FILES_PER_DAY),
    )


def _first_and_next(state: Path, page: str, *, forked: bool) -> Sequence[tuple[float, float]]:
    """Return when bytes of a page arrive: as the first of a process, and as its next.

    A forked process starts quickly, but shares modules that others have loaded.
    """
    prefix = () if forked else ("env",)
    with (
        coordinator_process(
            state, state.parent, prefix=prefix, WINDROW_LOG_LEVEL="debug"
        ) as coordinator,
        httpx.Client(base_url=f"{coordinator.url}/dashboard/", timeout=60) as http,
    ):
        wait_until(lambda: "pages are loaded" in coordinator.log.read_text())
        return [_arrival_ms(http, page) for _ in range(2)]


def _arrival_ms(http: httpx.Client, page: str) -> tuple[float, float]:
    """Return the milliseconds until the first byte of a page, and until the last one."""
    began = time.perf_counter()
    with http.stream("GET", page) as answer:
        answer.raise_for_status()
        parts = answer.iter_raw()
        next(parts)
        first = time.perf_counter() - began
        for _ in parts:
            pass
        return first * 1000, (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    main()
