"""Writes to tables on HDFS and S3: old rows or new at each step, whoever dies, and nothing left over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import windrow
from tests.support.faults.object_proxy import ObjectProxy, object_proxy
from tests.support.faults.readers import looking, planned_stored_ids, stored_ids
from tests.support.faults.stored_tables import (
    ADDED,
    FILES,
    KINDS,
    OLD,
    SECOND,
    assert_whole,
    new_table,
    recover_once_dead,
    rows_of,
)
from tests.support.faults.writers import Writers, forking_writers, report_of, stage
from tests.support.laws import is_nightly
from tests.support.servers.coordinators import running
from tests.support.servers.hdfs import Hdfs, hdfs_cluster
from tests.support.servers.s3 import S3, s3_server
from windrow.client import Client
from windrow_calls.errors import WriteInProgressError
from windrow_core.files import changes
from windrow_core.files.objects.requests import Part
from windrow_core.files.objects.troubles import ChangedObjectError
from windrow_core.files.remote import contents_of
from windrow_core.files.roots.proofs import ANYTHING, Form, Mark, NotOursError, Record
from windrow_core.files.roots.stores import StoreRoot
from windrow_service.settings import Settings
from windrow_tables.commits import begin, recover, table_write
from windrow_tables.commits.errors import StagedFilesError, UnfitLocationError, WriteConflictError
from windrow_tables.commits.remote_staging import RemoteStagingFolder

BUCKET = "stored-commits"
UNDONE = ("staged", "admitted", "linked")
STEPS = (
    *UNDONE,
    "written down",
    "renamed",
    "all renamed",
    "published",
    "thinned out",
    "cleared",
    "ended",
    "without intent",
    "marked only",
)
DEATHS = [
    (kind, step)
    for kind in KINDS
    for step in STEPS
    if not (kind == "append" and step == "thinned out")
]
FEW_DEATHS = [
    ("append", "admitted"),
    ("append", "renamed"),
    ("compaction", "written down"),
    ("overwrite", "published"),
    ("overwrite", "thinned out"),
    ("overwrite_partitions", "without intent"),
]

# More than a commit here sends.
MOST_REQUESTS = 56
REQUESTS = [
    (kind, step, nth)
    for kind in KINDS
    for step in ("requested", "answered")
    for nth in range(1, MOST_REQUESTS + 1)
]
FEW_REQUESTS = [("overwrite", "requested", 25)]


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with hdfs_cluster(tmp_path_factory.mktemp("hdfs")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with s3_server() as server:
        server.client.create_bucket(Bucket=BUCKET)
        yield server


# A commit on S3 makes the same requests of a store; tests/spark/test_hdfs.py writes to HDFS by day.
@pytest.fixture(scope="module", params=[pytest.param("hdfs", marks=pytest.mark.nightly), "s3"])
def root(request: pytest.FixtureRequest) -> str:
    """URI of a store."""
    store = request.getfixturevalue(request.param)
    return f"s3://{BUCKET}" if request.param == "s3" else str(store.uri)


@pytest.fixture(scope="module")
def url(root: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    state = tmp_path_factory.mktemp("state")
    with running(Settings(state_dir=state, allowed_locations=(root,))) as url:
        yield url


@pytest.fixture(scope="module")
def writers(root: str) -> Iterator[Writers]:
    with forking_writers() as writers:
        yield writers


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with windrow.connect(url) as client:
        yield client


@pytest.fixture
def location(root: str, tmp_path: Path) -> str:
    return f"{root}/tables/{tmp_path.name.replace('[', '-').replace(']', '')}"


@pytest.fixture
def events(client: Client, location: str, tmp_path: Path) -> str:
    name = tmp_path.name.replace("-", "_")
    new_table(client, name, location)
    return name


@pytest.mark.parametrize(("kind", "step"), DEATHS if is_nightly() else FEW_DEATHS)
def test_a_killed_driver_leaves_old_or_new_rows_and_plans_never_have_a_mix(
    writers: Writers, url: str, client: Client, location: str, events: str, kind: str, step: str
) -> None:
    mode, files, replaces, after = KINDS[kind]

    with looking(lambda: planned_stored_ids(client, events, location)) as looks:
        outcome = writers.write(
            url, events, files, mode=mode, replaces=replaces, dies=(step, 1), lease_seconds=1
        )
        recover_once_dead(client, events)

    assert outcome == "killed"
    assert_whole(client, events, location, OLD if step in UNDONE else after)
    for ids in looks:
        assert ids in (None, rows_of(OLD), rows_of(after))


@pytest.mark.parametrize("root", ["s3"], indirect=True)
@pytest.mark.parametrize(("kind", "step", "nth"), REQUESTS if is_nightly() else FEW_REQUESTS)
def test_a_driver_killed_at_any_request_leaves_old_or_new_rows(
    writers: Writers,
    url: str,
    client: Client,
    location: str,
    events: str,
    kind: str,
    step: str,
    nth: int,
) -> None:
    mode, files, replaces, after = KINDS[kind]

    with looking(lambda: planned_stored_ids(client, events, location)) as looks:
        writers.write(
            url, events, files, mode=mode, replaces=replaces, dies=(step, nth), lease_seconds=1
        )
        recover_once_dead(client, events)

    rows = planned_stored_ids(client, events, location)
    assert_whole(client, events, location, OLD if rows == rows_of(OLD) else after)
    for ids in looks:
        assert ids in (None, rows_of(OLD), rows_of(after))


def test_two_writers_of_one_partition_both_commit_their_rows(
    writers: Writers, url: str, client: Client, location: str, events: str
) -> None:
    with ThreadPoolExecutor() as threads, forking_writers() as others:
        outcomes = threads.map(
            lambda one: one[0].write(url, events, {f"{SECOND}/x.parquet": [one[1]]}),
            [(writers, 1_000), (others, 2_000)],
        )

        assert list(outcomes) == ["committed", "committed"]
    assert_whole(client, events, location, {**OLD, SECOND: [*OLD[SECOND], 1_000, 2_000]})


def test_an_overwrite_keeps_what_others_published_after_it_began(
    client: Client, location: str, events: str
) -> None:
    with begin(client, events, "overwrite") as overwrite, begin(client, events) as append:
        append.commit(report_of(stage(append.folder, FILES)))
        with pytest.raises(WriteConflictError, match="others published"):
            overwrite.commit(report_of(stage(overwrite.folder, FILES)))

    assert_whole(client, events, location, KINDS["append"][3])


def test_a_living_driver_keeps_its_commit_and_others_wait(
    client: Client, location: str, events: str
) -> None:
    with begin(client, events) as write:
        write._admit()

        (left,) = recover(client, events)
        with pytest.raises(WriteInProgressError):
            client.publish_delta(events)

        assert (left.outcome, left.reason[:9]) == ("left", "its lease")
    assert_whole(client, events, location, OLD)


def test_files_that_others_put_into_a_partition_meanwhile_are_kept(
    client: Client, location: str, events: str
) -> None:
    with begin(client, events, "overwrite_partitions") as write:
        rows = stage(write.folder, FILES)
        preparation = write._prepare

        def prepare_and_add(*args: object) -> object:
            outcome = preparation(*args)  # type: ignore[arg-type]
            stage(location, {f"{SECOND}/foreign.parquet": [9_000]})
            return outcome

        write._prepare = prepare_and_add  # type: ignore[method-assign,assignment]
        write.commit(report_of(rows))
    client.refresh(events)

    assert_whole(client, events, location, {**OLD, **ADDED, SECOND: [*ADDED[SECOND], 9_000]})


def test_values_spelled_in_several_ways_are_one_partition(
    client: Client, location: str, tmp_path: Path
) -> None:
    name = tmp_path.name.replace("-", "_")
    stage(
        location, {"month=09/a.parquet": [1], "month=9/a.parquet": [2], "month=10/a.parquet": [3]}
    )
    client.register_table(name, location)
    client.refresh(name)

    with begin(client, name, "overwrite_partitions") as write:
        write.commit(report_of(stage(write.folder, {"month=9/a.parquet": [4]})))

    assert_whole(client, name, location, {"month=9": [4], "month=10": [3]})


@pytest.mark.nightly
@pytest.mark.parametrize("root", ["hdfs"], indirect=True)
@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ("safe mode", "SafeModeException.*wait until the NameNode has left safe mode"),
        ("quota", "NSQuotaExceededException.*raise the quota"),
    ],
)
def test_what_the_namenode_refuses_changes_nothing_and_is_named(
    hdfs: Hdfs,
    client: Client,
    location: str,
    events: str,
    trouble: str,
    reason: str,
) -> None:
    path = hdfs.path(location.removeprefix(hdfs.uri))
    actions = hdfs.jvm.org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction
    try:
        if trouble == "safe mode":
            hdfs.files.setSafeMode(actions.SAFEMODE_ENTER)
        else:
            hdfs.files.setQuota(path, 7, 2**40)
        with pytest.raises(UnfitLocationError, match=reason), begin(client, events) as write:
            write.commit(report_of(stage(write.folder, FILES)))
    finally:
        hdfs.files.setSafeMode(actions.SAFEMODE_LEAVE)
        hdfs.files.setQuota(path, 2**40, 2**40)

    assert_whole(client, events, location, OLD)


@pytest.mark.nightly
@pytest.mark.parametrize("root", ["hdfs"], indirect=True)
def test_a_user_who_may_not_write_is_named(
    hdfs: Hdfs, location: str, events: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "stranger")
    # A process has one client per address, and this one has another user.
    elsewhere = location.replace("localhost", "127.0.0.1")
    staging = RemoteStagingFolder(elsewhere, "0" * 32)

    with pytest.raises(UnfitLocationError, match=r"Permission denied: user=stranger.*the right"):
        staging.make(events, b"owner")


def test_changes_of_files_can_be_repeated(location: str) -> None:
    folder = f"{location}/changes"
    root = StoreRoot(folder)
    stage(folder, {"a.parquet": [1], "b.parquet": [2]})
    moves = [(f"{name}.parquet", f"in/{name} 50%.parquet") for name in "ab"]

    for _ in range(2):
        assert list(root.bring(moves, ANYTHING)) == [None, None]
    root.write_file("_once", b"1")
    with pytest.raises(FileExistsError):
        root.write_file("_once", b"2")
    if folder.startswith("s3:"):
        # It may be the one that an earlier try has made, whose answer was lost.
        root.write_file("_once", b"1")
        root.remove_files((source for source, _ in moves), ANYTHING)

    assert stored_ids(folder) == {"in": [1, 2]}
    for _ in range(2):
        root.remove_files(["_once"], ANYTHING)
        root.remove_empty("in")
    assert stored_ids(folder) == {"in": [1, 2]}
    root.remove_files([moves[0][1]], ANYTHING)
    # A late move, of a file that has been moved and removed since, brings nothing back.
    assert list(root.bring(moves, ANYTHING)) == [None, None]
    assert stored_ids(folder) == {"in": [2]}
    StoreRoot(location).remove_tree("changes", ANYTHING)
    assert contents_of(folder) == ([], {})


def test_files_that_no_proof_shows_to_be_ours_stay_on_a_store(location: str) -> None:
    folder = f"{location}/proofs"
    root = StoreRoot(folder)
    stage(folder, {"a/old.parquet": [1], "a/other.parquet": [2], "b/young.parquet": [3]})
    root.write_file("_mark", b"host\nours")
    _, states = contents_of(f"{folder}/a")
    record = Record(
        {
            "a/old.parquet": states["old.parquet"],
            "a/other.parquet": states["other.parquet"]._replace(size_bytes=1),
            "a/gone.parquet": states["old.parquet"],
        }
    )

    left = root.remove_files(["a/old.parquet", "a/other.parquet", "a/gone.parquet"], record)
    assert [one.why for one in left] == ["it has changed since it was recorded"]
    for proofs, why in (
        ((), "no proof"),
        ((Form(re.compile("b")), Form(re.compile("b"), 3600)), "changed within the last 1 hours"),
        ((Form(re.compile("c")),), "a name that Windrow gives"),
        ((Mark("_mark", b"theirs"),), "no mark of this installation"),
        ((Mark("_none", b"ours"),), "no mark of this installation"),
    ):
        with pytest.raises(NotOursError, match=why):
            root.remove_tree("b", *proofs)
    assert stored_ids(folder) == {"a": [2], "b": [3]}
    root.remove_tree("b", Mark("_mark", b"ours"))
    assert stored_ids(folder) == {"a": [2]}


def test_files_are_copied_a_piece_at_a_time_and_only_as_long_as_they_stay_the_same(
    location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    before_large: list[int] = []
    whole = changes.read_part

    def read_part(*args: Any, **kwargs: Any) -> Part:
        part = whole(*args, **kwargs)
        sizes.append(len(part.content))
        if tmp_path.joinpath("late").exists():
            StoreRoot(location).remove_files(["copied/a"], ANYTHING)
            StoreRoot(location).upload(str(tmp_path / "late"), "copied/a", ANYTHING)
        return part

    @contextmanager
    def large() -> Iterator[None]:
        before_large.append(len(sizes))
        yield

    monkeypatch.setattr(changes, "FIRST_BYTES", 600)
    monkeypatch.setattr(changes, "PIECE_BYTES", 1_000)
    monkeypatch.setattr(changes, "read_part", read_part)
    content, uri = bytes(range(256)) * 10, f"{location}/copied/a"
    (tmp_path / "a").write_bytes(content)
    StoreRoot(location).upload(str(tmp_path / "a"), "copied/a", ANYTHING)

    status = changes.download(uri, str(tmp_path / "copy"), large())

    assert (tmp_path / "copy").read_bytes() == content
    assert (status.size_bytes, sizes, before_large) == (2_560, [600, 1_000, 960], [1])
    (tmp_path / "late").write_bytes(content[::-1])
    with pytest.raises(ChangedObjectError, match="changed"):
        changes.download(uri, str(tmp_path / "other"), large())


@pytest.fixture
def proxy(s3: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectProxy]:
    with object_proxy(s3.environment["AWS_ENDPOINT_URL"]) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        yield proxy


@pytest.mark.parametrize("root", ["s3"], indirect=True)
def test_a_commit_outlasts_a_store_that_refuses_some_changes(
    proxy: ObjectProxy, client: Client, location: str, events: str
) -> None:
    for key in ("begun", "intent.json", ".parquet", ""):
        proxy.spoil(key, "status", status=503, code="SlowDown", times=2, methods=("PUT", "POST"))

    with begin(client, events, "overwrite") as write:
        write.commit(report_of(stage(write.folder, FILES)))

    assert proxy.counts().statuses[503] == 8
    assert_whole(client, events, location, ADDED)


@pytest.mark.parametrize("root", ["s3"], indirect=True)
def test_a_missing_right_to_change_objects_is_named(
    proxy: ObjectProxy, client: Client, location: str, events: str
) -> None:
    proxy.spoil("_windrow", "status", status=403, code="AccessDenied", methods=("PUT",))

    with pytest.raises(UnfitLocationError, match=r"may not be changed: .* write and delete it"):
        begin(client, events)

    assert_whole(client, events, location, OLD)


@pytest.mark.parametrize("root", ["s3"], indirect=True)
def test_files_that_a_store_cannot_copy_change_nothing(
    client: Client, location: str, events: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_write, "MAX_COPIED_BYTES", 100)

    with (
        pytest.raises(StagedFilesError, match="copies files up to 100 B: write smaller files"),
        begin(client, events) as write,
    ):
        write.commit(report_of(stage(write.folder, FILES)))

    assert_whole(client, events, location, OLD)


@pytest.mark.parametrize("root", ["s3"], indirect=True)
def test_empty_objects_that_hadoop_leaves_are_no_staging_folders(
    s3: S3, client: Client, location: str, events: str
) -> None:
    key = location.partition(f"{BUCKET}/")[2]
    marker = f"{key}/_windrow/writes/{'0' * 32}/data/_temporary/0/"
    s3.client.put_object(Bucket=BUCKET, Key=marker, Body=b"")

    assert recover(client, events) == []
