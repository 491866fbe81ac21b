"""Cutting large files, where their format allows it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.support.tables.inventories import inventory
from windrow_core.files.formats import FORMATS
from windrow_service.planner.errors import PlanTooLargeError
from windrow_service.planner.packing.cut import cut


def pieces(
    size: int, offsets: Sequence[int], limit: int, *, name: str = "f", level_tail: bool = True
) -> list[int]:
    files = inventory([size], row_group_offsets=[offsets], paths=[name])
    splits = cut(files, np.array([0]), limit, level_tail=level_tail)
    assert (splits.start + splits.length).tolist() == [*splits.start[1:].tolist(), size]
    return splits.length.tolist()  # type: ignore[no-any-return]


def test_a_file_within_the_limit_is_one_split() -> None:
    assert pieces(100, [4, 50], 100) == [100]


def test_a_large_file_is_cut_before_the_row_group_that_would_pass_the_limit() -> None:
    assert pieces(100, [4, 30, 55, 80], 60) == [55, 45]
    assert pieces(130, [4, 30, 55, 80, 120], 60) == [55, 25, 50]


def test_a_row_group_larger_than_the_limit_is_not_divided() -> None:
    assert pieces(100, [4, 90], 50) == [90, 10]


def test_a_large_file_of_one_row_group_stays_whole() -> None:
    assert pieces(100, [4], 50) == [100]
    assert pieces(100, [], 50) == [100]


def test_the_last_two_pieces_are_as_even_as_the_row_groups_allow() -> None:
    groups = range(0, 150, 10)
    assert pieces(150, groups, 100) == [80, 70]
    assert pieces(150, groups, 100, level_tail=False) == [100, 50]
    assert pieces(105, [0, 50, 100], 100) == [50, 55]


def test_evening_out_the_last_pieces_does_not_exceed_the_limit() -> None:
    # No boundary leaves at most 100 on either side.
    assert pieces(190, [0, 89, 101], 100) == [89, 12, 89]
    assert pieces(190, [0, 89, 95, 101], 100) == [95, 95]


@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.txt.bz2", "a.BZ2", "dir.gz/a.log"])
def test_lines_are_cut_at_any_byte(name: str) -> None:
    assert pieces(250, [], 100, name=name) == [100, 75, 75]
    assert pieces(101, [0], 100, name=name) == [51, 50]
    assert pieces(250, [], 100, name=name, level_tail=False) == [100, 100, 50]


def test_files_of_lines_are_cut_at_known_blocks() -> None:
    assert pieces(250, [0, 90, 180], 100, name="a.csv") == [90, 90, 70]


@pytest.mark.parametrize(
    "name", ["a.gz", "a.csv.GZ", "a.txt.zst", "a.snappy", "a.json.lz4", "a.xz"]
)
def test_a_file_that_is_compressed_as_a_whole_is_not_cut(name: str) -> None:
    assert pieces(250, [], 100, name=name) == [250]
    assert pieces(250, [0, 90, 180], 100, name=name) == [250]


@pytest.mark.parametrize("name", ["a.snappy.parquet", "a.gz.parquet", "a.zlib.orc", "000000_0"])
def test_a_codec_of_pages_or_stripes_does_not_matter(name: str) -> None:
    assert pieces(250, [4, 90, 180], 100, name=name) == [90, 90, 70]


@pytest.mark.parametrize("offsets", [[4, 90, 90], [4, 180, 90], [-4, 90], [4, 250], [4, 90, 251]])
def test_impossible_offsets_are_not_used(offsets: list[int]) -> None:
    assert pieces(250, offsets, 100) == [250]
    assert pieces(250, offsets, 100, name="a.csv") == [100, 75, 75]


@pytest.mark.parametrize(
    ("table_format", "name", "expected"),
    [
        ("parquet", "a", [250]),
        ("orc", "a", [250]),
        ("csv", "a", [100, 75, 75]),
        ("json", "a", [100, 75, 75]),
        ("text", "part-0", [100, 75, 75]),
        ("text", "a.parquet", [250]),
        ("parquet", "a.csv", [100, 75, 75]),
        ("text", "a.gz", [250]),
    ],
)
def test_the_tables_format_applies_if_a_files_suffix_is_unknown(
    table_format: str, name: str, expected: list[int]
) -> None:
    files = inventory([250], row_group_offsets=[[]], paths=[name])

    splits = cut(files, np.array([0]), 100, has_lines=FORMATS[table_format].has_lines)

    assert splits.length.tolist() == expected


def test_files_are_cut_independently_of_each_other() -> None:
    files = inventory([100, 10, 80], row_group_offsets=[[4, 50], [4], [4, 20, 40, 60]])

    splits = cut(files, np.array([0, 1, 2]), 50)

    assert splits.file.tolist() == [0, 0, 1, 2, 2]
    assert splits.start.tolist() == [0, 50, 0, 0, 40]
    assert splits.length.tolist() == [50, 50, 10, 40, 40]


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, [10, 200, 200, 200]),
        (1, [10, 200, 200, 200]),
        (2, [10, 100, 150, 150, 200]),
        (3, [10, 100, 100, 200, 200]),
        (4, [10, 100, 100, 100, 100, 200]),
        (5, [10, 100, 100, 100, 100, 200]),
        (6, [10, 100, 100, 100, 100, 100, 100]),
        (99, [10, 100, 100, 100, 100, 100, 100]),
    ],
)
def test_the_first_splits_are_smaller_and_whole_files_count(
    count: int, expected: list[int]
) -> None:
    files = inventory([10, 400, 200], paths=["a", "b", "c"])

    splits = cut(files, np.arange(3), 200, initial_size=100, initial_count=count, has_lines=True)

    assert splits.length.tolist() == expected


def test_the_first_splits_are_not_larger_than_others() -> None:
    files = inventory([100], paths=["a.csv"])

    splits = cut(files, np.arange(1), 50, initial_size=80, initial_count=9)

    assert splits.length.tolist() == [50, 50]


def test_more_pieces_than_a_plan_may_hold_are_refused_before_they_are_made() -> None:
    files = inventory([2**40])

    with pytest.raises(PlanTooLargeError, match=r"1,099,511,627,776 splits.*raise max_split_size"):
        cut(files, np.arange(1), 1, has_lines=True, max_splits=20_000_000)
    assert len(cut(files, np.arange(1), 2**38, has_lines=True, max_splits=4)) == 4
