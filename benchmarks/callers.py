"""Callers who plan and change tables, in a separate process so as not to disturb the caller's.

    python benchmarks/callers.py '{"run": "a", "url": …, "folder": …, "paces": {"plans": 5.0}, …}'

calls until its input ends, then prints the outcome of the calls as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import httpx
import pyarrow as pa
from inventories import generated

import windrow
from windrow_core.models import CachedFilesReport, Heartbeat, WriteUpdate

# Name and number of files of the table that is only read.
STEADY, STEADY_FILES = "steady", 1_000
# How many of the newest tables and cache rules a caller leaves; it deletes the older ones.
LEFT_TABLES, LEFT_RULES = 20, 10
# Enough for a server to restart, or for another replica to take work over after its lease.
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The calls to make.

    Attributes:
        run: Prefix of the names of everything that is made.
        url: URL of the coordinator.
        token: Token of the callers.
        folder: Folder of the tables.
        paces: Calls per second of each kind, as in `KINDS`; 0 means as many as possible.
    """

    run: str
    url: str
    token: str
    folder: str
    paces: Mapping[str, float]


@dataclass(slots=True)
class Done:
    """The outcome of the calls.

    Attributes:
        seconds: Duration of the whole run.
        made: Number of calls of each kind, which are numbered from 1.
        requests: Number of HTTP requests sent, including retries.
        answers: Number of requests by answer: `as asked`, a status, or `none` if a connection was
            refused or cut.
        failed: Calls that failed after all attempts, and why.
        slowest_s: Seconds of the longest call of each kind.
    """

    seconds: float = 0.0
    made: dict[str, int] = field(default_factory=dict)
    requests: int = 0
    answers: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    slowest_s: dict[str, float] = field(default_factory=dict)


class _Caller:
    """Makes calls of one kind, numbered from 1."""

    def __init__(self, calls: Calls) -> None:
        self.client = windrow.connect(calls.url, token=calls.token, attempts=_ATTEMPTS)
        self.requests = 0
        self.answers: Counter[str] = Counter()
        self._run = calls.run
        self._folder = Path(calls.folder)
        self.client._transport._http.event_hooks = {
            "request": [self._note_request],
            "response": [self._note_answer],
        }

    def _note_request(self, _: httpx.Request) -> None:
        self.requests += 1

    def _note_answer(self, answer: httpx.Response) -> None:
        self.answers["as asked" if answer.is_success else str(answer.status_code)] += 1

    def plans(self, number: int) -> None:
        # A different filter each time, so that no plan is shared; each keeps every file.
        plan = self.client.plan(STEADY, filter=f"id > -{number}")
        planned = sum(map(len, plan.groups["splits"].to_pylist()))
        if planned != STEADY_FILES:
            raise AssertionError(f"a plan of {planned} files")

    def publications(self, number: int) -> None:
        self.client.publish(f"{self._run}_published", _one_file(number))

    def refreshes(self, number: int) -> None:
        table = f"{self._run}_refreshed"
        new = self._folder / f"{table}.new"
        new.write_bytes(b"1\n" * number)
        os.replace(new, self._folder / table / "file.csv")
        self.client.refresh(table)

    def registrations(self, number: int) -> None:
        self.client.register_table(
            f"{self._run}_new_{number}", str(self._folder), columns={"id": "bigint"}
        )
        if number > LEFT_TABLES:
            self.client.delete_table(f"{self._run}_new_{number - LEFT_TABLES}")

    def rules(self, number: int) -> None:
        day = f"ds = '{number % 300:03d}'"
        self.client.cache_table(STEADY, day, rule=f"{self._run}-{number}")
        if number > LEFT_RULES:
            self.client.drop_cache(STEADY, f"{self._run}-{number - LEFT_RULES}")

    def tokens(self, number: int) -> None:
        token = self.client.create_token(f"{self._run}-{number}", scopes=["read"])
        self.client.revoke_token(token.token_id)

    def writes(self, number: int) -> None:
        for state in ("staging", "undone"):
            update = WriteUpdate(mode="append", state=state, host="soak", process=1)
            self.client.put_write(f"{self._run}_written", f"{number:032x}", update)

    def workers(self, number: int) -> None:
        worker = f"{self._run}-{number % 3}"
        beat = Heartbeat(host=f"host{number % 3}", capacity_bytes=2**30, used_bytes=0)
        session = self.client.beat(worker, beat).session
        file = {"path": f"ds={number % 300:03d}/part", "size_bytes": 1, "mtime_ns": 1}
        report = CachedFilesReport.model_validate(
            {"table": STEADY, "session": session, "added": [file], "replace": True}
        )
        try:
            self.client.report_cached_files(worker, report)
        except windrow.errors.NotFoundError:
            # The worker was forgotten; like an agent, it reports again after its next heartbeat.
            return


