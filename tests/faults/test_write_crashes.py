"""A driver is killed at each step of a commit: no row is lost or doubled, no reader sees a mix."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windrow
import windrow_tables.commits
from tests.support.faults.disks import nearly_full, small_disk
from tests.support.faults.readers import listed_ids, looking, planned_ids
from tests.support.faults.writers import Writers, forking_writers, report_of, stage
from tests.support.laws import a_few
from tests.support.servers.coordinators import coordinator_process, running
from tests.support.tables import hive
from windrow.client import Client
from windrow_calls.errors import WriteInProgressError, WriteLostError
from windrow_core.files.roots import disks
from windrow_core.models import WriteUpdate
from windrow_service.settings import Settings
from windrow_tables.commits import begin
from windrow_tables.commits.errors import (
    CommitBlockedError,
    PartitionChangedError,
    UnknownCommitError,
    WriteConflictError,
)
from windrow_tables.commits.inventories import list_files, take_inventory

FIRST, SECOND, THIRD = (f"ds={day}" for day in hive.DAYS)
NEW = "ds=2026-11-09"
OLD = {FIRST: range(20), SECOND: range(20, 40), THIRD: range(40, 60)}
ADDED = {SECOND: range(100, 105), THIRD: range(200, 220), NEW: range(300, 303)}
FILES = {f"{folder}/new.parquet": list(ids) for folder, ids in ADDED.items()}
COMPACTED = {
    f"{SECOND}/one.parquet": list(OLD[SECOND]),
    f"{THIRD}/one.parquet": list(OLD[THIRD])[:10],
}
REPLACED = [
    f"{SECOND}/part-00000.parquet",
    f"{SECOND}/part-00001.parquet",
    f"{THIRD}/part-00000.parquet",
]
# Mode, new files, replaced files, and the ids in each partition after the write.
KINDS: dict[str, tuple[str, dict[str, list[int]], list[str], Mapping[str, Sequence[int]]]] = {
    "append": (
        "append",
        FILES,
        [],
        {folder: [*OLD.get(folder, []), *ADDED.get(folder, [])] for folder in {*OLD, *ADDED}},
    ),
    "overwrite_partitions": ("overwrite_partitions", FILES, [], {**OLD, **ADDED}),
    "overwrite": ("overwrite", FILES, [], ADDED),
    "compaction": ("append", COMPACTED, REPLACED, OLD),
    "removal": (
        "append",
        {},
        [f"{day}/part-0000{number}.parquet" for day in (SECOND, THIRD) for number in range(2)],
        {FIRST: OLD[FIRST]},
    ),
}
EVERYWHERE = ("staged", "recorded", "exchanged", "last exchanged", "moved in", "published")
CRASHES = [(kind, step) for kind in KINDS for step in EVERYWHERE] + [
    ("overwrite_partitions", step)
    for step in ("admitted", "linked", "exchanging", "tidied", "noted", "forgotten", "removing")
]
# A write that dies at one of these steps is undone.
UNDONE = ("staged", "admitted", "linked")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    state = tmp_path_factory.mktemp("state")
    with running(Settings(state_dir=state, allowed_locations=("/",))) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with windrow.connect(url) as client:
        yield client


@pytest.fixture
def location(tmp_path: Path) -> Path:
    return hive.write_events(tmp_path / "events")


@pytest.fixture
def events(client: Client, location: Path, request: pytest.FixtureRequest) -> str:
    name = f"t_{abs(hash(request.node.nodeid)):x}"
    client.register_table(name, str(location))
    # Published, not refreshed, as a refresh starts processes to read footers.
    client.publish(name, take_inventory(str(location), list_files(str(location)), ["ds"]).files)
    return name


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def rows_of(partitions: Mapping[str, Sequence[int]]) -> list[int]:
    return sorted(id_ for ids in partitions.values() for id_ in ids)


def recover(client: Client, table: str) -> None:
    """Begin and abandon another write, since each write first recovers dead ones."""
    with begin(client, table):
        pass


def assert_whole(
    client: Client, table: str, location: Path, expected: Mapping[str, Sequence[int]]
) -> None:
    """Assert that every reader sees each row once, and that nothing else is left."""
    found = {folder: ids for folder, ids in listed_ids(location).items() if ids}
    assert found == {folder: sorted(ids) for folder, ids in expected.items()}
    assert not (location / "_windrow").exists()
    assert not list(client.writes(table, open_only=True))
    status = client.refresh(table, full=True)
    assert (status.changed, status.files_added, status.files_removed) == (False, 0, 0)


@pytest.mark.parametrize(("kind", "step"), a_few(CRASHES, 3))
def test_a_killed_driver_leaves_old_or_new_rows_and_readers_never_see_a_mix(
    writers: Writers, url: str, client: Client, location: Path, events: str, kind: str, step: str
) -> None:
    mode, files, replaces, after = KINDS[kind]
    changed = {path.split("/")[0] for path in [*files, *replaces]} | (
        OLD.keys() if mode == "overwrite" else set()
    )
    dies = ("exchanged", len(changed)) if step == "last exchanged" else (step, 1)

    with (
        looking(lambda: listed_ids(location)) as listed,
        looking(lambda: planned_ids(url, events, location)) as planned,
    ):
        outcome = writers.write(url, events, files, mode=mode, replaces=replaces, dies=dies)
        recover(client, events)

    assert outcome == "killed"
    assert_whole(client, events, location, OLD if step in UNDONE else after)
    for look in listed:
        assert look.keys() >= OLD.keys() & after.keys()
        for folder, ids in look.items():
            assert ids in (None, sorted(OLD.get(folder, [])), sorted(after.get(folder, [])))
    for ids_planned in planned:
        assert ids_planned in (None, rows_of(OLD), rows_of(after))


@pytest.mark.parametrize(
    ("mode", "step"),
    a_few(
        [
            *(("overwrite_partitions", (step, 1)) for step in ("linked", "recorded", "moved in")),
            *(("overwrite_partitions", ("exchanged", nth)) for nth in (1, 2, 3, 4)),
            ("overwrite_partitions", ("published", 1)),
            ("overwrite", ("exchanged", 2)),
            ("append", ("exchanged", 1)),
        ],
        3,
    ),
)
def test_a_killed_driver_leaves_old_or_new_rows_of_values_that_several_folders_have(
    writers: Writers,
    url: str,
    client: Client,
    tmp_path: Path,
    mode: str,
    step: tuple[str, int],
) -> None:
    location, table = tmp_path / "t", f"t_{mode}_{step[0].replace(' ', '_')}_{step[1]}"
    old = {"month=09": [1], "month=9": [2, 3], "month=+9": [4], "month=10": [5], "month=08": [6]}
    for folder, ids in old.items():
        hive.write_file(location / folder / "part-0.parquet", ids)
    client.register_table(table, str(location))
    client.publish(table, take_inventory(str(location), list_files(str(location)), ["month"]).files)
    files = {"month=9/new.parquet": [100], "month=8/new.parquet": [200]}

    with looking(lambda: planned_ids(url, table, location)) as planned:
        assert writers.write(url, table, files, mode=mode, dies=step) == "killed"
        recover(client, table)

    after = {
        "append": {**old, "month=9": [2, 3, 100], "month=08": [6, 200]},
        "overwrite": {"month=9": [100], "month=08": [200]},
        "overwrite_partitions": {"month=9": [100], "month=08": [200], "month=10": [5]},
    }[mode]
    assert_whole(client, table, location, old if step[0] in UNDONE else after)
    for ids_planned in planned:
        assert ids_planned in (None, rows_of(old), rows_of(after))


def test_a_folder_that_appears_during_a_write_is_found_under_its_value(
    writers: Writers, url: str, client: Client, tmp_path: Path
) -> None:
    location = tmp_path / "t"
    hive.write_file(location / "month=10" / "part-0.parquet", [1])
    client.register_table("appearing", str(location))
    client.refresh("appearing")
    with (
        begin(client, "appearing") as append,
        begin(client, "appearing", "overwrite_partitions") as refused,
        begin(client, "appearing", "overwrite_partitions", conflict="overwrite") as overwrite,
    ):
        for write in (append, refused, overwrite):
            stage(write.folder, {f"month=9/{write.write_id}.parquet": [len(write.write_id)]})
        assert writers.write(url, "appearing", {"month=09/other.parquet": [2]}) == "committed"

        append.commit(report_of(1))
        assert listed_ids(location) == {"month=09": [2, 32], "month=10": [1]}
        with pytest.raises(WriteConflictError, match="month=09"):
            refused.commit(report_of(1))
        overwrite.commit(report_of(1))

    assert_whole(client, "appearing", location, {"month=09": [32], "month=10": [1]})


def test_an_interrupted_commit_is_finished_by_the_next_run(
    writers: Writers, url: str, client: Client, location: Path, events: str
) -> None:
    outcome = writers.write(url, events, FILES, open_limit=("recorded", 3))

    assert outcome.startswith("CommitInterruptedError")
    assert "0 of 3 partitions moved in (" in outcome
    assert f"windrow write recover {events}" in outcome
    with pytest.raises(WriteInProgressError, match="has been moving its files"):
        client.publish_delta(events)
    recover(client, events)
    assert_whole(client, events, location, KINDS["append"][3])


@pytest.mark.parametrize("step", ["staged", "linked"])
def test_a_full_disk_changes_nothing(
    writers: Writers, url: str, client: Client, location: Path, events: str, step: str
) -> None:
    # While staging, the file does not fit; while committing, the intent does not.
    with looking(lambda: planned_ids(url, events, location)) as planned:
        if step == "staged":
            outcome = writers.write(url, events, FILES, file_limit=("begun", 500))
        else:
            outcome = writers.write(url, events, FILES, file_limit=(step, 100))

    assert "File too large" in outcome
    assert set(map(tuple, filter(None, planned))) == {tuple(rows_of(OLD))}
    assert_whole(client, events, location, OLD)


def test_a_disk_that_fills_up_at_any_point_leaves_the_old_or_the_new_rows(
    writers: Writers, url: str, client: Client, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", 2**20) as disk:
        location = hive.write_events(disk / "events")
        client.register_table("on_a_small_disk", str(location))
        client.refresh("on_a_small_disk")
        expected: Mapping[str, Sequence[int]] = OLD
        outcomes = []
        for pages in range(12):
            new = {FIRST: [pages], SECOND: [100 + pages], NEW: [200 + pages]}
            files = {f"{folder}/{pages}.parquet": ids for folder, ids in new.items()}
            with nearly_full(disk, pages):
                outcome = writers.write(url, "on_a_small_disk", files, mode="overwrite")
            if outcome.startswith("CommitInterruptedError"):
                recover(client, "on_a_small_disk")
            if outcome == "committed" or outcome.startswith("CommitInterruptedError"):
                expected = new
            else:
                assert "No space left on device" in outcome
            assert_whole(client, "on_a_small_disk", location, expected)
            outcomes.append(outcome)

        assert "make room" in outcomes[0]
        assert outcomes[-1] == "committed"


def test_two_writers_of_one_partition_both_commit_their_rows(
    writers: Writers, url: str, client: Client, location: Path, events: str
) -> None:
    with ThreadPoolExecutor() as threads, forking_writers() as others:
        outcomes = threads.map(
            lambda one: one[0].write(url, events, {f"{SECOND}/{one[1]}.parquet": [one[1]]}),
            [(writers, 1_000), (others, 2_000)],
        )

        assert list(outcomes) == ["committed", "committed"]
    assert_whole(client, events, location, {**OLD, SECOND: [*OLD[SECOND], 1_000, 2_000]})


def test_a_commit_waits_for_another_and_gives_up_with_a_clear_error(
    url: str, client: Client, location: Path, events: str
) -> None:
    holder = begin(client, events)
    holder._admit()

    with begin(client, events, wait_seconds=0.3) as write:
        rows = stage(write.folder, FILES)
        with pytest.raises(CommitBlockedError, match=f"write {holder.write_id} from host"):
            write.commit(report_of(rows))

    holder.undo()
    assert_whole(client, events, location, OLD)


def test_files_added_by_others_during_an_exchange_are_kept(
    client: Client, location: Path, events: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = disks.exchange_names

    def meddled(one: int, name: str, other: int, new: str) -> None:
        # Files are added before the exchange, and after it to both the old and the new folder.
        live = location / SECOND
        hive.write_file(live / "stranger-1.parquet", [901])
        (live / "part-00000.parquet").unlink()
        exchange(one, name, other, new)
        hive.write_file(Path(write.folder) / SECOND / "stranger-2.parquet", [902])
        hive.write_file(live / "stranger-3.parquet", [903])

    monkeypatch.setattr(disks, "exchange_names", meddled)
    with begin(client, events) as write:
        rows = stage(write.folder, {f"{SECOND}/new.parquet": [100]})
        write.commit(report_of(rows))
    monkeypatch.undo()

    client.refresh(events)
    assert_whole(client, events, location, {**OLD, SECOND: [*range(30, 40), 100, 901, 902, 903]})


@pytest.mark.parametrize(
    "dies", [None, ("placing", 2), ("placing", 3), ("placing", 5), ("exchanged", 2)]
)
def test_without_atomic_exchange_a_commit_renames_twice_and_loses_nothing(
    writers: Writers,
    url: str,
    client: Client,
    location: Path,
    events: str,
    dies: tuple[str, int] | None,
) -> None:
    mode, files, _, after = KINDS["overwrite_partitions"]

    writers.write(url, events, files, mode=mode, dies=dies, can_exchange=False)

    recover(client, events)
    assert_whole(client, events, location, after)


def test_a_killed_recovery_is_continued(
    writers: Writers, url: str, client: Client, location: Path, events: str
) -> None:
    other = {f"{FIRST}/other.parquet": [999]}
    assert writers.write(url, events, FILES, dies=("exchanged", 1)) == "killed"

    # Each of these writes finds the first commit unfinished and dies while recovering it.
    for step in ("exchanged", "moved in", "published", "tidied", "noted", "forgotten"):
        assert writers.write(url, events, other, dies=(step, 1)) == "killed"

    recover(client, events)
    assert_whole(client, events, location, KINDS["append"][3])


def test_a_commit_first_finishes_another_whose_driver_died(
    writers: Writers, url: str, client: Client, location: Path, events: str
) -> None:
    with begin(client, events) as write:
        rows = stage(write.folder, {f"{SECOND}/other.parquet": [999]})
        assert writers.write(url, events, FILES, dies=("exchanged", 2)) == "killed"
        write.commit(report_of(rows))

    after = KINDS["append"][3]
    assert_whole(client, events, location, {**after, SECOND: [*after[SECOND], 999]})


def test_a_compaction_whose_files_have_changed_fails_before_anything_moves(
    client: Client, location: Path, events: str
) -> None:
    listing = list_files(str(location))
    with begin(client, events, kind="compaction") as write:
        rows = stage(write.folder, COMPACTED)
        hive.write_file(location / REPLACED[1], [1, 2, 3])
        with pytest.raises(PartitionChangedError, match=f"partition '{SECOND}' of table") as error:
            write.commit(
                report_of(rows), listing.filter(pc.is_in(listing["path"], pa.array(REPLACED)))
            )

    assert error.value.path == REPLACED[1]
    client.refresh(events)
    assert_whole(client, events, location, {**OLD, SECOND: [1, 2, 3, *range(20, 30)]})


def test_an_unreachable_coordinator_delays_the_end_of_a_commit(
    writers: Writers, tmp_path: Path, location: Path
) -> None:
    with coordinator_process(tmp_path / "state", tmp_path) as coordinator:
        with windrow.connect(coordinator.url) as client:
            client.register_table("t", str(location))
            client.publish(
                "t", take_inventory(str(location), list_files(str(location)), ["ds"]).files
            )
        # The coordinator is killed when the first partition has been moved in.
        outcome = writers.write(
            coordinator.url, "t", FILES, kills=("exchanged", coordinator.process.pid)
        )
        assert outcome.startswith("CommitInterruptedError")
        assert "3 of 3 partitions moved in (no answer from the coordinator" in outcome
    with (
        coordinator_process(tmp_path / "state", tmp_path) as coordinator,
        windrow.connect(coordinator.url) as client,
    ):
        assert planned_ids(coordinator.url, "t", location) == rows_of(OLD)
        recover(client, "t")
        assert_whole(client, "t", location, KINDS["append"][3])


def test_a_sleeping_driver_keeps_its_write(client: Client, location: Path, events: str) -> None:
    with begin(client, events, lease_seconds=1) as write:
        # The driver sends nothing for longer than its lease.
        write._lease.end()
        wait_until(lambda: not client.write_record(events, write.write_id).alive)
        (left,) = windrow_tables.commits.recover(client, events)

        assert (left.outcome, left.reason) == ("left", "its driver is running")
        write.commit(report_of(stage(write.folder, FILES)))
    assert_whole(client, events, location, KINDS["append"][3])


def test_a_write_that_another_machine_took_over_ends_with_a_clear_error(
    client: Client, location: Path, events: str
) -> None:
    with begin(client, events, lease_seconds=1) as write:
        rows = stage(write.folder, FILES)
        write._lease.end()
        wait_until(lambda: not client.write_record(events, write.write_id).alive)
        taken = WriteUpdate(
            mode="append", state="staging", host="another", process=1, takes_over=True
        )
        client.put_write(events, write.write_id, taken)

        with pytest.raises(WriteLostError, match="belongs to process 1 on host 'another'"):
            write.commit(report_of(rows))
    client.put_write(events, write.write_id, taken.model_copy(update={"state": "undone"}))
    assert_whole(client, events, location, OLD)


def test_a_commit_unknown_to_the_coordinator_is_finished_with_force(
    writers: Writers, url: str, client: Client, location: Path, events: str
) -> None:
    assert writers.write(url, events, FILES, dies=("exchanged", 1)) == "killed"
    # As if the coordinator had lost its database.
    (record,) = client.writes(events)
    client.put_write(
        events,
        record.write_id,
        WriteUpdate(
            mode="append",
            state="undone",
            host=record.host,
            process=record.process,
        ),
    )
    client.delete_table(events)
    client.register_table(events, str(location))
    client.publish(events, take_inventory(str(location), list_files(str(location)), ["ds"]).files)

    with pytest.raises(UnknownCommitError, match=f"windrow write recover {events} --force"):
        recover(client, events)
    (done,) = windrow_tables.commits.recover(client, events, force=True)

    assert (done.write_id, done.outcome) == (record.write_id, "published")
    assert_whole(client, events, location, KINDS["append"][3])
