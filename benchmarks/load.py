"""Generate load of plan requests, in a separate process so as not to disturb the caller's.

    python benchmarks/load.py '{"urls": […], "table": "t", "callers": 16, "seconds": 10, …}'

prints the seconds of each plan as JSON.
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

_ARROW = {"Accept": "application/vnd.apache.arrow.stream"}
_DAYS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A load of plan requests.

    Attributes:
        urls: Coordinators; callers are divided evenly among them.
        table: Name of the table.
        callers: Number of threads, each of which requests one plan after another.
        seconds: Duration of the load.
        rate: Plans per second of all callers together; 0 means as fast as possible.
        arrow: Whether to fetch the groups as an Arrow stream instead of a first page of JSON.
        filters: Whether every request has a different filter, so that none can share work.
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
    """Results of the callers: seconds of each plan, and plans per second."""

    seconds: list[float]
    rate: float

    def ms(self, percentile: float) -> float:
        """Return a percentile in milliseconds."""
        # The process of a load needs no NumPy, which takes longer to import than most loads last.
        import numpy as np

        return float(np.percentile(self.seconds, percentile) * 1000)


def run(load: Load) -> Latencies:
    """Run a load in a separate process."""
    command = [sys.executable, __file__, json.dumps(asdict(load))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return Latencies(**json.loads(done.stdout))


def _call(load: Load) -> Latencies:
    times: list[list[float]] = [[] for _ in range(load.callers)]
    failed: list[str] = []
    began = time.monotonic()

    def ask(caller: int) -> None:
        http = HTTPConnection(urlsplit(load.urls[caller % len(load.urls)]).netloc, timeout=120)
        period = load.callers / load.rate if load.rate else 0.0
        due = began + period * caller / load.callers
        for number in range(10**9):
            if period:
                time.sleep(max(due - time.monotonic(), 0))
            # With a rate, waiting for a turn counts too: a late answer delays the next request.
            start = due if period else time.monotonic()
            due += period
            if (number and start - began > load.seconds) or failed:
                return
            try:
                _plan(http, load, caller * 7_919 + number)
            except Exception as error:  # ends the run, with this message
                failed.append(f"{type(error).__name__}: {error}")
                return
            times[caller].append(time.monotonic() - start)

    threads = [threading.Thread(target=ask, args=(caller,)) for caller in range(load.callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise SystemExit(failed[0])
    seconds = [one for many in times for one in many]
    return Latencies(seconds, len(seconds) / (time.monotonic() - began))


def _plan(http: HTTPConnection, load: Load, number: int) -> None:
    request: dict[str, object] = {"table": load.table}
    if load.arrow:
        request["page_size"] = 0
    if load.filters:
        # A different filter every time; each keeps nearly all files.
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
