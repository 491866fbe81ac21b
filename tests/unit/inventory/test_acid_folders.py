"""Folder names of Hive's transactional tables, valid write ids, and the folders that are read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from windrow_core.files.acid.choosing import AcidFolderError, Chosen, choose
from windrow_core.files.acid.names import (
    BEFORE_ALL,
    Folder,
    bucket_property,
    buckets_in,
    file_folders,
    folder_of,
    original_buckets,
    row_buckets,
)
from windrow_core.files.acid.write_ids import WriteIds, WriteIdsError

NONE_OPEN = 2**63 - 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("base_0000005", ("base", 5, 5, -1, 0)),
        ("base_0000005_v0000021", ("base", 5, 5, -1, 21)),
        ("base_-9223372036854775808", ("base", BEFORE_ALL, BEFORE_ALL, -1, 0)),
        ("delta_0000001_0000001", ("delta", 1, 1, -1, 0)),
        ("delta_0000001_0000001_0003", ("delta", 1, 1, 3, 0)),
        ("delta_0000001_0000009_v0000002", ("delta", 1, 9, -1, 2)),
        ("delete_delta_0000002_0000002_0000", ("delete_delta", 2, 2, 0, 0)),
        ("delta_12345678_12345679", ("delta", 12345678, 12345679, -1, 0)),
    ],
)
def test_names_of_folders_are_read(name: str, said: tuple[str, int, int, int, int]) -> None:
    folder = folder_of(name)

    assert folder is not None
    assert (folder.kind, folder.least, folder.most, folder.statement, folder.visible) == said


@pytest.mark.parametrize(
    "name",
    ["base_", "base_x", "delta_1", "delta_1_2_3_4", "xdelta_1_2", "delta_1_2_v", "ds=base_1"],
)
def test_other_names_are_not_folders_of_hive(name: str) -> None:
    assert folder_of(name) is None


def test_files_are_placed_in_their_partition_and_folder() -> None:
    paths = {
        "base_0000002/bucket_00000": ("", "base_0000002"),
        "ds=1/h=a b/delta_0000003_0000003_0000/bucket_00001_0": (
            "ds=1/h=a b/",
            "ds=1/h=a b/delta_0000003_0000003_0000",
        ),
        "ds=1/delta_1_1_0000/HIVE_UNION_SUBDIR_1/000000_0": ("ds=1/", "ds=1/delta_1_1_0000"),
        "000000_0": ("", None),
        "ds=1/000000_0_copy_1": ("ds=1/", None),
        "ds=1/HIVE_UNION_SUBDIR_2/000000_0": ("ds=1/", None),
        "ds=delta_1_1/000000_0": ("ds=delta_1_1/", None),
    }

    located = file_folders(pa.array(list(paths)))

    assert list(zip(located.root.to_pylist(), located.folder.to_pylist(), strict=True)) == list(
        paths.values()
    )


def test_files_are_named_by_their_bucket() -> None:
    paths = pa.array(
        ["d/bucket_00003", "bucket_00012_1", "000007_0", "ds=1/000007_0_copy_12", "b/part-0.orc"]
    )

    assert row_buckets(paths).to_pylist() == [3, 12, None, None, None]
    assert original_buckets(paths).to_pylist() == [None, None, 7, 7, None]


def test_the_code_of_a_bucket_has_its_statement() -> None:
    assert bucket_property(0, -1) == bucket_property(0, 0) == 536870912
    assert bucket_property(1, 2) == 536870912 + 65536 + 2
    coded = [536870912, bucket_property(4095, 4095), 0, 7, 2 << 29]
    assert buckets_in(np.array(coded)).tolist() == [0, 4095, 0, 7, -1]
    with pytest.raises(ValueError, match="no code"):
        bucket_property(4096, 0)


def test_valid_write_ids_are_those_up_to_the_highest_without_open_and_aborted_ones() -> None:
    ids = WriteIds.parse("default.t:9:4:4,7:2,8")

    assert np.flatnonzero(ids.are_valid(np.arange(12))).tolist() == [0, 1, 3, 5, 6, 9]
    assert [ids.share_of(*pair) for pair in [(5, 6), (2, 3), (7, 8), (9, 11), (10, 11)]] == [
        "all",
        "some",
        "none",
        "some",
        "none",
    ]
    assert [ids.fits_base(write_id) for write_id in (3, 4, 9)] == [True, False, False]


@pytest.mark.parametrize("text", ["t:5:9223372036854775807::", "null:5:9223372036854775807"])
def test_lists_without_open_ids_may_end_early(text: str) -> None:
    ids = WriteIds.parse(text)

    assert (ids.highest, ids.least_open, len(ids.open), len(ids.aborted)) == (5, NONE_OPEN, 0, 0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "1 parts"),
        ("t:5", "2 parts"),
        ("t:x:5::", "'x' is not a write id"),
        ("t:5:9:1,:", "'' is not a write id"),
        ("t:99999999999999999999:5::", "is not a write id"),
        ("t:5:1:1:1", "1 is both open and aborted"),
        ("7$a.t:5:9::$a.u:1:9::", "several tables"),
    ],
)
def test_other_texts_are_refused_with_the_form(text: str, reason: str) -> None:
    with pytest.raises(WriteIdsError, match="table:highest") as caught:
        WriteIds.parse(text)

    assert reason in str(caught.value)


def folders(text: str) -> list[Folder]:
    found = [folder_of(name) for name in text.split()]
    assert all(found)
    return [folder for folder in found if folder is not None]


def chosen(
    text: str, ids: str | None = None, compacted: str = "", *, insert_only: bool = False
) -> Chosen:
    return choose(
        "ds=1/",
        folders(text),
        compacted.split(),
        WriteIds.parse(ids) if ids else None,
        has_originals=True,
        insert_only=insert_only,
    )


def names(one: Chosen) -> str:
    read = ([one.base] if one.base else []) + [*one.deltas, *one.delete_deltas]
    return " ".join(folder.name for folder in read)


@pytest.mark.parametrize(
    ("held", "ids", "compacted", "read"),
    [
        # Wider deltas replace narrower ones; a base replaces all up to its id.
        ("delta_1_1 delta_2_2 delta_1_2_v5 delta_3_3", None, "", "delta_1_2_v5 delta_3_3"),
        ("base_2_v7 delta_1_1 delta_2_2_0000 delta_3_3", None, "", "base_2_v7 delta_3_3"),
        ("base_2_v7 base_4_v9 delta_3_3 delta_5_5", None, "", "base_4_v9 delta_5_5"),
        ("delta_1_9 delta_2_5 delta_6_6 delta_10_10", None, "", "delta_1_9 delta_10_10"),
        # Statements of one transaction count each, until a compaction merges them.
        ("delta_3_3_0000 delta_3_3_0001", None, "", "delta_3_3_0000 delta_3_3_0001"),
        ("delta_3_3_0000 delta_3_3_0001 delta_3_3_v9", None, "", "delta_3_3_v9"),
        # Deletes beside inserts of the same range; narrower ones are merged into it.
        (
            "delta_1_3 delete_delta_1_3 delete_delta_2_2_0000 delete_delta_4_4_0000",
            None,
            "",
            "delta_1_3 delete_delta_1_3 delete_delta_4_4_0000",
        ),
        (
            "delta_2_2_0000 delete_delta_2_2_0001 delta_2_2_0002",
            None,
            "",
            "delta_2_2_0000 delta_2_2_0002 delete_delta_2_2_0001",
        ),
        # A compaction that was made again.
        ("delta_1_2_v5 delta_1_2_v8", None, "", "delta_1_2_v8"),
        # Writes that are not seen.
        ("delta_1_1 delta_2_2 delta_3_3", "t:2:9::", "", "delta_1_1 delta_2_2"),
        ("delta_1_1 delta_2_2 delta_3_3", "t:3:2:2:", "", "delta_1_1 delta_3_3"),
        ("delta_1_1 delta_2_2 delta_3_3", "t:3:9::2", "", "delta_1_1 delta_3_3"),
        # Partly seen: the write of each row decides.
        ("delta_1_1 delta_2_4_v9 delta_2_2", "t:3:9::", "", "delta_1_1 delta_2_4_v9"),
        # A base of an overwrite is seen like any write.
        ("base_3 delta_1_1 delta_4_4", None, "", "base_3 delta_4_4"),
        ("base_3 delta_1_1 delta_2_2", "t:2:9::", "", "delta_1_1 delta_2_2"),
        ("base_3 delta_1_1 delta_4_4", "t:4:9::3", "", "delta_1_1 delta_4_4"),
        ("base_3 delta_1_1 delta_4_4", "t:4:2:2:", "", "base_3 delta_4_4"),
        # A compacted base must be seen whole; otherwise an earlier one is read.
        ("base_1_v2 base_4_v9 delta_2_2 delta_3_3", "t:4:3:3:", "", "base_1_v2 delta_2_2"),
        ("base_1 base_4 delta_2_2", "t:3:9::", "base_1 base_4", "base_1 delta_2_2"),
        # The compaction's base wins over the overwrite's of the same id.
        ("base_3 base_3_v7", None, "", "base_3_v7"),
        (f"base_{BEFORE_ALL} delta_1_1", "t:1:9::", "", f"base_{BEFORE_ALL} delta_1_1"),
    ],
)
def test_folders_are_chosen_as_hive_chooses(
    held: str, ids: str | None, compacted: str, read: str
) -> None:
    for order in (held, " ".join(reversed(held.split()))):
        assert names(chosen(order, ids, compacted)) == read


def test_a_compacted_base_with_unseen_rows_is_refused_unless_an_earlier_one_exists() -> None:
    with pytest.raises(AcidFolderError, match=r"'ds=1/base_4_v9' was compacted up to write id 4"):
        chosen("base_4_v9 delta_5_5", "t:5:3:3:")
    with pytest.raises(AcidFolderError, match=r"'ds=1/base_4' was compacted"):
        chosen("base_4", "t:3:9::", "base_4")


def test_deletes_without_rows_to_delete_are_refused() -> None:
    with pytest.raises(AcidFolderError, match=r"'delete_delta_2_2_0000' deletes rows, and"):
        choose(
            "",
            folders("delete_delta_2_2_0000"),
            (),
            None,
            has_originals=False,
            insert_only=False,
        )


def test_insert_only_folders_are_seen_as_a_whole() -> None:
    assert names(chosen("delta_1_3_v7 delta_4_4_0000", "t:4:9::2", insert_only=True)) == (
        "delta_1_3_v7 delta_4_4_0000"
    )
    for ids in ("t:2:9::", "t:3:3:3:"):
        with pytest.raises(AcidFolderError, match="merges writes that are not all seen"):
            chosen("delta_1_3_v7", ids, insert_only=True)
    with pytest.raises(AcidFolderError, match="deletes single rows"):
        chosen("delta_1_1 delete_delta_2_2", insert_only=True)
