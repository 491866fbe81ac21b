"""The effect of a commit on a table: files, folders and the snapshot."""

from __future__ import annotations

import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import windrow
from tests.support.faults.readers import planned_ids
from tests.support.faults.writers import report_of, stage
from tests.support.tables import hive
from windrow.client import Client
from windrow_calls.errors import ProblemError, WriteCancelledError
from windrow_core.models import PublishedSnapshot, WriteMode
from windrow_tables.commits import begin, recover
from windrow_tables.commits.errors import (
    DefinitionChangedError,
    StagedFilesError,
    UnfitLocationError,
    UnpublishedError,
)
from windrow_tables.commits.locations import local_location, owner_of
from windrow_tables.commits.staging_folders import StagingFolder

DAY = "ds=2026-11-02"


def write(
    client: Client, table: str, files: dict[str, list[int]], mode: WriteMode = "append"
) -> PublishedSnapshot:
    with begin(client, table, mode) as begun:
        return begun.commit(report_of(stage(begun.folder, files)))


def assert_known(client: Client, table: str) -> None:
    """Assert that a refresh would publish the same snapshot."""
    status = client.refresh(table, full=True)
    assert (status.changed, status.files_added, status.files_removed) == (False, 0, 0)


def test_a_write_that_is_interrupted_says_what_remains_and_leaves_nothing(
    client: Client, events: str, location: Path
) -> None:
    def interrupt(commits: bool) -> None:
        with begin(client, events) as begun:
            report = report_of(stage(begun.folder, {f"{DAY}/new{commits}.parquet": [100]}))
            if commits:
                begun.commit(report)
            raise KeyboardInterrupt

    for commits, remains in ((False, "nothing of it is in the table"), (True, "snapshot 2 has")):
        with pytest.raises(KeyboardInterrupt, match=remains):
            interrupt(commits)
        assert (location / DAY / f"new{commits}.parquet").exists() is commits
        assert not list(location.glob("_windrow/writes/*"))
    assert {one.state for one in client.writes(events)} == {"undone", "published"}


def test_untouched_files_keep_their_path_size_and_time(
    client: Client, events: str, location: Path, url: str
) -> None:
    before = {path: (location / path).stat() for path in hive.data_files(location)}
    plan = client.plan(events).groups

    write(client, events, {f"{DAY}/new.parquet": [100]})

    for path, status in before.items():
        now = (location / path).stat()
        assert (now.st_ino, now.st_size, now.st_mtime_ns) == (
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
        )
    assert client.plan(events, snapshot_id=1).groups.equals(plan)
    assert planned_ids(url, events, location) == [*range(60), 100]
    assert_known(client, events)


def test_a_snapshot_describes_new_files_as_a_refresh_would(
    client: Client, events: str, location: Path
) -> None:
    write(client, events, {f"{DAY}/new.parquet": [100, 105]})

    assert client.plan(events, filter="id > 102").summary.files_planned == 1
    assert client.plan(events, filter="id > 105").summary.files_planned == 0
    assert_known(client, events)


def test_new_files_are_compared_with_the_tables_types_as_a_refresh_would(
    client: Client, name: str, location: Path
) -> None:
    declared = {"id": "bigint", "name": "string", "part": "double"}
    client.register_table(name, str(location), columns=declared)
    with begin(client, name) as begun:
        for number, type_ in enumerate((pa.int16(), pa.int32(), pa.int64())):
            ids, parts = pa.array([1], type_), pa.array([1.0], pa.float32())
            rows = pa.table({"part": parts, "name": pa.array(["a"]).dictionary_encode(), "id": ids})
            pq.write_table(rows, Path(begun.folder, f"{number}.parquet"))
        begun.commit(report_of(3))

    native = {
        column: [
            split["native"]
            for group in client.plan(name, columns=[column]).groups.to_pylist()
            for split in sorted(group["splits"], key=lambda split: str(split["path"]))
        ]
        for column in declared
    }

    assert native == {"id": [False, False, True], "name": [False] * 3, "part": [False] * 3}
    assert_known(client, name)


