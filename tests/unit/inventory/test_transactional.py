"""The files of transactional tables that are read, and those that fail a refresh by name."""

from __future__ import annotations

import shutil
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.tables.acid_reading import groups_of, inventory_of, rows_of
from tests.support.tables.acid_tables import AcidTable, Row, orc_bytes, written
from tests.unit.inventory.files import as_previous, take_inline
from windrow_core.files.acid.choosing import AcidFolderError
from windrow_core.files.errors import UnreadableFootersError
from windrow_core.files.formats import ORC
from windrow_service.inventory.listing.acid_files import Transactional
from windrow_tables.executor import acid
from windrow_tables.executor.errors import AcidFileError, StaleFileError, UnreadableFileError

PUBLISHED = Path(__file__).parents[2] / "fixtures/apache-impala"
INSERT, DELETE = "delta_0000001_0000001_0000", "delete_delta_0000002_0000002_0000"


@pytest.fixture
def table(tmp_path: Path) -> AcidTable:
    """Three rows, of which the first is deleted."""
    table = AcidTable(tmp_path / "t")
    table.insert(table.begin(), 0, [("", 0, 3)])
    table.delete(table.begin(), 0, table.rows[:1])
    return table


def ids_of(table: AcidTable, **more: Any) -> list[int]:
    found = inventory_of(table.location, **more)
    return sorted(row["id"] for row in rows_of(table.location, found))


def test_an_inventory_names_delete_files_and_counts_them_as_work(table: AcidTable) -> None:
    found = inventory_of(table.location)

    path = table.location / DELETE / "bucket_00000"
    assert found.data_schema.names == ["id", "name"]
    assert found.delete_files is not None
    (file,) = found.delete_files.to_pylist()
    assert file == {
        "path": f"{DELETE}/bucket_00000",
        "size_bytes": path.stat().st_size,
        "mtime_ns": path.stat().st_mtime_ns,
        "root": "",
        "bucket": 0,
    }
    (row,) = found.files.select(["row_count", "delete_count", "delete_bytes"]).to_pylist()
    assert row == {"row_count": 3, "delete_count": 1, "delete_bytes": file["size_bytes"]}
    stats = found.files["stats"].to_pylist()[0]
    assert stats["id"] == {"min": 1, "max": 3, "null_count": 0}


def test_footers_of_files_that_stay_are_not_read_again(table: AcidTable) -> None:
    first = inventory_of(table.location)
    table.delete(table.begin(), 0, table.rows[1:2])

    second = inventory_of(table.location, previous=as_previous(first))

    assert second.footers_read == 0
    assert second.files["delete_count"].to_pylist() == [2]
    assert [row["id"] for row in rows_of(table.location, second)] == [3]


def test_a_group_carries_each_of_its_delete_files_once(tmp_path: Path) -> None:
    table = AcidTable(tmp_path / "t", ["ds=1/", "ds=2/"], buckets=2)
    for _ in range(3):
        places = [(partition, bucket, 2) for partition in table.partitions for bucket in (0, 1)]
        table.insert(table.begin(), 0, places)
    table.delete(table.begin(), 0, [row for row in table.rows if row.partition == "ds=1/"][:8])

    (group,) = groups_of(inventory_of(table.location), ["id"])["delete_files"].to_pylist()

    folder = "ds=1/delete_delta_0000004_0000004_0000"
    assert [file["path"] for file in group] == [f"{folder}/bucket_0000{n}" for n in (0, 1)]


def test_deleted_rows_beyond_the_memory_limit_are_found_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = AcidTable(tmp_path / "t")
    for _ in range(6):
        table.insert(table.begin(), 0, [("", 0, 20)])
    for at in range(4):
        table.delete(table.begin(), 0, table.rows[at::5])
    monkeypatch.setattr(acid, "_MAX_DELETED_IN_MEMORY", 16)

    assert ids_of(table) == table.ids(table.now())


def test_a_streaming_delta_is_read_only_if_it_is_closed(tmp_path: Path) -> None:
    table = AcidTable(tmp_path / "t")
    row = table.new_row("", 0, 2, 0, 0)
    path = table.location / "delta_0000001_0000003/bucket_00000"
    content = written([(0, row, 2)])
    table.put("delta_0000001_0000003/bucket_00000", content)
    side = path.with_name("bucket_00000_flush_length")
    side.write_bytes(struct.pack(">qq", 5, len(content)))
    assert ids_of(table) == [1]

    # Nothing is committed yet; part of the last number was written.
    side.write_bytes(struct.pack(">q", 0) + b"\0\0")
    assert not len(inventory_of(table.location).files)

    for lengths in (struct.pack(">q", 5), b"", b"\0\0\0"):
        side.write_bytes(lengths)
        with pytest.raises(AcidFolderError, match=r"bucket_00000' is still being written by"):
            inventory_of(table.location)


