"""Kill drivers at every request of their commits on HDFS and S3, and compare what readers see.

    python benchmarks/stored_kills.py [--kills 500] [--stores hdfs,s3] [--refused 0.05]
                                      [--minutes 60] [--quick] [--json FILE]

A driver appends, overwrites, overwrites partitions or compacts, and dies before or after its first
request, the next one before or after its second, and so on, until one lives; then from the beginning
until there are enough kills. Each has a table of its own, which a reader reads by plans meanwhile.
The next writer recovers it as soon as the lease of one second has run out. S3 answers a share of all
requests with 503, also those of readers and recoveries. Ends with 1 if a reader saw anything but the
old rows or the new ones, or if anything is lost, doubled or left over.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count, cycle
from pathlib import Path
from typing import Any

from common import ROOT, arguments, console, write_figures
from rich import box
from rich.table import Table as RichTable

from windrow.connecting import connect
from windrow_calls.terminal.consoles import show

# The tests kill the same drivers.
sys.path.insert(0, str(ROOT))
from tests.support.faults.object_proxy import ObjectProxy, object_proxy
from tests.support.faults.readers import looking, planned_stored_ids, stored_ids
from tests.support.faults.stored_tables import (
    KINDS,
    OLD,
    new_table,
    recover_once_dead,
    rows_of,
)
from tests.support.faults.writers import Writers, forking_writers
from tests.support.servers.coordinators import coordinator_process
from tests.support.servers.hdfs import hdfs_cluster
from tests.support.servers.s3 import s3_server

from windrow_core.files.remote import contents_of

NAME = "stored_kills"
BUCKET = "killed"
STEPS = {"hdfs": ("asked", "told", "unclosed"), "s3": ("requested", "answered")}
_METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE")
# A kill mostly waits for a lease, so several go on at once.
_AT_ONCE = 6


@dataclass
class Figures:
    """What happened on a store, and whatever should not have.

    Attributes:
        kills: Killed drivers by what they did.
        requests: The most requests after which a driver of each kind and step died.
        finished: How many writes of killed drivers were finished; the others were undone.
        looks: How often a reader read all rows of a plan.
        outdated: How often a file of a plan was gone or replaced before it had been read.
        refused: Requests that the store refused with 503.
        lost: Rows that should be there, and are not.
        doubled: Rows that are there more than once.
        mixed: Looks that saw neither the old rows nor the new.
        orphans: Files or folders that are left over, and open uploads.
        stuck: Recoveries that failed, and drivers that failed otherwise.
    """

    kills: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)
    finished: int = 0
    looks: int = 0
    outdated: int = 0
    refused: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether nothing happened that should not have."""
        return not (self.lost or self.doubled or self.mixed or self.orphans or self.stuck)


class Killing:
    """Kills drivers on one store.

    Args:
        url: The coordinator.
        root: URI of the folder for tables.
        kills: After how many it ends.
        minutes: After how many it ends at the latest.

    Attributes:
        figures: What has happened so far.
    """

    def __init__(self, url: str, root: str, kills: int, minutes: float) -> None:
        self.figures = Figures()
        self._url = url
        self._root = root
        self._kills = kills
        self._ends_s = time.monotonic() + 60 * minutes
        self._numbers = count()
        self._lock = threading.Lock()

    def run(self, steps: Sequence[str]) -> None:
        """Kill drivers of each kind at each of their requests, several at once."""
        walks = cycle([(kind, step) for step in steps for kind in KINDS])
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            for going in [threads.submit(self._walk_on, walks) for _ in range(_AT_ONCE)]:
                going.result()

    def _walk_on(self, walks: Iterator[tuple[str, str]]) -> None:
        with forking_writers() as writers:
            while not self._has_enough():
                with self._lock:
                    kind, step = next(walks)
                for nth in count(1):
                    if self._has_enough() or not self._kill(writers, kind, step, nth):
                        break

    def _has_enough(self) -> bool:
        is_late = time.monotonic() > self._ends_s
        return is_late or self.figures.kills.total() >= self._kills or not self.figures.holds

    def _kill(self, writers: Writers, kind: str, step: str, nth: int) -> bool:
        """Let one driver die at a request; return whether it did so."""
        mode, files, replaces, after = KINDS[kind]
        with self._lock:
            table = f"t{next(self._numbers)}"
        location, what = f"{self._root}/{table}", f"{kind}, {step} {nth}"
        with connect(self._url) as client:
            new_table(client, table, location)
            with looking(lambda: planned_stored_ids(client, table, location)) as looks:
                outcome = writers.write(
                    self._url,
                    table,
                    files,
                    mode=mode,
                    replaces=replaces,
                    dies=(step, nth),
                    lease_seconds=1,
                )
                stuck = [] if outcome in ("killed", "committed") else [f"{what}: {outcome}"]
                try:
                    recover_once_dead(client, table)
                except Exception as error:
                    stuck.append(f"{what}: {type(error).__name__}: {error}")
            old, new = rows_of(OLD), rows_of(after)
            ids = planned_stored_ids(client, table, location) or []
            folders, _ = contents_of(location)
            expected = OLD if ids == old else after
            orphans = sorted(set(folders) - set(expected))
            orphans += [one.write_id for one in client.writes(table, open_only=True)]
            if client.refresh(table, full=True).changed:
                orphans.append("files that no snapshot has")
            seen = Counter(ids)
            listed = Counter(id_ for some in stored_ids(location).values() for id_ in some)
            client.delete_table(table)
        truth = Counter(rows_of(expected))
        with self._lock:
            figures = self.figures
            figures.lost += [f"{what}: {id_}" for id_ in (truth - seen) | (truth - listed)]
            figures.doubled += [f"{what}: {id_}" for id_ in (seen - truth) | (listed - truth)]
            figures.mixed += [f"{what}: {look}" for look in looks if look not in (None, old, new)]
            figures.orphans += [f"{what}: {orphan}" for orphan in orphans]
            figures.stuck += stuck
            figures.looks += len(looks)
            figures.outdated += looks.count(None)
            if outcome == "killed":
                figures.kills[kind] += 1
                figures.finished += ids == new and new != old
                named = f"{kind}, {step}"
                figures.requests[named] = max(figures.requests[named], nth)
                if figures.kills.total() % 10 == 0:
                    console.print(f"{figures.kills.total()} kills, {figures.looks:,} looks")
        return outcome == "killed"


