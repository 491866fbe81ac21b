"""Kill drivers, compactions and replicas at random, and compare rows acknowledged with rows seen."""

from __future__ import annotations

import json
import random
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import windrow
from tests.support.faults.killed_drivers import Driver, drive, notes_in
from tests.support.faults.proxies import Front, front
from tests.support.faults.readers import ids_in, planned_ids
from tests.support.processes.forks import Forked, fork
from tests.support.servers.coordinators import CoordinatorProcess, coordinator_process
from tests.support.servers.databases import new_database
from windrow.client import Client
from windrow_calls.errors import RefreshFailedError
from windrow_core.models import WriteRecord
from windrow_service import bootstrap
from windrow_service.settings import Settings
from windrow_tables.commits.inventories import list_files

# What runs on each table: two writers, a compaction and a reader.
_KINDS = ("writer", "writer", "compaction", "reader")
# What is killed, and how often. Without a replica, the coordinator is away for a moment.
_WEIGHTS = {"writer": 6, "compaction": 3, "replica": 2, "all replicas": 1}
# The longest pause between two kills.
_PAUSE_S = 0.4
# Outcomes of writes whose rows are in the table, or will be once somebody recovers them.
_IN_TABLE = ("committed", "CommitInterruptedError")


@dataclass
class Figures:
    """What happened, and whatever should not have.

    Attributes:
        kills: By what was killed.
        outcomes: Outcomes of writes and compactions, by kind and name; of killed ones, what became
            of them.
        looks: How often a reader read all rows of a plan.
        outdated: How often files of a plan were replaced before they had been read.
        rows: Rows of acknowledged writes.
        lost: Rows that a reader should have seen, but did not.
        doubled: Rows that a reader saw more than once.
        foreign: Rows that a reader saw although they were not in the snapshot.
        stuck: What stopped a write when everything else had been killed: nothing may.
        wrong: Outcomes that were not true, plans that were too old, drivers that failed.
    """

    kills: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    looks: int = 0
    outdated: int = 0
    rows: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether nothing happened that should not have."""
        return not (self.lost or self.doubled or self.foreign or self.stuck or self.wrong)


class Replicas:
    """Two coordinators on one PostgreSQL database, behind a front.

    Attributes:
        url: URL of the front.
        processes: A file with their process ids.
    """

    def __init__(self, database_url: str, folder: Path, entrance: Front) -> None:
        self.url = f"http://127.0.0.1:{entrance.port}"
        self.processes = folder / "processes"
        self._database_url = database_url
        self._folder = folder
        self._front = entrance
        self._running: list[tuple[CoordinatorProcess, ExitStack]] = []
        self.start_missing()

    def start_missing(self) -> int:
        """Start replicas until there are two; return how many drivers had killed."""
        dead = [one for one in self._running if one[0].has_ended()]
        self._running = [one for one in self._running if one not in dead]
        for _, services in dead:
            services.close()
        self._share()
        while len(self._running) < 2:
            with ExitStack() as stack:
                replica = stack.enter_context(
                    coordinator_process(
                        self._folder / "state",
                        self._folder,
                        WINDROW_DATABASE_URL=self._database_url,
                        WINDROW_SNAPSHOTS__KEEP_LAST="10000",
                    )
                )
                self._running.append((replica, stack.pop_all()))
            self._share()
        return len(dead)

    def kill(self) -> None:
        """Kill the older replica."""
        replica, stack = self._running.pop(0)
        replica.kill()
        self._share()
        stack.close()

    def close(self) -> None:
        """Kill all replicas."""
        while self._running:
            self.kill()

    def tracebacks(self) -> int:
        """Return the number of unexpected errors in the logs."""
        return sum(log.read_text().count("Traceback") for log in self._folder.glob("state-*.log"))

    def _share(self) -> None:
        self._front.targets = [
            ("127.0.0.1", int(replica.url.rpartition(":")[2])) for replica, _ in self._running
        ]
        aside = self.processes.with_suffix(".new")
        aside.write_text(json.dumps([replica.process.pid for replica, _ in self._running]))
        aside.replace(self.processes)


@contextmanager
def replicas(server: str, folder: Path) -> Iterator[Replicas]:
    """Run two replicas on a new database of a server until the end of the block."""
    with ExitStack() as stack:
        database_url = stack.enter_context(new_database(server))
        bootstrap.upgrade(Settings.model_validate({"database_url": database_url}))
        running = Replicas(database_url, folder, stack.enter_context(front()))
        stack.callback(running.close)
        yield running


@dataclass
class KilledTable:
    """A table, and all that is known of the writes to it.

    Attributes:
        name: Its name.
        location: Its folder.
        notes: The folder of its drivers' notes.
        records: Records of its writes by id.
    """

    name: str
    location: Path
    notes: Path
    records: dict[str, WriteRecord] = field(default_factory=dict)

    @property
    def is_flat(self) -> bool:
        """Whether it has no partitions."""
        return self.name == "flat"

    def asked(self, running: Replicas, kind: str, number: int) -> dict[str, Any]:
        """Return what `drive` is asked."""
        replicas = running.processes
        return {
            "url": running.url,
            "table": self.name,
            "location": str(self.location),
            "is_flat": self.is_flat,
            "notes": str(self.notes),
            "kind": kind,
            "number": number,
            "replicas": str(replicas) if kind in ("writer", "compaction") else None,
        }

    def update(self, client: Client) -> None:
        """Get records, of which the coordinator keeps only the newest."""
        for record in client.writes(self.name):
            self.records[record.write_id] = record

    def states(self, writes: dict[str, dict[str, Any]]) -> tuple[list[int], list[frozenset[int]]]:
        """Return the snapshots in which the rows changed, and the rows from each one on."""
        rows: dict[str, set[int]] = {}
        snapshots, states = [0], [frozenset[int]()]
        records = [one for one in self.records.values() if one.snapshot_id is not None]
        for record in sorted(records, key=lambda one: one.snapshot_id or 0):
            if record.kind == "compaction":
                continue
            what = writes[record.write_id]
            for folder, ids in what["rows"].items():
                before = rows.get(folder, set()) if what["mode"] == "append" else set()
                rows[folder] = before | set(ids)
            snapshots.append(record.snapshot_id or 0)
            states.append(frozenset().union(*rows.values()))
        return snapshots, states


class Battle:
    """Drivers of two tables, one of them without partitions, and whoever kills them.

    Args:
        running: The replicas.
        folder: Folder for tables and notes, which the replicas may read.
        seed: Decides what is killed when, as far as chance is in our hands.

    Attributes:
        figures: What has happened so far.
        client: A client that is not killed.
        tables: The tables.
    """

    def __init__(self, running: Replicas, folder: Path, seed: int) -> None:
        self.figures = Figures()
        self._replicas = running
        self._folder = folder
        self._random = random.Random(seed)
        self._numbers = iter(range(seed * 10_000 + 1, (seed + 1) * 10_000))
        self._drivers: list[tuple[KilledTable, str, Forked]] = []
        self.client = windrow.connect(running.url)
        self.tables = [self._new_table(name) for name in ("parted", "flat")]
        self._probes = {
            table.name: Driver(self.client, table.asked(running, "probe", self.next_number()))
            for table in self.tables
        }
        for table in self.tables:
            self.write_next(table)

    def next_number(self) -> int:
        """Return a number that no driver has."""
        return next(self._numbers)

    def fight(self, kills: int) -> None:
        """Kill so many drivers, compactions and replicas; then everybody, and write once more."""
        self._start_missing()
        for _ in range(kills):
            time.sleep(self._random.uniform(0.02, _PAUSE_S))
            (what,) = self._random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
            if what in ("writer", "compaction"):
                self._kill_driver(what)
            else:
                for _ in range(1 if what == "replica" else 2):
                    self._replicas.kill()
                    self.figures.kills["replica"] += 1
                if what == "all replicas":
                    time.sleep(self._random.uniform(0.0, 1.0))
            self._start_missing()
        while self._kill_driver("writer") or self._kill_driver("compaction"):
            pass
        # The last of them may have killed the replicas.
        self._start_missing_replicas()
        for table in self.tables:
            self.write_next(table)
            self.compare_now(table)

    def close(self) -> Figures:
        """Stop the readers, and compare all that they saw with all that was acknowledged."""
        while self._kill_driver("reader"):
            pass
        del self.figures.kills["reader"]
        for table in self.tables:
            self._account(table)
            try:
                status = self.client.refresh(table.name, full=True)
            except RefreshFailedError as error:
                self.figures.stuck.append(f"{table.name}: {error}")
                continue
            if status.changed:
                self.figures.wrong.append(f"{table.name}: a refresh finds other files: {status}")
        if self._replicas.tracebacks():
            self.figures.wrong.append(f"{self._replicas.tracebacks()} tracebacks in the logs")
        self.client.close()
        return self.figures

    def _new_table(self, name: str) -> KilledTable:
        table = KilledTable(name, self._folder / name, self._folder / f"{name}-notes")
        table.location.mkdir()
        table.notes.mkdir()
        self.client.register_table(name, str(table.location))
        return table

    def _start_missing(self) -> None:
        """Start what is missing; drivers that have ended died at a step, or failed."""
        self._start_missing_replicas()
        for one in list(self._drivers):
            table, kind, process = one
            if (code := process.poll()) is None:
                continue
            self._drivers.remove(one)
            if code == -9:
                self.figures.kills[f"{kind} at a step"] += 1
            else:
                log = self._log(table).read_text()
                self.figures.wrong.append(f"a {kind} of {table.name} failed: {log[-2_000:]}")
        present = Counter((table.name, kind) for table, kind, _ in self._drivers)
        for table in self.tables:
            missing = Counter(_KINDS)
            missing.subtract({kind: present[table.name, kind] for kind in _KINDS})
            for kind in missing.elements():
                orders = table.asked(self._replicas, kind, self.next_number())
                process = fork(drive, orders, output=self._log(table))
                self._drivers.append((table, kind, process))

    def _start_missing_replicas(self) -> None:
        if count := self._replicas.start_missing():
            self.figures.kills["replica at a step"] += count

    def _log(self, table: KilledTable) -> Path:
        return self._folder / f"{table.name}.log"

    def _kill_driver(self, kind: str) -> bool:
        """Kill one driver of a kind; return whether there was one."""
        alive = [one for one in self._drivers if one[1] == kind and one[2].poll() is None]
        if not alive:
            return False
        victim = self._random.choice(alive)
        self._drivers.remove(victim)
        victim[2].kill()
        victim[2].wait()
        self.figures.kills[kind] += 1
        return True

    def write_next(self, table: KilledTable) -> None:
        """Write once, as the next writer does: it finishes or undoes all that was begun."""
        folders = [""] if table.is_flat else ["p=0"]
        self._probes[table.name].write_once("append", folders, wait_seconds=0)
        ends = [note for note in notes_in(table.notes) if "ended" in note]
        newest = max(ends, key=lambda note: note["at"])
        if newest["outcome"] != "committed":
            self.figures.stuck.append(f"{table.name}: {newest['outcome']}: {newest['said']}")

    def compare_now(self, table: KilledTable) -> None:
        """Compare the rows of a plan, and of the folder, with those of published writes."""
        table.update(self.client)
        for record in table.records.values():
            if record.state == "committing":
                self.figures.stuck.append(f"{table.name}: {record.write_id} is still committing")
        writes = {one["write_id"]: one for one in notes_in(table.notes) if "write_id" in one}
        _, states = table.states(writes)
        paths = list_files(str(table.location))["path"].to_pylist()
        ids_of_files = [id_ for path in paths for id_ in ids_in(table.location / path)]
        ids_of_plan = planned_ids(self._replicas.url, table.name, table.location)
        self._compare(f"{table.name} as planned", ids_of_plan or [], states[-1])
        self._compare(f"{table.name} as listed", ids_of_files, states[-1])

    def _compare(self, what: str, ids: list[int], true_ids: frozenset[int]) -> None:
        distinct = set(ids)
        figures = self.figures
        figures.lost += [f"{what}: {id_}" for id_ in true_ids - distinct]
        figures.foreign += [f"{what}: {id_}" for id_ in distinct - true_ids]
        if len(ids) > len(distinct):
            figures.doubled += [f"{what}: {id_}" for id_, n in Counter(ids).items() if n > 1]

    def _account(self, table: KilledTable) -> None:
        table.update(self.client)
        notes = list(notes_in(table.notes))
        writes = {one["write_id"]: one for one in notes if "write_id" in one}
        ends = {one["ended"]: one for one in notes if one.get("ended") is not None}
        for write_id, what in writes.items():
            self._account_write(table, what, ends.get(write_id), table.records.get(write_id))
        for one in notes:
            if "ended" in one and one["ended"] is None:
                self.figures.outcomes[f"begin: {one['outcome']}"] += 1
        successes = sorted(
            (one["at"], table.records[one["ended"]].snapshot_id or 0)
            for one in ends.values()
            if one["outcome"] == "committed"
        )
        self._account_looks(table, notes, writes, successes)

    def _account_write(
        self,
        table: KilledTable,
        what: dict[str, Any],
        outcome: dict[str, Any] | None,
        record: WriteRecord | None,
    ) -> None:
        """Compare what a driver was told about its write with what became of it."""
        state = "unknown" if record is None else record.state
        kind, name = what["kind"], "killed" if outcome is None else outcome["outcome"]
        self.figures.outcomes[f"{kind}: {name}" + (f", {state}" if outcome is None else "")] += 1
        if outcome is None:
            true = state in ("published", "undone")
        else:
            true = (state == "published") == (name in _IN_TABLE)
        if not true:
            self.figures.wrong.append(f"{table.name}: {what} is {state}, and was told {outcome}")
        if name == "committed":
            self.figures.rows += sum(map(len, what["rows"].values()))

    def _account_looks(
        self,
        table: KilledTable,
        notes: list[dict[str, Any]],
        writes: dict[str, dict[str, Any]],
        successes: list[tuple[float, int]],
    ) -> None:
        """Compare what readers saw with the rows of the snapshot, and it with the newest one."""
        snapshots, states = table.states(writes)
        times = [at for at, _ in successes]
        newest: list[int] = [0]
        for _, snapshot in successes:
            newest.append(max(newest[-1], snapshot))
        for one in notes:
            self.figures.outdated += "outdated" in one
            if "snapshot" not in one:
                continue
            self.figures.looks += 1
            snapshot = one["snapshot"]
            if snapshot < newest[bisect_right(times, one["began"])]:
                self.figures.wrong.append(f"{table.name}: snapshot {snapshot} is too old: {one}")
            if "ids" in one:
                true_ids = states[bisect_right(snapshots, snapshot) - 1]
                self._compare(f"{table.name} in snapshot {snapshot}", one["ids"], true_ids)


def fought(server: str, folder: Path, kills: int, *, each: int, seed: int) -> Figures:
    """Kill at least so many; after each so many, everything is killed, and must be whole again."""
    with replicas(server, folder) as running:
        battle = Battle(running, folder, seed)
        while battle.figures.kills.total() < kills and battle.figures.holds:
            battle.fight(each)
        return battle.close()
