"""Cutting large files on row-group boundaries."""

from __future__ import annotations

import numpy as np

from tests.support.inventories import inventory
from windrow_service.planner.cut import cut


def pieces(size: int, offsets: list[int], limit: int) -> list[tuple[int, int]]:
    files = inventory([size], row_group_offsets=[offsets])
    splits = cut(files, np.array([0]), limit)
    return list(zip(splits.start.tolist(), splits.length.tolist(), strict=True))


def test_a_file_within_the_limit_is_one_split() -> None:
    assert pieces(100, [4, 50], 100) == [(0, 100)]


def test_a_large_file_is_cut_before_the_row_group_that_would_pass_the_limit() -> None:
    assert pieces(100, [4, 30, 55, 80], 60) == [(0, 55), (55, 45)]


def test_a_row_group_larger_than_the_limit_is_not_divided() -> None:
    assert pieces(100, [4, 90], 50) == [(0, 90), (90, 10)]


def test_a_large_file_of_one_row_group_stays_whole() -> None:
    assert pieces(100, [4], 50) == [(0, 100)]


def test_files_are_cut_apart_from_each_other() -> None:
    files = inventory([100, 10, 80], row_group_offsets=[[4, 50], [4], [4, 20, 40, 60]])

    splits = cut(files, np.array([0, 1, 2]), 50)

    assert splits.file.tolist() == [0, 0, 1, 2, 2]
    assert splits.start.tolist() == [0, 50, 0, 0, 40]
    assert splits.length.tolist() == [50, 50, 10, 40, 40]