@contextmanager
def _hdfs(folder: Path) -> Iterator[tuple[str, None, None]]:
    with hdfs_cluster(folder) as cluster:
        yield f"{cluster.uri}/killed", None, None


@contextmanager
def _s3(folder: Path) -> Iterator[tuple[str, ObjectProxy, Any]]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with s3_server() as server, object_proxy(os.environ["AWS_ENDPOINT_URL"]) as proxy:
        server.client.create_bucket(Bucket=BUCKET)
        os.environ["AWS_ENDPOINT_URL"] = proxy.url
        yield f"s3://{BUCKET}", proxy, server.client


def _killed_on(store: str, kills: int, minutes: float, refused: float) -> Figures:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        place = {"hdfs": _hdfs, "s3": _s3}[store](folder)
        root, proxy, s3 = stack.enter_context(place)
        coordinator = stack.enter_context(
            coordinator_process(folder / "state", folder, WINDROW_ALLOWED_LOCATIONS=root)
        )
        if proxy is not None:
            proxy.spoil("", "status", status=503, code="SlowDown", methods=_METHODS, share=refused)
        killing = Killing(coordinator.url, root, kills, minutes)
        killing.run(STEPS[store])
        if proxy is not None:
            killing.figures.refused = proxy.counts().statuses[503]
            uploads = s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
            killing.figures.orphans += [f"upload of {one['Key']}" for one in uploads]
        return killing.figures


def main() -> None:
    """Run and report; exit with 1 if anything is not as expected."""
    parser = arguments("Kill drivers at every request of their commits on HDFS and S3.")
    parser.add_argument("--kills", type=int, default=500, help="kills on each store")
    parser.add_argument("--stores", default="hdfs,s3", help="names, separated by ','")
    parser.add_argument("--refused", type=float, default=0.05, help="share answered with 503")
    parser.add_argument("--minutes", type=float, default=60, help="most minutes on each store")
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    figures: dict[str, Figures] = {}
    seconds: dict[str, float] = {}
    for store in options.stores.split(","):
        console.print(store, style="dim")
        began_s = time.monotonic()
        kills = 12 if options.quick else options.kills
        figures[store] = _killed_on(store, kills, options.minutes, options.refused)
        seconds[store] = round(time.monotonic() - began_s, 1)
    _show(figures, seconds)
    if options.json is not None:
        plain = {store: vars(one) for store, one in figures.items()}
        load = [load_before, *os.getloadavg()]
        write_figures(
            options.json, NAME, load_average=load, seconds=seconds, results=[], stores=plain
        )
    sys.exit(0 if all(one.holds for one in figures.values()) else 1)


def _show(figures: dict[str, Figures], seconds: dict[str, float]) -> None:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("what")
    columns = []
    for store, one in figures.items():
        table.add_column(store, justify="right")
        columns.append(
            {
                **{f"killed: {kind}": one.kills[kind] for kind in KINDS},
                "killed": one.kills.total(),
                "writes finished by recovery": one.finished,
                "looks of readers": one.looks,
                "looks at replaced files": one.outdated,
                "requests refused": one.refused,
                "rows lost": len(one.lost),
                "rows doubled": len(one.doubled),
                "looks at a mix": len(one.mixed),
                "left over": len(one.orphans),
                "stuck": len(one.stuck),
                "seconds": round(seconds[store]),
            }
        )
    for what in columns[0]:
        table.add_row(what, *(f"{column[what]:,}" for column in columns))
    show(table)
    for one in figures.values():
        for wrong in (one.lost, one.doubled, one.mixed, one.orphans, one.stuck):
            console.print(*wrong[:5], sep="\n")


if __name__ == "__main__":
    main()
