"""A writer that knows nothing of Windrow, and a walk of a folder that shares no code with it."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq

DAYS = tuple(f"ds=2026-11-{day:02d}" for day in range(1, 9))
_PAUSE_S, _FILES_AT_ONCE = 0.2, 20


@dataclass(frozen=True, slots=True)
class WalkedFile:
    """A file, as the file system and its footer have it."""

    size_bytes: int
    rows: int


def walk(location: Path) -> dict[str, WalkedFile]:
    """Return the files that readers of a folder see, by their paths in it."""
    files = {}
    for folder, folders, names in os.walk(location):
        folders[:] = [one for one in folders if one[0] not in "._"]
        for path in (Path(folder, name) for name in names if name[0] not in "._"):
            rows = pq.read_metadata(path).num_rows
            files[str(path.relative_to(location))] = WalkedFile(path.stat().st_size, rows)
    return files


@dataclass(slots=True)
class ForeignWriter:
    """Adds small files to days of a table until its block ends, one after another.

    Attributes:
        location: The table's folder.
        names: Files that are there, or about to be.
        files: Those that are there, with their figures.
        rows: Rows in them; each has another id.
    """

    location: Path
    names: set[str] = field(default_factory=set)
    files: dict[str, WalkedFile] = field(default_factory=dict)
    rows: int = 0
    _end: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> ForeignWriter:
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end.set()
        assert self._thread is not None
        self._thread.join()

    def add(self, day: str, rows: int) -> None:
        """Add a file to a day, as most writers do: under a hidden name first."""
        name = f"{day}/foreign-{len(self.names):06d}.parquet"
        path = self.location / name
        path.parent.mkdir(parents=True, exist_ok=True)
        ids = pa.array(range(self.rows, self.rows + rows), pa.int64())
        draft = path.with_name(f".{path.name}")
        pq.write_table(pa.table({"id": ids, "name": ids.cast(pa.string())}), draft)
        file = WalkedFile(draft.stat().st_size, rows)
        self.names.add(name)
        draft.rename(path)
        self.rows += rows
        self.files[name] = file

    def _write(self) -> None:
        dice = random.Random(53)
        while not self._end.wait(_PAUSE_S):
            # One day after the other gets some, and is quiet for a while.
            day = DAYS[len(self.names) // _FILES_AT_ONCE % len(DAYS)]
            self.add(day, dice.randint(1, 200))


@dataclass(frozen=True, slots=True)
class Changes:
    """What somebody else than the writer has done to a table between two walks.

    Attributes:
        old: Files that are no longer there.
        new: Files that the writer has not written.
    """

    old: Mapping[str, WalkedFile]
    new: Mapping[str, WalkedFile]


class Walks:
    """Walks of a table's folder beside its writer, one after another."""

    def __init__(self, writer: ForeignWriter) -> None:
        self._writer = writer
        self._there = walk(writer.location)
        self._seen = set(self._there)

    def changes(self) -> Changes:
        """Walk once more, and return what was done since the last time."""
        files = dict(self._writer.files)
        before = self._there | {
            name: file for name, file in files.items() if name not in self._seen
        }
        self._there = walk(self._writer.location)
        new = self._there.keys() - before.keys() - self._writer.names
        self._seen |= self._there.keys() | files.keys()
        return Changes(
            old={name: file for name, file in before.items() if name not in self._there},
            new={name: self._there[name] for name in new},
        )
