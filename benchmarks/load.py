"""Callers that ask coordinators for plans: a process of its own, so that it takes none of theirs.

    python benchmarks/load.py '{"urls": […], "table": "t", "callers": 16, "seconds": 10, …}'

prints the seconds that each plan took, as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from urllib.parse import urlsplit

import numpy as np

_ARROW = {"Accept": "application/vnd.apache.arrow.stream"}
_DAYS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is asked, by whom.

    Attributes:
        urls: Coordinators; callers are shared out evenly.
        table: Its name.
        callers: Threads that ask one plan after the other.
        seconds: How long they go on.
        rate: Plans a second that all callers together ask for; 0 is as fast as they can.
        arrow: Whether the groups are fetched as an Arrow stream; else the first page is JSON.
        filters: Whether every request has another filter, so that no two can share their work.
    """

    urls: list[str]
    table: str
    callers: int
    seconds: float
    rate: float = 0.0
    arrow: bool = False
    filters: bool = True


@dataclass(frozen=True, slots=True)
class Latencies:
    """What the callers saw: seconds of each plan, and plans in a second."""

    seconds: list[float]
    rate: float

    def ms(self, percentile: float) -> float:
        """Return a percentile in milliseconds."""
        return float(np.percentile(self.seconds, percentile) * 1000)


def run(load: Load) -> Latencies:
    """Run a load in a process of its own."""
    command = [sys.executable, __file__, json.dumps(asdict(load))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return Latencies(**json.loads(done.stdout))


def _call(load: Load) -> Latencies:
    taken: list[list[float]] = [[] for _ in range(load.callers)]
    failed: list[str] = []
    began = time.monotonic()

    def ask(caller: int) -> None:
        http = HTTPConnection(urlsplit(load.urls[caller % len(load.urls)]).netloc, timeout=120)
        period = load.callers / load.rate if load.rate else 0.0
        due = began + period * caller / load.callers
        for number in range(10**9):
            if period:
                time.sleep(max(due - time.monotonic(), 0))
            # With a rate, waiting for one's turn counts: a late answer delays the next question.
            start = due if period else time.monotonic()
            due += period
            if (number and start - began > load.seconds) or failed:
                return
            try:
                _plan(http, load, caller * 7_919 + number)
            except Exception as error:  # ends the run, which says why
                failed.append(f"{type(error).__name__}: {error}")
                return
            taken[caller].append(time.monotonic() - start)

    threads = [threading.Thread(target=ask, args=(caller,)) for caller in range(load.callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise SystemExit(failed[0])
    seconds = [one for many in taken for one in many]
    return Latencies(seconds, len(seconds) / (time.monotonic() - began))


def _plan(http: HTTPConnection, load: Load, number: int) -> None:
    request: dict[str, object] = {"table": load.table}
    if load.arrow:
        request["page_size"] = 0
    if load.filters:
        # A different filter every time; the files that survive are nearly all of them.
        request["filter"] = f"ds >= '{number % _DAYS // 10:03d}' OR ds = 'x{number}'"
    body = json.dumps(request)
    answer = _ask(http, "POST", "/plans", body, {"Content-Type": "application/json"})
    if load.arrow:
        plan_id = json.loads(answer)["plan_id"]
        _ask(http, "GET", f"/plans/{plan_id}/groups", None, _ARROW)


def _ask(
    http: HTTPConnection, method: str, path: str, body: str | None, headers: dict[str, str]
) -> bytes:
    http.request(method, path, body, headers)
    answer = http.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{method} {path}: {answer.status} {content[:300]!r}")
    return content


if __name__ == "__main__":
    sys.setswitchinterval(0.001)
    print(json.dumps(asdict(_call(Load(**json.loads(sys.argv[1]))))))