def test_staged_files_are_hidden_from_everyone_who_lists_the_table(
    client: Client, events: str, location: Path
) -> None:
    with begin(client, events) as begun:
        stage(begun.folder, {f"{DAY}/new.parquet": [100]})
        assert Path(begun.folder).is_relative_to(location / "_windrow")

        status = client.refresh(events, full=True)
        read = ds.dataset(location, format="parquet", partitioning="hive").to_table()

    assert (status.changed, status.progress.folders_listed) == (False, 4)
    assert sorted(read["id"].to_pylist()) == list(range(60))
    assert sorted(path.name for path in location.iterdir()) == [f"ds={day}" for day in hive.DAYS]


def test_a_table_without_files_or_folder_can_be_written(
    client: Client, name: str, location: Path, url: str
) -> None:
    target = location / "deep" / "table"
    client.register_table(name, str(target))

    files = {"a=1/b=x%2Fy/one.parquet": [1], "a=2/b=__HIVE_DEFAULT_PARTITION__/two.parquet": [2]}
    snapshot = write(client, name, files)

    assert [(c.name, c.type) for c in snapshot.partition_columns] == [("a", "int"), ("b", "string")]
    assert planned_ids(url, name, target) == [1, 2]
    assert client.plan(name, filter="b = 'x/y'").summary.files_planned == 1
    write(client, name, {"a=2/b=__HIVE_DEFAULT_PARTITION__/three.parquet": [3]})
    assert_known(client, name)


def test_a_write_to_a_never_refreshed_table_publishes_all_its_files(
    client: Client, name: str, location: Path, url: str
) -> None:
    hive.write_events(location)
    client.register_table(name, str(location))

    snapshot = write(client, name, {f"{DAY}/new.parquet": [100]})

    assert (snapshot.file_count, snapshot.row_count) == (7, 61)
    assert planned_ids(url, name, location) == [*range(60), 100]
    assert_known(client, name)


def test_new_columns_are_added_to_the_snapshot(client: Client, events: str, location: Path) -> None:
    with begin(client, events) as begun:
        folder = Path(begun.folder) / DAY
        folder.mkdir()
        pq.write_table(pa.table({"id": [1], "more": [1.5]}), folder / "new.parquet")
        snapshot = begun.commit(report_of(1))

    assert [column.name for column in snapshot.columns] == ["id", "name", "more"]
    assert_known(client, events)


def test_incompatible_types_are_refused_before_anything_moves(
    client: Client, events: str, location: Path
) -> None:
    with begin(client, events) as begun:
        folder = Path(begun.folder) / DAY
        folder.mkdir()
        pq.write_table(pa.table({"id": ["text"]}), folder / "new.parquet")
        with pytest.raises(StagedFilesError, match="column 'id'"):
            begun.commit(report_of(1))

    assert len(hive.data_files(location)) == 6
    assert_known(client, events)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (f"{DAY}/part-00000.parquet", "already has a file of this name"),
        ("flat.parquet", r"lie in ds=…/: partition the data the same way"),
        (f"{DAY}/hour=1/deep.parquet", r"lie in ds=…/"),
        ("day=1/other.parquet", r"lie in ds=…/"),
    ],
)
def test_files_that_do_not_fit_the_table_are_refused(
    client: Client, events: str, location: Path, path: str, reason: str
) -> None:
    with pytest.raises(StagedFilesError, match=reason):
        write(client, events, {path: [1]})

    assert len(hive.data_files(location)) == 6
    assert_known(client, events)


def test_an_overwrite_without_rows_empties_the_table_and_keeps_its_columns(
    client: Client, events: str, location: Path
) -> None:
    snapshot = write(client, events, {}, "overwrite")

    assert (snapshot.file_count, snapshot.row_count) == (0, 0)
    assert [column.name for column in snapshot.columns] == ["id", "name"]
    assert list(location.iterdir()) == []


def test_an_append_without_rows_changes_nothing(
    client: Client, events: str, location: Path
) -> None:
    assert write(client, events, {}).file_count == 6
    assert write(client, events, {}, "overwrite_partitions").file_count == 6
    assert_known(client, events)


