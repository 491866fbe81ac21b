"""Packers that are killed or stopped at each step, and several at a time: rows stay what they are."""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from tests.support.faults.killed_packers import STEPS, packer
from tests.support.laws import a_few
from tests.support.processes.forks import Forked
from tests.support.servers.coordinators import running, wait_until
from tests.support.tables.packs import published_now, write_small_files
from windrow_calls.errors import ProblemError
from windrow_core.models.erasures import ErasureReceipt
from windrow_service.settings import PackSettings, Settings
from windrow_tables.packs.packing import packing_run

TABLE = "s.t"
DAY = timedelta(days=1)
FOREIGN = "pack-of-somebody-else.parquet"
# Of other runs, finished and not.
OTHERS = (f"pack-{'ab' * 16}.parquet", f".pack-{'ab' * 16}.parquet.{'cd' * 8}")
COMPARED, NAMED, READY = "the pack is compared", "it has its name", "it is to be published"
# A listing tells nothing of files that had changed just before it.
_MARGIN_S = 2.1


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let coordinators look after packs often."""
    monkeypatch.setattr("windrow_service.wiring.packs._KEEP_EVERY_S", 0.2)


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of 60 small files."""
    location = tmp_path_factory.mktemp("tables") / "t"
    write_small_files(location)
    time.sleep(_MARGIN_S)
    return location


class World:
    """A coordinator with a table, whose packs lie in a folder with files of others.

    Args:
        folder: A folder for its state.
        packs: The folder of packs.
        location: The table's folder.
        url: URL of the coordinator.
    """

    def __init__(self, folder: Path, packs: Path, location: Path, url: str) -> None:
        self.folder, self.packs, self.url = folder, packs, url
        self.client = windrow.connect(url)
        self.client.register_table(TABLE, str(location))
        self.client.refresh(TABLE)
        self.home = packs / self.client.plan_packing(TABLE).home
        self.home.mkdir(parents=True)
        for place in (packs, self.home):
            (place / FOREIGN).write_text("not ours")
        for name in OTHERS:
            (self.home / name).write_text("not ours")
        self.expected = self.rows()

    def rows(self) -> pa.Table:
        return self.client.scan(TABLE).to_table().sort_by("id")

    def check(self) -> int:
        """Compare rows, packs and files of others; return how many packs are published."""
        assert self.rows().equals(self.expected)
        packs = [one for one in self.client.list_packs(TABLE) if one.state == "published"]
        for one in packs:
            assert hashlib.sha256(Path(one.path).read_bytes()).hexdigest() == one.pack_id
        for path in (self.packs / FOREIGN, *(self.home / one for one in (FOREIGN, *OTHERS))):
            assert path.read_text() == "not ours"
        return len(packs)

    def left(self) -> list[str]:
        """Return the names of what packers have written that no record names."""
        recorded = {Path(one.path).name for one in self.client.list_packs(TABLE)}
        names = {path.name for path in self.home.iterdir()}
        return sorted(names - recorded - {FOREIGN, *OTHERS})

    def withdraw(self) -> None:
        for one in self.client.list_packs(TABLE):
            if one.state == "published":
                self.client.withdraw_pack(TABLE, one.pack_id)


@pytest.fixture
def world(tmp_path: Path, location: Path) -> Iterator[World]:
    with opened(tmp_path, tmp_path / "packs", location) as world:
        yield world


def settings_of(state: Path, packs: Path, erase_within: timedelta = DAY) -> Settings:
    folder = PackSettings(folder=str(packs), erase_within=erase_within)
    return Settings(state_dir=state, allowed_locations=("/",), packs=folder)


@contextmanager
def opened(
    folder: Path, packs: Path, location: Path, erase_within: timedelta = DAY
) -> Iterator[World]:
    with running(settings_of(folder / "state", packs, erase_within)) as url:
        world = World(folder, packs, location, url)
        yield world
        world.client.close()


def test_a_packer_that_is_killed_at_a_step_publishes_what_was_compared_or_nothing(
    world: World,
) -> None:
    for step in a_few([*STEPS], 4):
        with packer(world.url, TABLE, world.folder, {step: signal.SIGKILL}) as process:
            assert process.wait() == -signal.SIGKILL, step

        assert world.check() == (step == "it is published"), step
        # Whoever packs next is not hindered.
        assert len(published_now(world.client, TABLE)[0]) == (step != "it is published"), step
        assert world.check() == 1, step
        world.withdraw()


