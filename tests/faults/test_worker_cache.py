"""Tasks get the correct rows through a failing cache, and fetch each file once."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.plans.plans import group_of
from tests.support.processes.forks import Forked, fork
from tests.support.servers.coordinators import wait_until
from tests.support.servers.slow_store import SlowStore, slow_store
from tests.support.spark import cache_tasks
from tests.support.spark.host_caches import cache_in, checkpointed, damage_rows, key_of, keys_in

FILES, ROWS = 40, 200
_TIMEOUT_S = 60.0


class Task(NamedTuple):
    """A process that reads the table, and the files of its output and its log."""

    process: Forked
    said: Path
    logged: Path


@dataclass
class Setup:
    """A table in a store that counts requests, and the cache of a host.

    Attributes:
        folder: The folder of the cache.
        buffered: The size in bytes of the largest file that a task reads whole into memory.
        tasks: The number of tasks that have been started.
    """

    store: SlowStore
    table: Path
    folder: Path
    buffered: int = 8 * 2**20
    tasks: int = 0

    def write(self, number: int, first: int) -> None:
        path = self.table / f"{number:03}.parquet"
        values = pa.array(range(first, first + ROWS), pa.int64())
        pq.write_table(pa.table({"a": values}), path, compression="none", use_dictionary=False)
        # The store reports times in whole seconds.
        second = time.time_ns() // 10**9 * 10**9 + first * 10**9
        os.utime(path, ns=(second, second))

    def start(self, file_limit: int | None = None) -> Task:
        """Start a task that reads the whole table in its current state."""
        group = group_of(self.table)
        file = self.folder.with_name("group.arrow")
        with pa.ipc.new_file(file, group.schema) as writer:
            writer.write_batch(group)
        self.tasks += 1
        said, logged = (self.folder.with_name(f"{kind}-{self.tasks}") for kind in ("said", "log"))
        process = fork(
            cache_tasks.read_table,
            f"s3://{self.table.relative_to(self.store.root).as_posix()}",
            str(file),
            self.buffered,
            file_limit,
            output=said,
            errors=logged,
            environment=os.environ
            | self.store.environment
            | {"WINDROW_CACHE_DIR": str(self.folder)},
        )
        return Task(process, said, logged)

    def read(self, file_limit: int | None = None) -> str:
        """Read the whole table, check its rows, and return the log of the task."""
        return self.finish(self.start(file_limit))

    def finish(self, task: Task) -> str:
        task.process.wait(_TIMEOUT_S)
        values = [
            value
            for path in self.table.glob("*.parquet")
            for value in pq.read_table(path, use_threads=False)["a"].to_pylist()
        ]
        logged = task.logged.read_text()
        assert task.said.read_text() == f"[{len(values)}, {sum(values)}]", logged
        return logged

    def fetched(self) -> dict[str, int]:
        """Return how often each file was fetched since the last call."""
        asked = [key.rpartition("/")[2] for method, key in self.store.requests if method == "GET"]
        self.store.requests.clear()
        return {name: asked.count(name) for name in asked if name.endswith(".parquet")}

    def all_once(self) -> dict[str, int]:
        return {path.name: 1 for path in self.table.glob("*.parquet")}


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[Setup]:
    table = tmp_path / "store" / "bucket" / "events"
    table.mkdir(parents=True)
    cache_in(tmp_path / "cache").close()
    with slow_store(tmp_path / "store", latency_s=0.005) as store:
        made = Setup(store, table, tmp_path / "cache")
        for number in range(FILES):
            made.write(number, number * ROWS)
        yield made


def test_the_second_task_sends_no_request_to_the_store(setup: Setup) -> None:
    setup.read()
    assert setup.fetched() == setup.all_once()

    setup.read()

    assert setup.store.requests == []


def test_tasks_that_read_the_same_files_at_once_fetch_each_once(setup: Setup) -> None:
    tasks = [setup.start() for _ in range(3)]

    for task in tasks:
        assert setup.finish(task) == ""

    assert setup.fetched() == setup.all_once()
    counts = cache_in(setup.folder).counts()
    assert (counts["misses"], counts["hits"]) == (FILES, 2 * FILES)


def test_tasks_that_read_a_large_file_at_once_fetch_it_once(setup: Setup) -> None:
    # No file is small enough to be read whole into memory.
    setup.buffered = 100
    tasks = [setup.start() for _ in range(2)]

    for task in tasks:
        assert setup.finish(task) == ""

    assert setup.fetched() == setup.all_once()
    setup.read()
    assert setup.store.requests == []


def test_an_overwritten_file_is_fetched_again_and_its_old_content_never_read(setup: Setup) -> None:
    setup.read()
    setup.fetched()

    # The size stays the same.
    setup.write(7, 10**6)
    setup.read()

    assert setup.fetched() == {"007.parquet": 1}


@pytest.mark.parametrize("buffered", [8 * 2**20, 100])
def test_a_damaged_entry_is_fetched_again_and_replaced(setup: Setup, buffered: int) -> None:
    setup.buffered = buffered
    setup.read()
    setup.fetched()

    if buffered == 100:
        file = next((setup.folder / "files").glob("*/*"))
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 0xFF
        file.write_bytes(content)
    else:
        damage_rows(setup.folder, (setup.table / "011.parquet").read_bytes(), at=700)
    setup.read()

    assert list(setup.fetched().values()) == [1]
    setup.read()
    assert setup.store.requests == []


def test_a_broken_database_is_bypassed(setup: Setup) -> None:
    setup.read()
    setup.fetched()
    checkpointed(setup.folder).write_bytes(b"no database" * 10_000)

    logged = setup.read()

    assert "bypass the cache" in logged
    assert setup.fetched() == setup.all_once()
    assert (setup.folder / "damaged").exists()


def test_a_full_disk_is_bypassed(setup: Setup) -> None:
    for number in range(3):
        values = pa.array(range(10**6, 10**6 + 40_000), pa.int64())
        path = setup.table / f"{number:03}.parquet"
        pq.write_table(pa.table({"a": values}), path, compression="none", use_dictionary=False)
        os.utime(path, (10**9, 10**9))

    # For this process, a limit on file sizes acts like a full disk.
    logged = setup.read(file_limit=200_000)

    without_cache = ("no longer adds files to", "no longer uses the cache", "bypass the cache")
    assert any(words in logged for words in without_cache)
    counts = cache_in(setup.folder).counts()
    assert list((setup.folder / "incoming").iterdir()) == []
    count = len(keys_in(cache_in(setup.folder)))
    assert count < FILES
    assert counts.get("misses", 0) == count or "reads from the cache could not" in logged
    assert setup.read() == ""


def test_a_killed_writer_leaves_no_entry_and_blocks_nobody(setup: Setup) -> None:
    key = key_of("large", 8)
    said = setup.folder.with_name("said")
    writer = fork(cache_tasks.write_half, str(setup.folder), key, output=said)
    try:
        wait_until(lambda: said.read_text() == "written")
    finally:
        writer.kill()
        writer.wait()
    assert len(list((setup.folder / "incoming").iterdir())) == 1

    # Its lock ended with the process, so this does not wait.
    cache = cache_in(setup.folder)

    assert not cache.holds(key)
    assert list((setup.folder / "incoming").iterdir()) == []
    cache.keep_copy(key, 8, lambda write: write(b"the file"))
    assert cache.get(key) == b"the file"


def test_tasks_killed_while_fetching_leave_a_cache_with_correct_rows(setup: Setup) -> None:
    for waited_for in (3, 12, 25):
        process = setup.start().process
        deadline = time.monotonic() + _TIMEOUT_S
        while len(setup.store.requests) < waited_for and process.poll() is None:
            assert time.monotonic() < deadline, "the task did not begin"
            time.sleep(0.001)
        process.kill()
        process.wait()

    assert setup.read() == ""
    setup.fetched()
    setup.read()
    assert setup.store.requests == []