def test_partitions_keep_their_permissions_and_hidden_files(
    client: Client, events: str, location: Path
) -> None:
    folder = location / DAY
    folder.chmod(0o2750)
    (folder / "_metadata").write_text("kept")
    (folder / ".part-00000.parquet.crc").write_text("goes with its file")
    (folder / "_others" / "below").mkdir(parents=True)

    write(client, events, {f"{DAY}/new.parquet": [1]}, "overwrite_partitions")

    assert stat.S_IMODE(folder.stat().st_mode) == 0o2750
    assert sorted(path.name for path in folder.iterdir()) == ["_metadata", "_others", "new.parquet"]
    assert (folder / "_others" / "below").is_dir()


def test_a_location_may_be_a_symbolic_link_but_a_partition_may_not(
    client: Client, events: str, location: Path, tables_folder: Path, name: str
) -> None:
    link = tables_folder / f"{name}_link"
    link.symlink_to(location)
    client.register_table(f"{name}_l", f"file://{link}")
    client.refresh(f"{name}_l")
    write(client, f"{name}_l", {f"{DAY}/new.parquet": [1]})
    assert (location / DAY / "new.parquet").exists()

    (location / DAY).rename(location / "_elsewhere")
    (location / DAY).symlink_to(location / "_elsewhere")
    with pytest.raises(UnfitLocationError, match="is a symbolic link"):
        write(client, events, {f"{DAY}/more.parquet": [1]})


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ({"location": "gs://bucket/table"}, "write with Spark, then refresh"),
        (
            {"location": "abfss://c@account.dfs.core.windows.net/t"},
            "write with Spark, then refresh",
        ),
        ({"format": "orc"}, "its format is orc"),
    ],
)
def test_a_table_that_cannot_be_written_is_refused_before_any_work(
    client: Client,
    http: httpx.Client,
    name: str,
    location: Path,
    definition: dict[str, str],
    reason: str,
) -> None:
    info = client.register_table(name, str(location))
    changed = info.definition.model_copy(update=definition)

    with pytest.raises(UnfitLocationError, match=reason):
        # Called directly, as the coordinator of these tests accepts no such location.
        local_location(info.model_copy(update={"definition": changed}))
    assert not location.exists()


@pytest.mark.parametrize(
    ("sign", "what"),
    [
        ("_delta_log/0.json", "a Delta table"),
        ("_spark_metadata/0", "a Spark streaming query"),
        ("base_0000001/bucket_00000", "a Hive ACID table"),
    ],
)
def test_nothing_is_written_to_a_table_of_another_format(
    client: Client, events: str, location: Path, sign: str, what: str
) -> None:
    (location / sign).parent.mkdir(parents=True)
    (location / sign).write_text("v1")

    with pytest.raises(UnfitLocationError, match=what):
        begin(client, events)

    assert not (location / "_windrow").exists()


def test_a_definition_change_during_a_write_undoes_it(
    client: Client, events: str, location: Path
) -> None:
    with begin(client, events) as begun:
        rows = stage(begun.folder, {f"{DAY}/new.parquet": [1]})
        client.register_table(events, str(location), sort_columns=["id"])
        with pytest.raises(DefinitionChangedError, match="has changed since the write began"):
            begun.commit(report_of(rows))

    assert len(hive.data_files(location)) == 6
    assert client.writes(events)[0].state == "undone"


def test_files_that_the_coordinator_refuses_are_reported_and_block_no_other_write(
    client: Client, name: str, location: Path
) -> None:
    hive.write_events(location)
    client.register_table(name, str(location), bucket_spec={"columns": ["id"], "count": 2})
    client.refresh(name)

    with pytest.raises(UnpublishedError, match=f"then `windrow table refresh {name}`"):
        write(client, name, {f"{DAY}/part-0_00002.parquet": [1]})

    assert client.writes(name)[0].state == "published"
    assert not (location / "_windrow").exists()
    (location / DAY / "part-0_00002.parquet").unlink()
    assert_known(client, name)