def test_a_packer_that_is_stopped_while_another_packs_changes_no_rows(world: World) -> None:
    for step in a_few([*STEPS], 3):
        with packer(world.url, TABLE, world.folder, {step: signal.SIGSTOP}) as process:
            wait_until(lambda pid=process.pid: _is_stopped(pid))
            published_now(world.client, TABLE)
            assert world.check() >= 1, step
            assert ended(process) == 0, step

        assert 1 <= world.check() <= 2, step
        world.withdraw()


def ended(process: Forked) -> int:
    """Let a packer go on whenever it stops; return its exit code."""
    while process.poll() is None:
        process.send_signal(signal.SIGCONT)
        time.sleep(0.05)
    return process.wait()


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_of_two_packs_of_the_same_files_one_is_used(world: World) -> None:
    with (
        packer(world.url, TABLE, world.folder, {}) as one,
        packer(world.url, TABLE, world.folder, {}) as other,
    ):
        assert (one.wait(), other.wait()) == (0, 0)

    assert world.check() >= 1
    wait_until(lambda: world.check() == 1)


def test_two_coordinators_with_one_folder_leave_each_others_packs(
    world: World, tmp_path: Path, location: Path
) -> None:
    with opened(tmp_path / "other", world.packs, location) as second:
        published_now(world.client, TABLE)
        published_now(second.client, TABLE)
        assert (world.check(), second.check()) == (1, 1)
        assert world.home != second.home

        second.withdraw()

        assert (world.check(), second.check()) == (1, 0)


LEAVING = ("it lies there aside", NAMED, "it has its rights", READY)


def test_what_a_killed_packer_has_left_is_removed_and_nothing_else(world: World) -> None:
    for step in [*a_few([*STEPS], 2), NAMED]:
        with packer(world.url, TABLE, world.folder, {step: signal.SIGKILL}, lease_s=3) as process:
            assert process.wait() == -signal.SIGKILL, step
        assert bool(world.left()) == (step in LEAVING), step

        wait_until(lambda: not world.left())

        assert world.check() == (step == "it is published"), step
        world.withdraw()


