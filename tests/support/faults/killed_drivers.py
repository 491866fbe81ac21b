"""Drivers that write, compact and read a table until they are killed, and note what they did.

Each note is one line of JSON in a file of the driver, so it survives the driver. The note of a
write comes before the write, and the note of its outcome after it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import windrow
from tests.support.faults.readers import ids_in
from tests.support.faults.writers import STEPS, at_step, die, report_of
from windrow.client import Client
from windrow_calls.errors import CoordinatorUnreachableError, WindrowError
from windrow_core.files.without_pandas import keep_pandas_out
from windrow_tables.commits import begin
from windrow_tables.commits.inventories import list_files

PARTITIONS = ("p=0", "p=1", "p=2", "p=3")
_ROWS = 3
# The shares of writes that die, and that kill all replicas, at a chosen step of their commit. The
# others are killed at any moment.
_DIES, _KILLS = 0.2, 0.1
# A compaction joins the files of a folder with at least as many.
_MANY = 4


class Notes:
    """The notes of one driver.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)

    def add(self, **note: Any) -> None:
        """Add a note with the current time, in one step."""
        line = json.dumps({"at": time.monotonic(), **note}) + "\n"
        os.write(self._descriptor, line.encode())


def notes_in(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the notes of all drivers."""
    for path in sorted(folder.glob("*.notes")):
        for line in path.read_text().splitlines():
            yield json.loads(line)


def drive(orders: Mapping[str, Any]) -> None:
    """Write to a table, compact it or read it until killed.

    Args:
        orders: `url`, `table`, `location`, `is_flat`, `notes`, `kind` (`writer`, `compaction` or
            `reader`), `number`, which no other driver has, and `replicas`: a file with the process
            ids of the replicas, which some of its writes kill; None if no write kills or dies.
    """
    # Each driver would import pandas to write its first file.
    keep_pandas_out()
    work: dict[str, Callable[[Driver], None]] = {
        "writer": Driver.write,
        "compaction": Driver.compact,
        "reader": Driver.read,
    }
    # Every other driver gives up at once if the coordinator is away.
    attempts = 1 if orders["number"] % 2 else 4
    with _connected(orders["url"], attempts) as client:
        driver = Driver(client, orders)
        while True:
            work[orders["kind"]](driver)


def _connected(url: str, attempts: int) -> Client:
    """Return a client of a coordinator, which may be away for as long as it takes to start it."""
    while True:
        try:
            return windrow.connect(url, attempts=attempts)
        except CoordinatorUnreachableError:
            time.sleep(0.1)


class Driver:
    """One driver.

    Args:
        client: Client of the coordinator.
        orders: See `drive`.
    """

    def __init__(self, client: Client, orders: Mapping[str, Any]) -> None:
        self._client = client
        self._table = orders["table"]
        self._location = Path(orders["location"])
        self._folders = ("",) if orders["is_flat"] else PARTITIONS
        self._overwrite = "overwrite" if orders["is_flat"] else "overwrite_partitions"
        self._number = orders["number"]
        self._replicas = orders["replicas"]
        self._writes = 0
        self._random = random.Random(orders["number"])
        self._notes = Notes(Path(orders["notes"]) / f"{self._number}.notes")
        self._looked: tuple[int, list[int]] | None = None

    def write(self) -> None:
        """Append rows to some partitions, or overwrite them."""
        self.write_once(
            self._overwrite if self._random.random() < 0.3 else "append",
            sorted(self._random.sample(self._folders, self._random.randint(1, len(self._folders)))),
        )

    def write_once(self, mode: str, folders: list[str], **options: Any) -> None:
        """Write rows that nobody else writes to these partitions."""
        first = (self._number * 1_000 + self._writes) * 100
        self._writes += 1
        rows = {
            folder: list(range(first + at * _ROWS, first + (at + 1) * _ROWS))
            for at, folder in enumerate(folders)
        }
        with (
            self._noted(kind="write", mode=mode, rows=rows) as note,
            begin(self._client, self._table, mode, **options) as write,  # type: ignore[arg-type]
        ):
            note(write.write_id)
            for folder, ids in rows.items():
                _write(Path(write.folder) / folder / f"{first}.parquet", ids)
            write.commit(report_of(_ROWS * len(rows)))

    def compact(self) -> None:
        """Join the files of a folder, if there are many, or wait."""
        folder = self._random.choice(self._folders)
        files = list_files(str(self._location))
        inside = [path.rpartition("/")[0] == folder for path in files["path"].to_pylist()]
        if sum(inside) < _MANY:
            time.sleep(0.05)
            return
        with (
            self._noted(kind="compaction", mode="append", rows={}) as note,
            begin(self._client, self._table, kind="compaction") as write,
        ):
            note(write.write_id)
            # Only what a plan names is in the table.
            planned_paths = {split["path"] for split in self._splits()}
            small = files.filter(
                pa.array(
                    is_inside and path in planned_paths
                    for is_inside, path in zip(inside, files["path"].to_pylist(), strict=True)
                )
            )
            ids = [id_ for path in small["path"].to_pylist() for id_ in self._ids(path)]
            if not ids:
                raise FileNotFoundError(folder)
            _write(Path(write.folder) / folder / f"c{self._number}-{self._writes}.parquet", ids)
            self._writes += 1
            write.commit(report_of(len(ids)), small)

    def read(self) -> None:
        """Read all rows of a new plan, and note them if they are others than before."""
        began = time.monotonic()
        try:
            plan = self._client.plan(self._table)
            ids = sorted(
                id_
                for group in plan.groups["splits"].to_pylist()
                for split in group
                for id_ in self._ids(split["path"], split)
            )
        except (WindrowError, OSError) as error:
            # The files of a plan may be replaced before they are read.
            self._notes.add(outdated=type(error).__name__)
            return
        snapshot = plan.info.snapshot_id
        is_new = (snapshot, ids) != self._looked
        self._looked = snapshot, ids
        self._notes.add(began=began, snapshot=snapshot, **({"ids": ids} if is_new else {}))
        time.sleep(0.02)

    def _splits(self) -> Iterator[dict[str, Any]]:
        for group in self._client.plan(self._table).groups["splits"].to_pylist():
            yield from group

    def _ids(self, path: str, split: Mapping[str, Any] | None = None) -> list[int]:
        status = (self._location / path).stat()
        if split is not None:
            now = status.st_size, status.st_mtime_ns
            if now != (split["size_bytes"], split["mtime_ns"]):
                raise FileNotFoundError(path)
        return ids_in(self._location / path)

    @contextmanager
    def _noted(self, **what: Any) -> Iterator[Callable[[str], None]]:
        """Note what is written, the write's id, and the outcome; die or kill at times."""
        restore = self._set_trap()
        write_id: list[str] = []

        def note(id_: str) -> None:
            write_id.append(id_)
            self._notes.add(write_id=id_, **what)

        try:
            yield note
            outcome, message = "committed", ""
        except (WindrowError, OSError) as error:
            outcome, message = type(error).__name__, str(error)
            time.sleep(0.05)
        restore()
        self._notes.add(ended=write_id[0] if write_id else None, outcome=outcome, said=message)

    def _set_trap(self) -> Callable[[], None]:
        """Make the next write die, or kill the replicas, at a step; return what undoes this."""
        chance = self._random.random()
        if self._replicas is None or chance > _DIES + _KILLS:
            return lambda: None
        act = die if chance < _DIES else self._kill_replicas
        return at_step(self._random.choice(list(STEPS)), 1, act)

    def _kill_replicas(self) -> None:
        for process in json.loads(Path(self._replicas).read_text()):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def _write(path: Path, ids: list[int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), path)
