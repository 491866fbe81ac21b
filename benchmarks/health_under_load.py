"""Measure how long liveness checks wait while the coordinator plans a large table.

The peer is the same check without load, so the ratio shows how much planning delays it.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
from common import Result, arguments, console, write_json
from health import health_waits
from rich.table import Table

import windrow
from windrow_demo.coordinator import running_coordinator

_TABLE = "bench.files"


def main() -> None:
    """Measure, print a table, and write the JSON if asked to."""
    options = arguments(__doc__ or "").parse_args()
    files, seconds = (50_000, 3.0) if options.quick else (1_000_000, 15.0)
    cases = {
        "1 plan at a time": (1, 0),
        "3 plans at a time": (3, 0),
        "3 at a time, first page inline": (3, 1_000),
    }
    results: list[Result] = []
    # The inventory of a million files is sent as one body.
    os.environ["WINDROW_LIMITS__MAX_BODY_BYTES"] = str(2**30)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        url = stack.enter_context(
            running_coordinator(Path(folder, "state"), [Path(folder)], Path(folder, "log"))
        )
        with windrow.connect(url) as client:
            client.register_table(_TABLE, folder, columns={"id": "bigint"})
            client.publish(_TABLE, _inventory(files))
        idle = [1000 * wait_s for wait_s in health_waits(url, seconds)]
        for case, (callers, page_size) in cases.items():
            with _planning(url, callers, page_size):
                busy = [1000 * wait_s for wait_s in health_waits(url, seconds)]
            for metric, percent in (("p50", 50), ("p99", 99)):
                results.append(
                    Result(
                        case=f"{files:,} files, {case}",
                        metric=f"GET /health/live, {metric}",
                        unit="ms",
                        windrow=float(np.percentile(busy, percent)),
                        peer="without load",
                        peer_value=float(np.percentile(idle, percent)),
                    )
                )
    table = Table("case", "metric", "ms", "ms without load")
    for result in results:
        figures = (f"{result.windrow:.1f}", f"{result.peer_value:.1f}")
        table.add_row(result.case, result.metric, *figures)
    console.print(table)
    if options.json:
        write_json(options.json, "health_under_load", results)


def _inventory(files: int) -> pa.Table:
    numbers = np.arange(files)
    days = np.char.add("ds=2026-", np.char.zfill((numbers * 300 // files).astype(str), 3))
    names = np.char.add("/part-", np.char.zfill(numbers.astype(str), 8))
    return pa.table(
        {
            "path": np.char.add(days, names).tolist(),
            "size_bytes": 10_000 + numbers * 7919 % 50_000,
            "mtime_ns": np.full(files, 1_700_000_000_000_000_000),
            "row_count": np.full(files, 100),
        }
    )


@contextmanager
def _planning(url: str, callers: int, page_size: int) -> Iterator[None]:
    """Request plans without pause from `callers` threads."""
    stop = threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=url, timeout=120) as http:
            while not stop.is_set():
                body = {"table": _TABLE, "page_size": page_size}
                http.post("/plans", json=body).raise_for_status()

    with ExitStack() as stack:
        for _ in range(callers):
            thread = threading.Thread(target=ask)
            thread.start()
            stack.callback(thread.join)
        stack.callback(stop.set)
        yield


if __name__ == "__main__":
    main()