@pytest.mark.parametrize(
    ("type_", "value", "reason"),
    [
        ("timestamp", "2026-11-01 25%3A30%3A00", "'2026-11-01 25:30:00' is not a value of"),
        ("date", "yesterday", "'yesterday' is not a value of partition column 'p', which is date"),
        ("decimal(3,1)", "100.5", "which is decimal"),
    ],
)
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_folder_that_a_refresh_would_not_read_is_refused_before_anything_moves(
    client: Client,
    name: str,
    location: Path,
    type_: str,
    value: str,
    reason: str,
    mode: WriteMode,
) -> None:
    client.register_table(name, str(location), partition_columns={"p": type_})

    with pytest.raises(StagedFilesError, match=reason):
        write(client, name, {f"p={value}/new.parquet": [1]}, mode)

    assert hive.data_files(location) == []
    client.refresh(name)
    write(client, name, {"p=__HIVE_DEFAULT_PARTITION__/new.parquet": [1]}, mode)
    assert_known(client, name)


@pytest.mark.parametrize("type_", ["timestamp", "timestamp_ntz"])
def test_files_with_local_times_are_added_to_folders_with_local_times(
    client: Client, name: str, location: Path, type_: str
) -> None:
    hive.write_file(location / "at=2026-11-01 01%3A30%3A00" / "old.parquet", [1])
    client.register_table(name, str(location), partition_columns={"at": type_})
    client.refresh(name)

    write(client, name, {"at=2026-11-01 01%3A30%3A00.5/new.parquet": [2]})

    assert_known(client, name)
    (column,) = client.plan(name).info.partition_columns
    assert column.type == "timestamp_ntz"
    assert client.plan(name).info.local_times == (["at"] if type_ == "timestamp" else [])


@pytest.mark.parametrize(("first", "second"), [("Z", ""), ("", "Z")])
def test_files_with_local_times_are_not_added_to_folders_with_offsets_nor_the_other_way_round(
    client: Client, name: str, location: Path, first: str, second: str
) -> None:
    hive.write_file(location / f"at=2026-11-01 01%3A30%3A00{first}" / "old.parquet", [1])
    client.register_table(name, str(location), partition_columns={"at": "timestamp"})
    client.refresh(name)

    with pytest.raises(StagedFilesError, match=r"is not a value of partition column 'at'"):
        write(client, name, {f"at=2026-11-01 02%3A30%3A00{second}/new.parquet": [2]})

    write(client, name, {f"at=2026-11-01 02%3A30%3A00{first}/new.parquet": [2]})
    assert_known(client, name)


def test_a_folder_of_an_unknown_write_is_removed_after_a_day_if_this_coordinator_made_it(
    client: Client, events: str, location: Path
) -> None:
    owner = owner_of(client.table(events))
    owners = {"a": owner, "b": owner, "c": owner, "d": b"another", "e": owner}
    for digit, of_folder in owners.items():
        StagingFolder(str(location), digit * 32).make(events, of_folder).release()
    folders = {digit: location / "_windrow" / "writes" / (digit * 32) for digit in owners}
    # As an earlier version made it.
    (folders["e"] / "owner").unlink()
    hive.write_file(folders["c"] / "data" / "ds=2026-11-02" / "deep.parquet", [1])
    young = {folders["a"], folders["c"] / "data" / "ds=2026-11-02" / "deep.parquet"}
    for path in sorted((location / "_windrow").rglob("*"), reverse=True):
        if path not in young:
            os.utime(path, (0, 0))

    outcomes = {one.write_id[0]: (one.outcome, one.reason) for one in recover(client, events)}

    assert {digit: outcome for digit, (outcome, _) in outcomes.items()} == {
        **dict.fromkeys("acde", "left"),
        "b": "tidied",
    }
    assert "changed within the last 24 hours" in outcomes["a"][1]
    assert "changed within the last 24 hours" in outcomes["c"][1]
    assert "no mark of this installation" in outcomes["d"][1]
    assert "no mark of this installation" in outcomes["e"][1]
    assert [digit for digit, folder in folders.items() if folder.exists()] == list("acde")
    forced = recover(client, events, force=True)
    assert [one.outcome for one in forced] == ["tidied"] * 4
    assert not (location / "_windrow").exists()