def test_an_empty_base_replaces_all_earlier_rows(table: AcidTable) -> None:
    table.overwrite(table.begin(), "", [])

    assert ids_of(table) == []


def test_a_table_of_original_files_alone_is_read(tmp_path: Path) -> None:
    table = AcidTable(tmp_path / "t")
    table.originals([("", "000000_0", 2), ("", "HIVE_UNION_SUBDIR_1/000001_0", 1)])

    assert ids_of(table) == [1, 2, 3]


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("delete_delta_0000002_0000002_0000/bucket_1x", b"x", r"bucket_1x' is not named as Hive"),
        ("delta_0000003_0000003_0000/part-0.orc", b"x", r"part-0.orc' is not named as Hive"),
        ("delta_0000003_0000003_0000/bucket_4096", b"x", r"with buckets of 0 to 4095"),
        ("base_0000001/_metadata_acid", b"{", r"_metadata_acid' does not say how"),
    ],
)
def test_files_that_hive_did_not_write_fail_the_refresh(
    table: AcidTable, path: str, content: bytes, message: str
) -> None:
    table.put(path, content)

    with pytest.raises(AcidFolderError, match=message):
        inventory_of(table.location)


@pytest.mark.parametrize(
    "name",
    [
        "delta_9999999999999999999_9999999999999999999",
        "delta_0000009_0000008",
        "delta_0000009_0000009_4096",
        "base_9999999999999999999",
        "base_-9999999999999999999",
        "base_0000009_v9999999999999999999",
    ],
)
def test_folders_with_numbers_that_hive_cannot_give_fail_the_refresh(
    table: AcidTable, name: str
) -> None:
    (table.location / name).mkdir()

    for ids in (None, table.now().text):
        with pytest.raises(AcidFolderError, match=f"'{name}' is named with numbers that Hive"):
            inventory_of(table.location, ids=ids)


@pytest.mark.parametrize("content", [b"[" * 60_000, b"\xff\xfe", b"{}", b"7"])
def test_unusable_metadata_of_a_folder_fails_the_refresh(table: AcidTable, content: bytes) -> None:
    table.put("base_0000009/_metadata_acid", content)

    with pytest.raises(AcidFolderError, match="does not say how its folder was made"):
        inventory_of(table.location)


def test_deletes_without_rows_to_delete_fail_the_refresh(table: AcidTable) -> None:
    (table.location / INSERT / "bucket_00000").unlink()
    (table.location / INSERT / "_orc_acid_version").unlink()
    (table.location / INSERT).rmdir()

    with pytest.raises(AcidFolderError, match=rf"'{DELETE}' deletes rows, and its partition has"):
        inventory_of(table.location)


def test_rows_with_names_are_refused_in_an_insert_only_table(table: AcidTable) -> None:
    insert_only = Transactional(names_rows=False, ids=None)
    for path in table.location.glob("delete_*/*"):
        path.unlink()
        path.parent.rmdir()

    with pytest.raises(AcidFolderError, match=rf"'{INSERT}/bucket_00000' holds rows that can be"):
        take_inline(str(table.location), file_format=ORC, folders=insert_only)


def test_a_truncated_delta_fails_the_refresh(table: AcidTable) -> None:
    path = table.location / INSERT / "bucket_00000"
    path.write_bytes(path.read_bytes()[:-20])

    with pytest.raises(UnreadableFootersError, match=f"{INSERT}/bucket_00000"):
        inventory_of(table.location)


def bad_delete_files(table: AcidTable) -> dict[str, tuple[bytes, type[Exception], str]]:
    row, other = table.rows[0], table.new_row("", 1, 1, 0, 0)
    good = (table.location / DELETE / "bucket_00000").read_bytes()
    nulls = pa.table({"operation": pa.array([2], pa.int32())})
    return {
        "truncated": (good[:-20], UnreadableFileError, "cannot be read as ORC"),
        "text": (b"no orc", UnreadableFileError, "cannot be read as ORC"),
        "plain rows": (orc_bytes(pa.table({"id": [1]})), AcidFileError, "does not name rows"),
        "one column": (orc_bytes(nulls), AcidFileError, "does not name rows"),
        "inserts": (written([(0, row, 2)]), AcidFileError, "rows that are not deletes"),
        "another bucket": (written([(2, other, 2)]), AcidFileError, "rows of buckets other"),
    }