def test_a_coordinator_that_starts_later_removes_what_was_left(
    tmp_path: Path, location: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("windrow_service.wiring.packs._KEEP_EVERY_S", 3_600.0)
        with opened(tmp_path, tmp_path / "packs", location) as world:
            with packer(world.url, TABLE, tmp_path, {READY: signal.SIGKILL}, lease_s=1) as process:
                process.wait()
            (name,) = world.left()
            home = world.home

    with running(settings_of(tmp_path / "state", tmp_path / "packs")):
        wait_until(lambda: not (home / name).exists())

    assert {path.name for path in home.iterdir()} == {FOREIGN, *OTHERS}


def test_a_packer_that_was_stopped_beyond_its_lease_publishes_nothing(world: World) -> None:
    for step in a_few([one for one in STEPS if one != "it is published"], 3):
        with packer(world.url, TABLE, world.folder, {step: signal.SIGSTOP}, lease_s=1) as process:
            wait_until(lambda pid=process.pid: _is_stopped(pid))
            time.sleep(1.5)
            assert ended(process) > 0, step

        assert world.check() == 0, step
        wait_until(lambda: not world.left())


def test_what_a_packer_writes_after_its_lease_is_removed_although_it_is_killed(
    world: World,
) -> None:
    signals = {COMPARED: signal.SIGSTOP, NAMED: signal.SIGKILL}
    with packer(world.url, TABLE, world.folder, signals, lease_s=1) as process:
        wait_until(lambda: _is_stopped(process.pid))
        # Somebody has looked for what it left, and found nothing.
        time.sleep(2.5)
        assert ended(process) == -signal.SIGKILL

    wait_until(lambda: not world.left())
    assert world.check() == 0


def test_a_copy_of_the_database_removes_nothing_that_was_made_after_it(
    world: World, tmp_path: Path
) -> None:
    (tmp_path / "copy").mkdir()
    (source,) = (tmp_path / "state").glob("*.db")
    with (
        sqlite3.connect(source) as original,
        sqlite3.connect(tmp_path / "copy" / source.name) as copy,
    ):
        original.backup(copy)
    with running(settings_of(tmp_path / "copy", world.packs)):
        with packer(world.url, TABLE, world.folder, {READY: signal.SIGSTOP}) as process:
            wait_until(lambda: _is_stopped(process.pid))
            time.sleep(1)
            assert len(world.left()) == 1
            assert ended(process) == 0
        time.sleep(1)
        assert world.check() == 1


@pytest.fixture
def own_world(tmp_path: Path) -> Iterator[World]:
    """A world whose table may be changed."""
    write_small_files(tmp_path / "t")
    time.sleep(_MARGIN_S)
    with opened(tmp_path, tmp_path / "packs", tmp_path / "t") as world:
        yield world


def test_an_erasure_removes_what_a_packer_has_written_which_can_publish_nothing_then(
    own_world: World,
) -> None:
    world = own_world
    stale_plan = world.client.plan_packing(TABLE)
    for number, signals in enumerate(
        [{READY: signal.SIGSTOP}, {COMPARED: signal.SIGSTOP, NAMED: signal.SIGKILL}]
    ):
        with packer(world.url, TABLE, world.folder, signals) as process:
            wait_until(lambda pid=process.pid: _is_stopped(pid))
            receipt = world.client.erase(TABLE, key="id", values=[number], processes=1).receipt
            assert isinstance(receipt, ErasureReceipt)
            assert any(one.startswith("packers ") for one in receipt.not_reached)
            assert not world.left()
            assert ended(process) != 0
        wait_until(lambda: not world.left())
        world.expected = world.expected.slice(1)
        assert world.check() == 0
    with (
        pytest.raises(ProblemError, match="pack again"),
        packing_run(world.client, TABLE, stale_plan),
    ):
        pass


def test_a_source_that_is_replaced_unseen_while_it_is_packed_is_read_by_itself(
    own_world: World,
) -> None:
    world, path = own_world, own_world.folder / "t" / "k=3" / "3.parquet"
    before = pq.ParquetFile(path).read()
    rows = before.set_column(0, "id", pa.array([-one for one in before["id"].to_pylist()]))
    with packer(world.url, TABLE, world.folder, {COMPARED: signal.SIGSTOP}) as process:
        wait_until(lambda: _is_stopped(process.pid))
        replace_unseen(path, rows)
        assert ended(process) == 0

    # Some of its sources are compared at once.
    wait_until(lambda: world.client.list_packs(TABLE)[0].state == "withdrawn")
    because = world.client.list_packs(TABLE)[0].withdrawn_because
    assert because is not None
    assert because.startswith("k=3/3.parquet was replaced")
    time.sleep(_MARGIN_S)
    world.client.refresh(TABLE)
    assert published_now(world.client, TABLE)[0]

    scan = world.client.scan(TABLE)
    assert scan.plan.packs
    expected = [one for one in range(60 * 40) if one // 40 != 3] + rows["id"].to_pylist()
    assert sorted(scan.to_table()["id"].to_pylist()) == sorted(expected)


def replace_unseen(path: Path, rows: pa.Table) -> None:
    """Write other rows into a file, so that its size and time stay."""
    status = path.stat()
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    content = sink.getvalue().to_pybytes()
    assert len(content) == status.st_size, "the rows take as many bytes"
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_packs_whose_folder_is_missing_count_as_removed_once_it_is_back(
    tmp_path: Path, location: Path
) -> None:
    away = tmp_path / "away"
    with opened(tmp_path, tmp_path / "packs", location, timedelta(0)) as world:
        (pack,), _ = published_now(world.client, TABLE)

        def state() -> str:
            return str(world.client.list_packs(TABLE)[0].state)

        world.packs.rename(away)
        wait_until(lambda: state() == "withdrawn")
        time.sleep(1)
        assert state() == "withdrawn"
        away.rename(world.packs)

        wait_until(lambda: state() == "removed")
        assert not Path(pack.path).exists()
        assert world.check() == 0
