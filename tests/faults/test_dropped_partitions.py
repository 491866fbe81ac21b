"""Dropped partitions: exactly those of the filter go, whole or not at all, and late files stay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from tests.support.faults.readers import listed_ids
from tests.support.servers.coordinators import running
from tests.support.tables import hive
from windrow.client import Client
from windrow_calls.errors import ProblemError
from windrow_service.settings import Settings
from windrow_tables.commits.errors import PartitionChangedError, UnfitRemovalError
from windrow_tables.executor.errors import VanishedFileError

FIRST, SECOND, THIRD = hive.DAYS
TABLE = "events"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    state = tmp_path_factory.mktemp("state")
    with running(Settings(state_dir=state, allowed_locations=("/",))) as url:
        yield url


@pytest.fixture
def client(url: str, location: Path) -> Iterator[Client]:
    with windrow.connect(url) as client:
        client.register_table(TABLE, str(location))
        client.refresh(TABLE)
        yield client
        client.delete_table(TABLE)


@pytest.fixture
def location(tmp_path: Path) -> Path:
    return hive.write_events(tmp_path / "events")


def ids_of(client: Client) -> list[int]:
    return sorted(client.scan(TABLE, columns=["id"]).to_table()["id"].to_pylist())


def test_the_partitions_of_the_filter_go_with_their_folders(client: Client, location: Path) -> None:
    before = client.table(TABLE).current_snapshot
    assert before is not None

    removal = client.drop_partitions(TABLE, f"ds < '{THIRD}'")

    assert removal.folders == (f"ds={FIRST}", f"ds={SECOND}")
    assert (removal.files, removal.rows, removal.snapshot_id) == (4, 40, before.snapshot_id + 1)
    assert [path.name for path in location.iterdir() if path.name[0] != "_"] == [f"ds={THIRD}"]
    assert ids_of(client) == list(range(40, 60))
    assert client.refresh(TABLE).snapshot.snapshot_id == removal.snapshot_id
    (record,) = client.writes(TABLE)
    assert (record.kind, record.state) == ("removal", "published")


def test_a_dry_run_and_a_filter_of_no_partition_change_nothing(
    client: Client, location: Path
) -> None:
    before = listed_ids(location)

    removal = client.drop_partitions(TABLE, f"ds = '{FIRST}'", dry_run=True)
    assert (removal.files, removal.rows, removal.snapshot_id) == (2, 20, None)
    assert client.drop_partitions(TABLE, "ds < '1999-01-01'").files == 0

    assert listed_ids(location) == before
    assert not (location / "_windrow").exists()


@pytest.mark.parametrize(
    "filter",
    [
        "id < 5",
        f"ds = '{FIRST}' OR id < 25",
        "id < 5 AND ds IS NULL",
        # Statistics prove these for all rows of some files, or of all.
        "id < 10",
        "NOT id < 0",
        None,
    ],
)
def test_a_filter_on_other_columns_is_refused_and_names_the_partition_columns(
    client: Client, location: Path, filter: Any
) -> None:
    before = listed_ids(location)
    with pytest.raises(UnfitRemovalError, match="partition columns only: ds"):
        client.drop_partitions(TABLE, filter)
    assert listed_ids(location) == before


def test_a_file_with_several_splits_is_one_file(client: Client, location: Path) -> None:
    ids = pa.table({"id": pa.array(range(50_000)), "name": ["x"] * 50_000})
    pq.write_table(ids, location / f"ds={FIRST}" / "large.parquet", row_group_size=10_000)
    client.refresh(TABLE)
    client.alter_table(TABLE, plan_options={"max_split_size": 50_000})
    assert client.plan(TABLE).summary.split_count > client.plan(TABLE).summary.files_planned

    removal = client.drop_partitions(TABLE, f"ds = '{FIRST}'")

    assert (removal.files, removal.rows) == (3, 50_020)


def test_files_that_others_add_to_a_dropped_partition_stay(client: Client, location: Path) -> None:
    hive.write_file(location / f"ds={FIRST}" / "late.parquet", [1_000])

    removal = client.drop_partitions(TABLE, f"ds = '{FIRST}'")

    assert removal.files == 2
    assert sorted(path.name for path in (location / f"ds={FIRST}").iterdir()) == ["late.parquet"]
    client.refresh(TABLE)
    assert ids_of(client) == [*range(20, 60), 1_000]


def test_what_others_have_hidden_in_a_dropped_partition_stays(
    client: Client, location: Path
) -> None:
    foreign = {}
    for name in ("_SUCCESS", ".notes", "late.parquet._COPYING_", "_backup/part.parquet"):
        path = location / f"ds={FIRST}" / name
        foreign[path] = hive.write_file(path, [1_000]).read_bytes()
    checksum = location / f"ds={FIRST}" / ".part-00000.parquet.crc"
    checksum.write_bytes(b"of Hadoop")

    removal = client.drop_partitions(TABLE, f"ds <= '{SECOND}'")

    assert removal.files == 4
    assert {path: path.read_bytes() for path in foreign} == foreign
    assert len(list((location / f"ds={FIRST}").iterdir())) == len(foreign)
    assert not (location / f"ds={SECOND}").exists()
    assert client.refresh(TABLE).changed is False
    assert ids_of(client) == list(range(40, 60))


def test_nothing_goes_if_a_file_has_been_rewritten(client: Client, location: Path) -> None:
    hive.write_file(location / f"ds={SECOND}" / "part-00000.parquet", range(500, 777))
    before = listed_ids(location)

    with pytest.raises(PartitionChangedError, match="was rewritten"):
        client.drop_partitions(TABLE, f"ds <= '{SECOND}'")

    assert listed_ids(location) == before


def test_the_last_partition_may_go_and_rows_may_come_back(client: Client, location: Path) -> None:
    client.drop_partitions(TABLE, "ds IS NOT NULL")
    assert ids_of(client) == []

    hive.write_file(location / f"ds={FIRST}" / "new.parquet", [7])
    client.refresh(TABLE)
    assert ids_of(client) == [7]


def test_an_older_scan_fails_by_the_name_of_a_file_that_went(client: Client) -> None:
    scan = client.scan(TABLE)
    client.drop_partitions(TABLE, f"ds = '{FIRST}'")
    with pytest.raises(VanishedFileError, match=f"ds={FIRST}"):
        scan.to_table()


def test_tables_without_partitions_and_unknown_columns_are_refused(
    client: Client, tmp_path: Path
) -> None:
    hive.write_file(tmp_path / "flat" / "one.parquet", range(5))
    client.register_table("flat", str(tmp_path / "flat"))
    client.refresh("flat")
    try:
        with pytest.raises(UnfitRemovalError, match="it has no partition columns"):
            client.drop_partitions("flat", "id < 3")
    finally:
        client.delete_table("flat")
    with pytest.raises(ProblemError, match="day"):
        client.drop_partitions(TABLE, "day < '2026-01-01'")