def test_a_driver_whose_write_was_cancelled_says_by_whom_and_leaves_nothing(
    client: Client, events: str, location: Path, url: str
) -> None:
    before = hive.data_files(location)
    with begin(client, events) as begun:
        staged = report_of(stage(begun.folder, {f"{DAY}/new.parquet": [100]}))
        with windrow.connect(url) as operator:
            cancelled = operator.cancel_write(events, begun.write_id)
        with pytest.raises(WriteCancelledError, match="was cancelled by 'anonymous'; nothing was"):
            begun.commit(staged)

    assert (cancelled.state, cancelled.cancelled_by) == ("undone", "anonymous")
    assert hive.data_files(location) == before
    assert not any((location / "_windrow").glob("*"))
    assert_known(client, events)
    write(client, events, {f"{DAY}/new.parquet": [101]})
    assert planned_ids(url, events, location) == [*range(60), 101]


def test_renewing_a_lease_reveals_that_the_write_was_cancelled(client: Client, events: str) -> None:
    with begin(client, events, lease_seconds=1) as begun:
        client.cancel_write(events, begun.write_id)

        def wait() -> None:
            for _ in range(600):
                begun.check()
                time.sleep(0.05)

        with pytest.raises(WriteCancelledError):
            wait()


def test_staged_files_of_a_dead_driver_are_removed_after_its_write_was_cancelled(
    client: Client, events: str, location: Path
) -> None:
    begun = begin(client, events)
    stage(begun.folder, {f"{DAY}/new.parquet": [100]})
    client.cancel_write(events, begun.write_id)
    begun._lease.end()
    begun._lock.release()

    (done,) = recover(client, events)

    assert (done.write_id, done.outcome) == (begun.write_id, "tidied")
    assert not any((location / "_windrow").glob("*"))
    assert_known(client, events)


def test_a_write_that_moves_files_in_cannot_be_cancelled(
    client: Client, events: str, location: Path, url: str
) -> None:
    refused: list[ProblemError] = []

    with windrow.connect(url) as operator, begin(client, events) as begun:

        def moved(done: int, total: int) -> None:
            try:
                operator.cancel_write(events, begun.write_id)
            except ProblemError as error:
                refused.append(error)

        staged = report_of(stage(begun.folder, {f"{DAY}/new.parquet": [100]}))
        begun.commit(staged, on_moved=moved)

    assert refused
    assert {error.problem.type for error in refused} == {
        "urn:windrow:problem:write-not-cancellable"
    }
    assert planned_ids(url, events, location) == [*range(60), 100]
    assert_known(client, events)


@pytest.mark.slow
def test_either_the_commit_or_its_cancellation_succeeds_and_no_row_is_lost_or_doubled(
    client: Client, events: str, location: Path, url: str
) -> None:
    expected = set(range(60))
    with windrow.connect(url) as operator:

        def refusal(write_id: str, after_s: float) -> str | None:
            time.sleep(after_s)
            try:
                operator.cancel_write(events, write_id)
            except ProblemError as error:
                return error.problem.type
            return None

        with ThreadPoolExecutor(1) as thread:
            for number in range(100, 116):
                with begin(client, events) as begun:
                    staged = report_of(stage(begun.folder, {f"{DAY}/{number}.parquet": [number]}))
                    # Cancel the write during its commit, 4 ms later each time.
                    asked = thread.submit(refusal, begun.write_id, (number - 100) * 0.004)
                    try:
                        begun.commit(staged)
                        expected.add(number)
                    except WriteCancelledError:
                        pass
                too_late = "urn:windrow:problem:write-not-cancellable"
                assert asked.result() == (too_late if number in expected else None)
                assert planned_ids(url, events, location) == sorted(expected)
    assert_known(client, events)