KINDS = (
    "plans",
    "publications",
    "refreshes",
    "registrations",
    "rules",
    "tokens",
    "writes",
    "workers",
)


def main() -> None:
    """Call until the input ends."""
    calls = Calls(**json.loads(sys.argv[1]))
    _prepare(calls)
    ended = threading.Event()
    done = Done()
    began = time.monotonic()
    threads = [
        threading.Thread(target=_repeat, args=(calls, kind, pace, ended, done))
        for kind, pace in calls.paces.items()
    ]
    for thread in threads:
        thread.start()
    print("calling", flush=True)
    sys.stdin.read()
    ended.set()
    for thread in threads:
        thread.join()
    done.seconds = time.monotonic() - began
    print(json.dumps(asdict(done)))


def _prepare(calls: Calls) -> None:
    """Make the tables of the run, and the one that all runs read."""
    folder = Path(calls.folder)
    columns = {"id": "bigint"}
    with windrow.connect(calls.url, token=calls.token) as client:
        for name, form in (("published", "parquet"), ("written", "parquet"), ("refreshed", "csv")):
            table = f"{calls.run}_{name}"
            (folder / table).mkdir()
            client.register_table(table, str(folder / table), format=form, columns=columns)
        if STEADY not in [table.name for table in client.tables()]:
            client.register_table(
                STEADY,
                str(folder),
                columns=columns | {"amount": "double", "day": "date"},
                partition_columns={"ds": "string"},
            )
            client.publish(STEADY, generated(STEADY_FILES))


def _repeat(calls: Calls, kind: str, pace: float, ended: threading.Event, done: Done) -> None:
    caller = _Caller(calls)
    act: Callable[[int], None] = getattr(caller, kind)
    due, number, slowest_s = time.monotonic(), 0, 0.0
    with caller.client:
        # At least one call of each kind is made, however soon the input ends.
        while not number or not ended.wait(max(due - time.monotonic(), 0)):
            due = max(due + 1 / pace, time.monotonic() - 1) if pace else 0.0
            number += 1
            start = time.monotonic()
            try:
                act(number)
            except Exception as error:  # counted, and shown by the caller
                done.failed.append(f"{kind} {number}: {type(error).__name__}: {error}"[:500])
            slowest_s = max(slowest_s, time.monotonic() - start)
    done.made[kind] = number
    done.slowest_s[kind] = slowest_s
    done.requests += caller.requests
    cut = Counter({"none": caller.requests - caller.answers.total()})
    done.answers = dict(Counter(done.answers) + caller.answers + cut)


def _one_file(number: int) -> pa.Table:
    """Return an inventory of one file, identified by its size."""
    return pa.table(
        {
            "path": ["part-0.parquet"],
            "size_bytes": pa.array([number], pa.int64()),
            "mtime_ns": pa.array([number], pa.int64()),
            "row_count": pa.array([1], pa.int64()),
        }
    )


if __name__ == "__main__":
    main()
