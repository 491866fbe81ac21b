"""Laws of following the logs of Delta tables, over random histories of commits."""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from tests.support.tables.delta_tables import (
    Action,
    DeltaLog,
    add,
    column,
    inline_vector,
    metadata,
    protocol,
    remove,
)
from windrow_core.files.errors import InventoryError
from windrow_service.delta.reading import LoggedTable, Read, in_path_order, read_since, read_version

_PARTITIONS = ["a", "b c", "ü/%", None]
# What happens to a table, and how many files it affects.
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "append",
                "append",
                "remove",
                "rewrite",
                "vector",
                "no vector",
                "same",
                "column",
                "nothing",
                "checkpoint",
            ]
        ),
        st.integers(1, 4),
        st.randoms(use_true_random=False),
    ),
    min_size=1,
    max_size=12,
)


@dataclass
class _Table:
    """A table and its live files: each path, and the last entry of the log for it."""

    log: DeltaLog
    live: dict[str, Action] = field(default_factory=dict)
    columns: list[dict[str, Any]] = field(
        default_factory=lambda: [column("id", "long"), column("p", "string")]
    )
    history: list[dict[str, tuple[int, str | None, int]]] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def begin(self) -> None:
        self.commit(protocol(3, "deletionVectors"), metadata(self.columns, ["p"]))

    def commit(self, *actions: Action) -> None:
        self.log.commit(*actions)
        self.history.append(
            {
                unquote(path): (
                    json.loads(entry["add"]["stats"])["numRecords"],
                    entry["add"]["partitionValues"]["p"],
                    entry["add"].get("deletionVector", {}).get("cardinality", 0),
                )
                for path, entry in self.live.items()
            }
        )

    def new(self, random: Any) -> Action:
        number, value = next(self.numbers), random.choice(_PARTITIONS)
        folder = "p=__HIVE_DEFAULT_PARTITION__" if value is None else f"p={quote(value, safe='')}"
        path = quote(f"{folder}/part {number}%.parquet", safe="/=")
        entry = add(path, rows=100 + number, partitionValues={"p": value}, size=number)
        self.live[path] = entry
        return entry

    def some(self, count: int, random: Any) -> list[str]:
        return random.sample(sorted(self.live), min(count, len(self.live)))

    def gone(self, path: str) -> Action:
        vector = self.live.pop(path)["add"].get("deletionVector")
        return remove(path, **({"deletionVector": vector} if vector else {}))

    def step(self, kind: str, count: int, random: Any) -> None:
        actions: list[Action] = []
        if kind in ("remove", "rewrite"):
            actions += [self.gone(path) for path in self.some(count, random)]
        if kind in ("append", "rewrite"):
            actions += [self.new(random) for _ in range(count)]
        if kind in ("vector", "no vector", "same"):
            for path in self.some(count, random):
                entry = self.live[path]["add"]
                if kind == "same":
                    # As when statistics are computed anew.
                    actions.append({"add": {**entry, "dataChange": False}})
                    continue
                more = {name: value for name, value in entry.items() if name != "deletionVector"}
                if kind == "vector":
                    more["deletionVector"] = inline_vector(random.sample(range(100), 1 + count))
                # A commit may not remove a file that it adds.
                if more.get("deletionVector") != entry.get("deletionVector"):
                    actions.append(self.gone(path))
                    self.live[path] = {"add": more}
                    actions.append(self.live[path])
        if kind == "column":
            self.columns.append(column(f"c{len(self.columns)}", "string"))
            actions.append(metadata(self.columns, ["p"]))
        random.shuffle(actions)
        self.commit(*actions)
        if kind == "checkpoint":
            DeltaTable(self.log.folder).create_checkpoint()


@contextmanager
def _table() -> Iterator[_Table]:
    folder = Path(tempfile.mkdtemp())
    try:
        yield _Table(DeltaLog(folder))
    finally:
        shutil.rmtree(folder)


def _seen(files: pa.Table) -> dict[str, tuple[int, str | None, int]]:
    return {
        row["path"]: (
            row["row_count"],
            row["partition"]["p"],
            sum(one["row_count"] for one in row["deletes"] or []),
        )
        for row in files.to_pylist()
    }


def _after(before: Read, change: Read) -> pa.Table:
    gone = pa.concat_arrays([change.removed, *change.files["path"].chunks])
    kept = before.files.filter(pc.invert(pc.is_in(before.files["path"], gone)))
    return in_path_order("t", pa.concat_tables([kept, change.files]))


@examples(15)
@given(_STEPS)
def test_every_version_of_every_history_has_its_files_and_following_leads_to_the_newest(
    steps: list[tuple[str, int, Any]],
) -> None:
    with _table() as table:
        table.begin()
        for kind, count, random in steps:
            table.step(kind, count, random)
        logged = LoggedTable(location=str(table.log.folder))
        newest = read_version(logged, None)
        assert newest.state.version == table.log.version
        for version, expected in enumerate(table.history):
            read = read_version(logged, version)
            assert _seen(read.files) == expected
            change = read_since(logged, read.state)
            if change is not None:
                assert _after(read, change).equals(in_path_order("t", newest.files))
            assert change is not None or any(
                kind in ("column", "checkpoint") for kind, _, _ in steps
            )
        theirs = pa.table(DeltaTable(table.log.folder).get_add_actions())
        paths = map(unquote, theirs["path"].to_pylist())
        assert dict(zip(paths, theirs["num_records"].to_pylist(), strict=True)) == {
            path: rows for path, (rows, _, _) in _seen(newest.files).items()
        }
        columns = {one["name"] for one in table.columns}
        assert {*newest.shape.data.names, *newest.shape.partition.names} == columns


def _damage(log: Path, random: Any) -> None:
    """Lose some files of a log, and perhaps point at a checkpoint that is not there."""
    names = sorted(path.name for path in log.iterdir())
    for name in random.sample(names, min(len(names), random.choice([1, 1, 2, 3]))):
        (log / name).unlink()
    if random.random() < 0.3:
        version = random.randrange(len(names) + 2)
        (log / "_last_checkpoint").write_text(json.dumps({"version": version, "size": 5}))


def _theirs(folder: Path, version: int | None) -> set[str] | None:
    try:
        adds = pa.table(DeltaTable(folder, version=version).get_add_actions())
    except (DeltaError, TableNotFoundError):
        return None
    return {unquote(path) for path in adds["path"].to_pylist()}


@examples(20)
@given(_STEPS, st.randoms(use_true_random=False))
def test_of_a_log_that_lacks_files_each_version_is_right_or_refused_as_by_deltalake(
    steps: list[tuple[str, int, Any]], random: Any
) -> None:
    with _table() as table:
        table.begin()
        for kind, count, step_random in steps:
            table.step(kind, count, step_random)
        if random.random() < 0.2:
            table.commit(protocol(3, "fromTheFuture"))
        folder = table.log.folder
        logged = LoggedTable(location=str(folder))
        before = [read_version(logged, version) for version in range(len(steps) + 1)]
        _damage(table.log.log, random)
        newest = max(
            (int(path.name[:20]) for path in table.log.log.iterdir() if path.name[:20].isdigit()),
            default=None,
        )
        for version in (None, *range(len(table.history))):
            try:
                read = read_version(logged, version)
            except InventoryError:
                assert _theirs(folder, version) is None
            else:
                assert read.state.version == (newest if version is None else version)
                assert _seen(read.files) == table.history[read.state.version]
        for earlier in before:
            try:
                change = read_since(logged, earlier.state)
            except InventoryError:
                continue
            if change is not None:
                assert change.state.version == newest
                assert _seen(_after(earlier, change)) == table.history[newest]
