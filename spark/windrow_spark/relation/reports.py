"""Reports of what scans took, which a thread sends to their coordinators once queries have ended.

No query waits for them, and none fails because of them: a report that cannot be sent is lost. If a
query failed because a file had changed, the next plan of the table looks at its files first.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple
from weakref import WeakSet

from pyspark.sql import SparkSession

from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import (
    BusyError,
    OutcomeUnknownError,
    ProblemError,
    UnsupportedAnswerError,
)
from windrow_core.models import MAX_SCAN_REPORTS, ScanReport
from windrow_spark.relation.java_classes import end_of_query
from windrow_spark.relation.recent_scans import Scan

# How often the thread looks whether queries have ended: seldom if they have been running for long.
_SHORTEST_S, _LONGEST_S = 0.5, 10.0
_OF_WAIT = 0.1
# A query that has not ended after a day, or never had an end of its own, is given up.
_PATIENCE_S = 86_400.0
_MOST_WAITING = 1_000
# How long the end of the process may wait for the last reports.
_LAST_S = 2.0


class _Waiting(NamedTuple):
    client: Coordinator
    spark: SparkSession
    scan: Scan
    since: float


class Reporter:
    """Waits for the ends of queries in a thread of its own, which ends with the last of them."""

    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque(maxlen=_MOST_WAITING)
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        # Coordinators of earlier versions, which take no reports.
        self._deaf: WeakSet[Coordinator] = WeakSet()

    def add(self, client: Coordinator, spark: SparkSession, scan: Scan) -> None:
        """Report what a scan took once its query has ended."""
        with self._lock:
            if client in self._deaf:
                return
            self._waiting.append(_Waiting(client, spark, scan, time.monotonic()))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="windrow-reports", daemon=True
                )
                self._thread.start()

    def note_stale(self, client: Coordinator, table: str) -> None:
        """Let the next plan of a table look at its files if a query has failed since they changed."""
        with self._lock:
            waiting = [
                one for one in self._waiting if one.client is client and one.scan.table == table
            ]
        for one in waiting:
            end = end_of_query(one.spark, str(one.scan))
            if end is not None and end.is_stale:
                client.look_again(table)
                return

    def finish(self) -> None:
        """Send what can be sent before the process ends."""
        thread = self._thread
        if thread is not None:
            self._wake.set()
            thread.join(_LAST_S)

    def _run(self) -> None:
        while True:
            is_last = self._wake.wait(self._pause_s())
            self._send()
            with self._lock:
                if is_last or not self._waiting:
                    self._thread = None
                    return

    def _pause_s(self) -> float:
        with self._lock:
            newest = max((one.since for one in self._waiting), default=0.0)
        return min(max(_OF_WAIT * (time.monotonic() - newest), _SHORTEST_S), _LONGEST_S)

    def _send(self) -> None:
        with self._lock:
            waiting = list(self._waiting)
        reports: dict[Coordinator, list[ScanReport]] = defaultdict(list)
        over = []
        for one in waiting:
            # Whatever is wrong, such as a JVM that has gone: it must not end the thread.
            try:
                end = end_of_query(one.spark, str(one.scan))
                report = None if end is None else one.scan.report(end.at)
            except Exception:
                over.append(one)
                continue
            if end is not None and end.is_stale:
                one.client.look_again(one.scan.table)
            if report is not None:
                reports[one.client].append(report)
            is_late = time.monotonic() - one.since > _PATIENCE_S
            if report is not None or is_late or one.client.is_closed:
                over.append(one)
        self._forget(over)
        for client, some in reports.items():
            self._post(client, some)

    def _post(self, client: Coordinator, reports: list[ScanReport]) -> None:
        try:
            for begin in range(0, len(reports), MAX_SCAN_REPORTS):
                client.report_scans(reports[begin : begin + MAX_SCAN_REPORTS])
        except (BusyError, OutcomeUnknownError):
            return
        except (ProblemError, UnsupportedAnswerError):
            with self._lock:
                self._deaf.add(client)
        except Exception:
            # Nobody waits for it, so nobody needs to know.
            return

    def _forget(self, over: Iterable[_Waiting]) -> None:
        ids = {id(one) for one in over}
        with self._lock:
            rest = [one for one in self._waiting if id(one) not in ids]
            self._waiting.clear()
            self._waiting.extend(rest)


_REPORTER = Reporter()
atexit.register(_REPORTER.finish)


def note_stale(client: Coordinator, table: str) -> None:
    """Let the next plan of a table look at its files if a query has just failed by one of them."""
    with suppress(Exception):
        _REPORTER.note_stale(client, table)


def report_later(client: Coordinator, spark: SparkSession, scan: Scan) -> None:
    """Report what a scan took once its query has ended; this neither waits nor fails."""
    with suppress(Exception):
        _REPORTER.add(client, spark, scan)
