"""A write that the system refuses says what, why and what helps, and the table stays whole.

The table is on a file system that refuses what it is told to, so each error is the kernel's own.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

import windrow
from tests.support.faults.refusing_disk import HARMFUL, RefusingDisk, events_on, refusing_disk
from tests.support.faults.writers import report_of, stage
from tests.support.laws import in_turn
from tests.support.tables import hive
from windrow_core.models import WriteMode
from windrow_tables.commits import begin, recover
from windrow_tables.commits.errors import (
    CommitInterruptedError,
    StagedFilesError,
    UnfitLocationError,
    WriteError,
)

REMEDIES = {
    errno.ENOSPC: "make room on the disk",
    errno.EDQUOT: "raise the quota",
    errno.EROFS: "mount its file system for writing",
    errno.EACCES: "right to (write|read)|let the user",
    errno.EIO: "check the disk or the mount",
}
CAUSES = {number: os.strerror(number) for number in REMEDIES}
# Listings of folders say it in their own words.
CAUSES[errno.EACCES] = "Permission denied|not readable"
OLD, NEW = "ds=2026-11-01", "ds=2026-11-09"


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a write.

    Attributes:
        name: What the write does.
        operation: What is refused, as for `RefusingDisk.refusing`.
        where: Where.
        named: What the answer must name.
        error: The error.
    """

    name: str
    operation: str
    where: str
    named: str
    error: type[WriteError] = UnfitLocationError

    @property
    def numbers(self) -> Sequence[int]:
        is_reading = self.operation in ("list", "open")
        return (errno.EACCES, errno.EIO) if is_reading else tuple(REMEDIES)


STEPS = [
    Step("looks into the location", "list", "/events$", "/events"),
    Step("makes the staging folder", "mkdir", "/writes/[0-9a-f]+$", "/_windrow/writes/"),
    Step("looks for dead writes", "list", "/_windrow/writes$", "/_windrow/writes"),
    Step("locks the staging folder", "create", "/lock$", "/lock"),
    Step("makes the folder for data", "mkdir", "/data$", "/data"),
    Step("syncs the new files", "fsync", "-new.parquet$", "/events"),
    Step("links the old files", "link", "/ds=2026-11-01/part-00000.parquet$", "part-00000.parquet"),
    Step("lists the old files", "list", "/events/ds=2026-11-01$", "ds=2026-11-01"),
    Step("makes its intent", "create", "/[.]?intent[^/]*$", "/intent"),
    Step("writes its intent", "write", "/[.]?intent[^/]*$", "/events"),
    Step("moves a partition", "rename", "/data$", "ds=2026-11-0", CommitInterruptedError),
    Step("lists the new files", "list", "/data/ds=2026-11-01$", OLD, StagedFilesError),
    Step("reads the new files", "open", "-new.parquet$", "-new.parquet", StagedFilesError),
]


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RefusingDisk]:
    with refusing_disk(tmp_path_factory.mktemp("refused") / "files") as disk:
        yield disk


@pytest.fixture(scope="module")
def client(
    disk: RefusingDisk, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[windrow.Client]:
    with events_on(disk, tmp_path_factory.mktemp("state")) as client:
        yield client


def written(client: windrow.Client, mode: WriteMode = "append") -> None:
    """Add a row to a partition that there is, and one to one that there may not be."""
    with begin(client, "events", mode) as write:
        # Files of other writes have other names.
        files = {f"{folder}/{write.write_id}-new.parquet": [1] for folder in (OLD, NEW)}
        write.commit(report_of(stage(write.folder, files)))


def rows_in(client: windrow.Client) -> int | None:
    snapshot = client.table("events").current_snapshot
    return snapshot.row_count if snapshot is not None else None


@pytest.mark.parametrize("step", STEPS, ids=[step.name for step in STEPS])
def test_a_write_that_the_system_refuses_says_so_and_loses_nothing(
    client: windrow.Client, disk: RefusingDisk, step: Step
) -> None:
    wrong = {}
    for number in in_turn(step.numbers, STEPS.index(step), 2):
        # As another write has left it.
        (disk.folder / "events" / "_windrow" / "writes").mkdir(parents=True, exist_ok=True)
        before = rows_in(client)
        assert before is not None
        with disk.refusing(step.operation, step.where, number):
            try:
                written(client)
                told = "it was written"
            except (WriteError, OSError) as error:
                told = f"{type(error).__name__}: {error}"
        recover(client, "events")
        committed = step.error is CommitInterruptedError
        if not (
            told.startswith(f"{step.error.__name__}: ")
            and re.search(CAUSES[number], told)
            and re.search(REMEDIES[number], told)
            and step.named in told
            and not HARMFUL.search(told)
            and rows_in(client) == before + 2 * committed
            and not list((disk.folder / "events").glob("_windrow/writes/*"))
        ):
            wrong[errno.errorcode[number]] = f"{told} ({before} rows, {rows_in(client)} after)"

    assert wrong == {}


def test_nothing_but_the_refusal_was_wrong(client: windrow.Client, disk: RefusingDisk) -> None:
    written(client)

    assert client.refresh("events", full=True).changed is False
    paths = hive.data_files(disk.folder / "events")
    assert rows_in(client) == 60 + sum(path.endswith("-new.parquet") for path in paths)
    assert not (disk.folder / "events" / "_windrow").exists()


def test_a_read_only_mount_is_named(client: windrow.Client, disk: RefusingDisk) -> None:
    with (
        disk.refusing("mkdir", "", errno.EROFS),
        pytest.raises(UnfitLocationError, match="Read-only file system: mount"),
    ):
        written(client)
