"""The law of packs, over random histories: the rows of a scan are those of the table's files."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import given
from hypothesis import strategies as st

import windrow
from tests.support.laws import examples
from tests.support.servers import embedded
from tests.support.tables.packs import published_now
from windrow_core.files.listing import HIVE_DEFAULT_PARTITION, escape
from windrow_service.inventory.listing import relisting
from windrow_service.pack_folder import DiskOrStoreFolder
from windrow_service.settings import Settings
from windrow_service.store.clock import machine_clock
from windrow_service.store.packs import SqlPackStore
from windrow_service.usecases.packs.keep import KeepPacks
from windrow_service.usecases.snapshots.scans import ManifestReader
from windrow_service.wiring.adapters import open_adapters
from windrow_service.wiring.packs import open_table_packs
from windrow_tables.executor import files
from windrow_tables.executor.errors import TaskReadError
from windrow_tables.packs import making
from windrow_tables.scans.scan import Reading, Scan

# Texts of partition values by type, and a type that takes the same texts.
VALUES = {
    "string": (["a", "b c", "é=%/", "x:'\"", "01"], "string"),
    "int": (["1", "10", "2", "-3"], "bigint"),
    "date": (["2026-01-01", "1969-12-31", "0999-02-03"], "string"),
    "timestamp": (["2026-01-01 00:00:00", "1900-01-01 12:30:00.5"], "string"),
    "decimal(9,2)": (["1.5", "10", "-2.25"], "decimal(20,4)"),
    "boolean": (["true", "false"], "string"),
}
STEPS = [
    "add",
    "replace",
    "replace_unseen",
    "remove",
    "rename",
    "retype",
    "refresh",
    "pack",
    "pack",
    "withdraw",
    "damage",
    "flip",
    "lose",
    "keep",
    "null",
]
# A pack is used where at least 48 of its files are wanted.
_FILES = 60
_TICK_S = 0.02
_OLD_NS = 1_700_000_000 * 10**9


class World(NamedTuple):
    """Where histories happen.

    Attributes:
        folder: A folder for tables.
        client: A coordinator.
        keep: Looks after packs, whose rows have to be gone at once.
    """

    folder: Path
    client: windrow.Client
    keep: Callable[[], None]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory() as name,
        start_blocking_portal() as portal,
    ):
        # File systems with coarser clocks need seconds, which histories would wait for at each step.
        patch.setattr(relisting, "_MARGIN_NS", 0)
        patch.setattr(files, "TICK_S", _TICK_S / 4)
        patch.setattr(making, "_SETTLED_S", 0.0)
        folder, stack = Path(name), AsyncExitStack()
        settings = Settings(state_dir=folder / "state", allowed_locations=(name,))
        embedded.upgraded(folder / "state")

        async def open_keep() -> KeepPacks:
            adapters = await open_adapters(settings, machine_clock, stack)
            meters = adapters.watch.meters
            return KeepPacks(
                snapshots=adapters.snapshots,
                manifests=ManifestReader(adapters.snapshots, adapters.runner, 2**26, meters),
                packs=SqlPackStore(adapters.database, adapters.clock),
                usable=open_table_packs(adapters),
                folder=DiskOrStoreFolder(str(folder / "state" / "packs")),
                runner=adapters.runner,
                clock=adapters.clock,
                erase_within=timedelta(0),
            )

        keep = portal.call(open_keep)
        with embedded.client(folder / "state", [name]) as client:
            yield World(folder, client, lambda: portal.call(keep))
        portal.call(stack.aclose)


class History:
    """A table, what its files hold, and what they held at the last refresh."""

    def __init__(self, world: World, types: tuple[str, str]) -> None:
        self.client, self._keep = world.client, world.keep
        self.location = Path(tempfile.mkdtemp(dir=world.folder))
        self.name = f"s.t{self.location.name.lower()}"
        self.types = list(types)
        self.values = [VALUES[one][0] for one in types]
        self.next_id = 0
        # By path, texts of the rows that a scan may return; several after a replacement of equal size
        # and time, which only a refresh sees.
        self.files: dict[str, list[frozenset[tuple[int, str]]]] = {}
        self.known: dict[str, list[frozenset[tuple[int, str]]]] = {}
        self.packs_read = 0
        for number in range(_FILES):
            # Of one layout, so that one pack holds enough of them to be read.
            self.add(4 * number)
        self.register()
        self.refresh(0)

    def register(self) -> None:
        self.client.register_table(
            self.name,
            str(self.location),
            columns={"id": "bigint", "x": "string"},
            partition_columns=dict(zip("ab", self.types, strict=True)),
            replace=True,
        )

    def step(self, kind: str, number: int) -> None:
        getattr(self, kind)(number)

    def _write(self, path: str, kind: int, *, same_time: bool = False) -> None:
        ids = range(self.next_id, self.next_id + 1 + kind)
        self.next_id += 10
        texts = [f"{one:06}" for one in ids]
        columns = {"id": pa.array(ids, pa.int64()), "x": pa.array(texts)}
        names = [["id", "x"], ["x", "id"], ["id"]][kind % 3]
        file = self.location / path
        file.parent.mkdir(parents=True, exist_ok=True)
        time_ns = file.stat().st_mtime_ns if same_time else _OLD_NS + self.next_id * 10**9
        size = file.stat().st_size if same_time else 0
        pq.write_table(pa.table({name: columns[name] for name in names}), file, compression="none")
        os.utime(file, ns=(time_ns, time_ns))
        rows = frozenset(
            (one, text if "x" in names else "") for one, text in zip(ids, texts, strict=True)
        )
        if same_time:
            assert file.stat().st_size == size
            self.files[path].append(rows)
        else:
            self.files[path] = [rows]

    def _folder(self, number: int) -> str:
        a, b = (
            values[number // more % len(values)]
            for values, more in zip(self.values, (1, 7), strict=True)
        )
        a, b = (escape(text) or HIVE_DEFAULT_PARTITION for text in (a, b))
        return f"a={a}/b={b}"

    def _one(self, number: int) -> str:
        paths = sorted(self.files)
        return paths[number % len(paths)]

    def add(self, number: int) -> None:
        self._write(f"{self._folder(number)}/f{self.next_id}-{number % 4}.parquet", number % 4)

    def null(self, number: int) -> None:
        folder = self._folder(number).partition("/")[0]
        self._write(f"{folder}/b={HIVE_DEFAULT_PARTITION}/f{self.next_id}-0.parquet", 0)

    def replace(self, number: int) -> None:
        self._write(self._one(number), number % 4)

    def replace_unseen(self, number: int) -> None:
        path = self._one(number)
        self._write(
            path, int(path[-9]), same_time=len(self.files[path]) < 4 and self._is_first(path)
        )

    def _is_first(self, path: str) -> bool:
        """Return whether a file is as `add` wrote it, so that another one may have its size."""
        rows = self.files[path][-1]
        return len(rows) == int(path[-9]) + 1

    def remove(self, number: int) -> None:
        path = self._one(number)
        (self.location / path).unlink()
        del self.files[path]

    def rename(self, number: int) -> None:
        old = self._one(number).rpartition("/")[0]
        new = f"{self._folder(number + 1)}x" if self.types[1] == "string" else self._folder(number)
        if new == old or (self.location / new).exists():
            return
        (self.location / new).parent.mkdir(parents=True, exist_ok=True)
        (self.location / old).rename(self.location / new)
        for path in [path for path in self.files if path.startswith(f"{old}/")]:
            self.files[new + path.removeprefix(old)] = self.files.pop(path)

    def retype(self, number: int) -> None:
        at = number % 2
        self.types[at] = VALUES[self.types[at]][1] if self.types[at] in VALUES else "string"
        self.register()
        self.refresh(number)

    def refresh(self, number: int) -> None:
        # Longer than a tick of the file system's clock.
        time.sleep(_TICK_S)
        self.client.refresh(self.name)
        # It sees what was replaced, also by a file of equal size and time.
        self.files = {path: rows[-1:] for path, rows in self.files.items()}
        self.known = {path: list(rows) for path, rows in self.files.items()}

    def pack(self, number: int) -> None:
        self.refresh(number)
        published_now(self.client, self.name)

    def _packs(self) -> list[Path]:
        states = ("published", "withdrawn")
        packs = [one for one in self.client.list_packs(self.name) if one.state in states]
        return [Path(one.path) for one in packs if Path(one.path).exists()]

    def withdraw(self, number: int) -> None:
        for one in self.client.list_packs(self.name)[:1]:
            self.client.withdraw_pack(self.name, one.pack_id)

    def damage(self, number: int) -> None:
        for path in self._packs()[:1]:
            path.chmod(0o600)
            content = path.read_bytes()
            path.write_bytes(content[: number * len(content) // 100])

    def flip(self, number: int) -> None:
        for path in self._packs()[:1]:
            path.chmod(0o600)
            content = bytearray(path.read_bytes())
            if content:
                content[number * len(content) // 100] ^= 1 << number % 8
                path.write_bytes(content)

    def lose(self, number: int) -> None:
        for path in self._packs()[:1]:
            path.unlink()

    def keep(self, number: int) -> None:
        self._keep()

    def check(self, number: int) -> None:
        """Ask one of some questions with packs and without."""
        first = min(self.known.values(), default=[frozenset({(0, "")})])[0]
        text, of_a = ("01", "a")[number % 2], self.types[0]
        questions: list[dict[str, Any]] = [
            {},
            {"columns": ["id"]},
            {"columns": ["b", "a"]},
            {"filter": f"id > {min(first)[0] + 3}", "columns": ["x", "a"]},
            {"filter": "a IS NOT NULL AND b IS NOT NULL", "columns": ["id", "b"]},
            {"filter": f"a <> {text!r} OR x IS NULL" if of_a == "string" else "b IS NULL"},
        ]
        for question in questions if number < 0 else [questions[number % len(questions)]]:
            packed = self._rows(question, accept=["packs"])
            plain = self._rows(question)
            changed = self.known != self.files or any(len(rows) > 1 for rows in self.known.values())
            if not changed:
                assert packed is not None
                assert packed == plain
            if packed is not None and not question:
                self._require_known(packed)
            if plain is not None and packed is not None and self.known == self.files:
                assert packed.total() == plain.total()

    def _rows(self, question: dict[str, Any], **more: Any) -> Counter[Any] | None:
        """Return rows; None if a file has changed since the refresh."""
        plan = self.client.plan(self.name, session_options={"parallelism": 1}, **question, **more)
        self.packs_read += len(plan.info.packs)
        scan = Scan(plan, Reading(threads=1, buffer_bytes=2**20), lambda: None)
        try:
            table = scan.to_table()
        except TaskReadError:
            assert self.known != self.files
            return None
        names = table.column_names
        return Counter(zip(*(table[name].to_pylist() for name in names), strict=True))

    def _require_known(self, rows: Counter[Any]) -> None:
        """Check that rows are those of files at the last refresh, or of replacements nobody sees."""
        found = {row[0]: row[1] or "" for row in rows}
        assert rows.total() == len(found)
        for path, at_refresh in self.known.items():
            choices = [*at_refresh, *self.files.get(path, ())]
            assert any(all(found.get(one) == text for one, text in choice) for choice in choices), (
                path
            )
        both = [*self.known.values(), *self.files.values()]
        ids = {one for choices in both for choice in choices for one, _ in choice}
        assert found.keys() <= ids
        assert len(found) == sum(len(choices[0]) for choices in self.known.values())


@examples(50)
@given(
    st.tuples(*[st.sampled_from(sorted(VALUES))] * 2),
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 99)), min_size=1, max_size=9),
)
def test_rows_with_packs_are_those_of_the_files(
    world: World, types: tuple[str, str], steps: list[tuple[str, int]]
) -> None:
    history = History(world, types)
    for number, (kind, at) in enumerate([("pack", 0), *steps]):
        history.step(kind, at)
        history.check(at + number if number else 0)
        # Files of dates that Spark may refuse are in no pack.
        assert history.packs_read or "date" in types
    history.refresh(0)
    history.check(-1)
    history.pack(0)
    history.check(-1)
    world.client.delete_table(history.name)
    shutil.rmtree(history.location)
