"""Packers that are killed or stopped at each step, and several at a time: rows stay what they are."""

from __future__ import annotations

import hashlib
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import windrow
from tests.support.faults.killed_packers import STEPS, packer
from tests.support.laws import a_few
from tests.support.servers.coordinators import running, wait_until
from tests.support.tables.packs import published_now, write_small_files
from windrow_service.settings import PackSettings, Settings

TABLE = "s.t"
FOREIGN = "pack-of-somebody-else.parquet"
# A listing tells nothing of files that had changed just before it.
_MARGIN_S = 2.1


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
        self.expected = self.rows()

    def rows(self) -> pa.Table:
        return self.client.scan(TABLE).to_table().sort_by("id")

    def check(self) -> int:
        """Compare rows, packs and files of others; return how many packs are published."""
        assert self.rows().equals(self.expected)
        packs = [one for one in self.client.list_packs(TABLE) if one.state == "published"]
        for one in packs:
            assert hashlib.sha256(Path(one.path).read_bytes()).hexdigest() == one.pack_id
        for place in (self.packs, self.home):
            assert (place / FOREIGN).read_text() == "not ours"
        return len(packs)

    def withdraw(self) -> None:
        for one in self.client.list_packs(TABLE):
            if one.state == "published":
                self.client.withdraw_pack(TABLE, one.pack_id)


@pytest.fixture
def world(tmp_path: Path, location: Path) -> Iterator[World]:
    with opened(tmp_path, tmp_path / "packs", location) as world:
        yield world


@contextmanager
def opened(folder: Path, packs: Path, location: Path) -> Iterator[World]:
    settings = Settings(
        state_dir=folder / "state",
        allowed_locations=("/",),
        packs=PackSettings(folder=str(packs)),
    )
    with running(settings) as url:
        world = World(folder, packs, location, url)
        yield world
        world.client.close()


def test_a_packer_that_is_killed_at_a_step_publishes_what_was_compared_or_nothing(
    world: World,
) -> None:
    for step in a_few([*STEPS], 4):
        with packer(world.url, TABLE, world.folder, step, signal.SIGKILL) as process:
            assert process.wait() == -signal.SIGKILL, step

        assert world.check() == (step == "it is published"), step
        # Whoever packs next is not hindered.
        assert len(published_now(world.client, TABLE)[0]) == (step != "it is published"), step
        assert world.check() == 1, step
        world.withdraw()


def test_a_packer_that_is_stopped_while_another_packs_changes_no_rows(world: World) -> None:
    for step in a_few([*STEPS], 3):
        with packer(world.url, TABLE, world.folder, step, signal.SIGSTOP) as process:
            wait_until(lambda pid=process.pid: _is_stopped(pid))
            published_now(world.client, TABLE)
            assert world.check() >= 1, step
            while process.poll() is None:
                process.send_signal(signal.SIGCONT)
                time.sleep(0.05)
            assert process.wait() == 0, step

        assert 1 <= world.check() <= 2, step
        world.withdraw()


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_of_two_packs_of_the_same_files_one_is_used(world: World) -> None:
    with (
        packer(world.url, TABLE, world.folder) as one,
        packer(world.url, TABLE, world.folder) as other,
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
