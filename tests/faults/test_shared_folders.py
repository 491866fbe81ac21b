"""Two commits to one folder, for two tables or two coordinators: one at a time, and no row twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain, product
from pathlib import Path

import pytest

import windrow
from tests.support.faults.readers import ids_in, planned_ids, planned_stored_ids, stored_ids
from tests.support.faults.writers import Writers, at_step, forking_writers, report_of, stage
from tests.support.laws import a_few
from tests.support.servers.coordinators import running
from tests.support.servers.s3 import s3_server
from windrow.client import Client
from windrow_calls.errors import WindrowError
from windrow_core.models import WriteMode
from windrow_service.settings import Settings
from windrow_tables.commits import begin
from windrow_tables.commits.errors import (
    CommitBlockedError,
    PartitionChangedError,
    UnknownCommitError,
)
from windrow_tables.commits.inventories import list_files

DAYS = [f"ds=2026-11-{day:02}" for day in range(1, 6)]
OLD = {f"{day}/{part}.parquet": [2 * n + part] for n, day in enumerate(DAYS) for part in range(2)}
ROWS = list(range(2 * len(DAYS)))
STEPS = ("admitted", "linked", "recorded", "exchanged", "moved in")
# None stands for a compaction.
MODES: tuple[WriteMode | None, ...] = (None, "overwrite", "overwrite_partitions")
Side = tuple[Client, str, str]


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """URLs of two coordinators that know nothing of each other."""
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(
                running(
                    Settings(
                        state_dir=tmp_path_factory.mktemp("state"),
                        allowed_locations=("/", "s3://shared"),
                    )
                )
            )
            for _ in range(2)
        )
        yield first, second


@pytest.fixture(params=["two tables", "two coordinators"])
def sides(
    request: pytest.FixtureRequest, urls: tuple[str, str], tmp_path: Path
) -> Iterator[tuple[Side, Side]]:
    """Two ways to write to the folder `t`: a client, the table's name, and the coordinator's URL."""
    stage(str(tmp_path / "t"), OLD)
    name = f"t_{tmp_path.name}".replace("-", "_").lower()
    is_one = request.param == "two tables"
    with windrow.connect(urls[0]) as one, windrow.connect(urls[0 if is_one else 1]) as two:
        other = f"{name}_other" if is_one else name
        both = (one, name, urls[0]), (two, other, urls[0 if is_one else 1])
        for client, table, _ in both:
            client.register_table(table, str(tmp_path / "t"))
            client.refresh(table)
        yield both


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    with s3_server() as server:
        server.client.create_bucket(Bucket="shared")
        yield "s3://shared"


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    with forking_writers() as writers:
        yield writers


def rewrite(side: Side, tag: str, ready: threading.Barrier | None = None) -> None:
    """Merge the files of each partition, without waiting for another commit."""
    client, table, _ = side
    new = {f"{day}/{tag}.parquet": [2 * n, 2 * n + 1] for n, day in enumerate(DAYS)}
    with begin(client, table, kind="compaction", wait_seconds=0) as write:
        rows = stage(write.folder, new)
        write.inventory()
        if ready is not None:
            ready.wait()
        write.commit(report_of(rows), sorted(OLD))


def write(side: Side, files: Mapping[str, Sequence[int]], mode: WriteMode) -> None:
    client, table, _ = side
    with begin(client, table, mode, wait_seconds=0) as write:
        write.commit(report_of(stage(write.folder, files)))


def folder_ids(location: Path) -> list[int]:
    paths = list_files(str(location))["path"].to_pylist()
    return sorted(i for path in paths for i in ids_in(location / path))


def assert_holds(sides: tuple[Side, Side], location: Path, rows: Sequence[int]) -> None:
    assert folder_ids(location) == sorted(rows)
    for client, table, url in sides:
        client.refresh(table)
        assert planned_ids(url, table, location) == sorted(rows)
    assert not (location / "_windrow").exists()


def test_of_two_commits_at_once_that_replace_the_same_files_one_is_made(
    sides: tuple[Side, Side], tmp_path: Path
) -> None:
    ready = threading.Barrier(2)
    with ThreadPoolExecutor(2) as threads:
        outcomes = [
            threads.submit(rewrite, side, tag, ready) for side, tag in zip(sides, "ab", strict=True)
        ]
    errors = [outcome.exception() for outcome in outcomes]
    assert errors.count(None) == 1
    assert any(isinstance(error, PartitionChangedError | CommitBlockedError) for error in errors)
    assert_holds(sides, tmp_path / "t", ROWS)


@pytest.mark.parametrize(("step", "mode"), a_few(list(product(STEPS, MODES)), 4))
def test_a_commit_waits_for_one_to_another_table_over_its_folder(
    sides: tuple[Side, Side], tmp_path: Path, step: str, mode: WriteMode | None
) -> None:
    refusals: list[BaseException] = []

    def meanwhile() -> None:
        try:
            if mode is None:
                rewrite(sides[1], "b")
            else:
                write(sides[1], {f"{DAYS[0]}/b.parquet": [900]}, mode)
        except WindrowError as error:
            refusals.append(error)

    undo = at_step(step, 1, meanwhile)
    try:
        rewrite(sides[0], "a")
    finally:
        undo()

    (refusal,) = refusals
    assert isinstance(refusal, CommitBlockedError)
    assert "a commit to the same folder" in str(refusal)
    assert_holds(sides, tmp_path / "t", ROWS)


def test_a_commit_moves_nothing_beside_a_dead_one_that_has_moved_some_of_its_files(
    sides: tuple[Side, Side], writers: Writers, tmp_path: Path
) -> None:
    (client, table, _), (_, other, url) = sides
    new = {f"{day}/b.parquet": [100 + n] for n, day in enumerate(DAYS)}
    with begin(client, table, kind="compaction", wait_seconds=20) as write:
        rows = stage(write.folder, {f"{DAYS[0]}/a.parquet": [0, 1]})
        assert writers.write(url, other, new, mode="overwrite", dies=("exchanged", 3)) == "killed"
        # Another table's commit is finished first, another coordinator's is its own affair.
        with pytest.raises((PartitionChangedError, UnknownCommitError)):
            write.commit(report_of(rows), sorted(OLD)[:2])
    with begin(sides[1][0], other) as write:
        write.undo()
    assert_holds(sides, tmp_path / "t", [100 + n for n in range(len(DAYS))])


@pytest.mark.parametrize("step", ["admitted", "linked", "written down", "renamed"])
def test_of_two_commits_on_a_store_without_locks_at_most_one_is_made(
    store: str, urls: tuple[str, str], step: str
) -> None:
    location = f"{store}/{step}"
    stage(location, OLD)
    errors: list[WindrowError] = []

    def attempt(side: Side, tag: str) -> None:
        try:
            rewrite(side, tag)
        except WindrowError as error:
            errors.append(error)

    with windrow.connect(urls[0]) as one, windrow.connect(urls[1]) as two:
        first, second = (one, "stored", urls[0]), (two, "stored", urls[1])
        for client, table, _ in (first, second):
            client.register_table(table, location)
            client.refresh(table)
        undo = at_step(step, 1, lambda: attempt(second, "b"))
        try:
            attempt(first, "a")
        finally:
            undo()

        assert errors
        assert sorted(chain(*stored_ids(location).values())) == ROWS
        for client, table, _ in (first, second):
            client.refresh(table)
            assert planned_stored_ids(client, table, location) == ROWS
            client.delete_table(table)