def test_delete_files_of_another_shape_fail_the_read_by_name(table: AcidTable) -> None:
    path = table.location / DELETE / "bucket_00000"
    for what, (content, error, message) in bad_delete_files(table).items():
        path.write_bytes(content)
        found = inventory_of(table.location)
        with pytest.raises(error, match=message) as caught:
            rows_of(table.location, found)
        assert str(path) in str(caught.value), what


def test_updates_among_rows_fail_the_read_by_name(table: AcidTable) -> None:
    table.put(f"{INSERT}/bucket_00000", written([(1, table.rows[0], 1)]))

    with pytest.raises(AcidFileError, match="wrote before release 3: run a major compaction"):
        ids_of(table)


def test_files_that_changed_since_the_plan_fail_the_read_by_name(table: AcidTable) -> None:
    found = inventory_of(table.location)
    for folder in (DELETE, INSERT):
        path = table.location / folder / "bucket_00000"
        before = path.read_bytes()
        path.write_bytes(before + b"x")
        with pytest.raises(StaleFileError, match=f"{folder}/bucket_00000' has changed"):
            rows_of(table.location, found)
        path.unlink()
        with pytest.raises(StaleFileError, match=f"{folder}/bucket_00000' has vanished"):
            rows_of(table.location, found)
        path.write_bytes(before)
        found = inventory_of(table.location)


def test_only_requested_columns_are_decoded_and_delete_files_are_counted(table: AcidTable) -> None:
    counts: Counter[str] = Counter()
    found = inventory_of(table.location)

    rows = rows_of(table.location, found, columns=["name"], counts=counts)

    assert rows == [{"name": "r1"}, {"name": "r2"}]
    assert (counts["files"], counts["rows"], counts["delete_files"]) == (1, 2, 1)


def published(location: Path, path: str, name: str) -> None:
    target = location / path
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(PUBLISHED / name, target)


def test_writes_of_hive_streaming_are_seen_one_by_one(tmp_path: Path) -> None:
    published(tmp_path, "delta_1_2/bucket_00000", "streaming.orc")

    rows = [("a1", "b2"), ("a3", "b4"), ("a5", "b6"), ("a7", "b8")]
    for highest, seen in ((0, 0), (1, 2), (2, 4)):
        ids = f"d.streaming:{highest}:9223372036854775807::"
        found = rows_of(tmp_path, inventory_of(tmp_path, ids), ids)
        assert [(row["a"], row["b"]) for row in found] == rows[:seen]


def test_files_of_hives_compactions_by_query_are_read(tmp_path: Path) -> None:
    published(
        tmp_path, "base_0000003_v0000009/bucket_00000", "full_acid_schema_but_no_acid_version.orc"
    )
    table = AcidTable(tmp_path)
    second = Row("", 0, 2, 0, 0, {})
    path = "delete_delta_0000004_0000004_0000/bucket_00000"
    table.put(path, written([(2, second, 4)]))

    assert [row["i"] for row in rows_of(tmp_path, inventory_of(tmp_path))] == [1, 3]
    ids = "d.t:3:9223372036854775807::"
    assert [row["i"] for row in rows_of(tmp_path, inventory_of(tmp_path, ids), ids)] == [1, 2, 3]


def test_rows_of_hives_original_files_are_named_by_their_position(tmp_path: Path) -> None:
    published(tmp_path, "000000_0", "alltypes_non_acid.orc")
    table = AcidTable(tmp_path)
    # Impala's tests say which rows these are.
    places = {4030: 0, 4039: 9, 6531: 991, 2389: 7209}
    gone = [(2, Row("", 0, 0, 0, place, {}), 1) for place in places]
    table.put("delete_delta_0000001_0000001_0000/bucket_00000", written(gone))

    found = inventory_of(tmp_path)

    left = {row["id"] for row in rows_of(tmp_path, found, columns=["id"])}
    assert len(left) == 7_300 - len(places)
    assert set(range(7_300)) - left == set(places.values())
