"""Statistics of row groups become bounds of files, and never claim more than is known."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from windrow_core.files.bounds import (
    BoundedColumn,
    fit_bounds,
    in_order,
    merge_row_groups,
    typed_bounds,
)
from windrow_core.files.trust import writer_sees_nan


def column(type_: pa.DataType) -> BoundedColumn:
    return BoundedColumn("c", type_, 0, 0, 0, False)


def merged(groups: list[tuple[Any, Any, int | None, int]], files: list[int]) -> list[Any]:
    """Merge groups of (min, max, null count, row count) into as many files as there are."""
    lower, upper, nulls, rows = zip(*groups, strict=True)
    found = merge_row_groups(
        pa.array(lower, pa.int64()),
        pa.array(upper, pa.int64()),
        pa.array(nulls, pa.int64()),
        np.array(rows, np.int64),
        np.array(files, np.int64),
        max(files) + 1,
    )
    return list(zip(*(part.to_pylist() for part in found), strict=True))


def test_the_bounds_of_a_file_span_those_of_its_row_groups() -> None:
    assert merged([(3, 4, 1, 5), (1, 2, 0, 5), (9, 9, 2, 5)], [0, 0, 1]) == [(1, 4, 1), (9, 9, 2)]


@pytest.mark.parametrize("unknown", [(None, None, 1, 5), (None, 4, 1, 5), (3, None, 1, 5)])
def test_values_unknown_in_one_row_group_are_unknown_in_the_file(
    unknown: tuple[Any, Any, int, int],
) -> None:
    assert merged([(1, 2, 0, 5), unknown], [0, 0]) == [(None, None, 1)]
    assert merged([unknown], [0]) == [(None, None, 1)]


def test_an_unknown_null_count_makes_that_of_the_file_unknown() -> None:
    assert merged([(1, 2, 0, 5), (3, 4, None, 5)], [0, 0]) == [(1, 4, None)]
    assert merged([(None, None, None, 5)], [0]) == [(None, None, None)]


@pytest.mark.parametrize("silent", [(None, None, 5, 5), (None, None, 0, 0), (None, None, None, 0)])
def test_row_groups_without_values_do_not_affect_bounds(
    silent: tuple[Any, Any, int | None, int],
) -> None:
    assert merged([silent, (1, 2, 0, 5)], [0, 0]) == [(1, 2, silent[2] or 0)]


def test_a_count_of_nulls_that_leaves_no_value_for_the_bounds_is_unknown() -> None:
    assert merged([(0, 0, 5, 5)], [0]) == [(0, 0, None)]


@pytest.mark.parametrize("nulls", [-1, 6])
def test_an_impossible_count_of_nulls_is_unknown(nulls: int) -> None:
    assert merged([(0, 9, nulls, 5)], [0]) == [(0, 9, None)]


@pytest.mark.parametrize(
    ("lower", "upper", "type_"),
    [
        (2, 1, pa.int64()),
        (1.5, -1.5, pa.float64()),
        ("b", "a", pa.string()),
        (b"\x80", b"\x7f", pa.binary()),
        (True, False, pa.bool_()),
        (Decimal("0.02"), Decimal("0.01"), pa.decimal128(38, 2)),
        (date(2020, 1, 2), date(2020, 1, 1), pa.date32()),
    ],
)
def test_a_lower_bound_above_the_upper_one_is_unknown_and_so_is_the_other(
    lower: Any, upper: Any, type_: pa.DataType
) -> None:
    lowers = pa.array([lower, upper, lower, None, None], type_)
    uppers = pa.array([upper, lower, lower, upper, None], type_)

    least, greatest, crossed = in_order(lowers, uppers)

    assert crossed.to_pylist() == [True, False, False, False, False]
    assert least.to_pylist() == [None, upper, lower, None, None]
    assert greatest.to_pylist() == [None, lower, lower, upper, None]


def test_zeros_of_either_sign_are_in_order() -> None:
    _, _, crossed = in_order(pa.array([0.0, -0.0]), pa.array([-0.0, 0.0]))

    assert crossed.to_pylist() == [False, False]


def test_a_file_without_row_groups_has_neither_bounds_nor_nulls() -> None:
    assert merged([(1, 2, 0, 5)], [1]) == [(None, None, 0), (1, 2, 0)]


def test_a_bound_that_is_nan_is_unknown() -> None:
    found = typed_bounds(column(pa.float64()), [float("nan"), 1.0, None], upper=True)

    assert found.to_pylist() == [None, 1.0, None]


def test_a_bound_cut_within_a_character_is_widened_to_whole_characters() -> None:
    cut = ["kå".encode()[:2], "k\U0010ffff".encode()[:4], b"k\xff", b"ok", None]

    lower = typed_bounds(column(pa.string()), cut, upper=False)
    upper = typed_bounds(column(pa.string()), cut, upper=True)

    assert lower.to_pylist() == ["k", "k", "k", "ok", None]
    assert upper.to_pylist() == ["k\U0010ffff", "k\U0010ffff", None, "ok", None]


@pytest.mark.parametrize(
    ("type_", "raw"),
    [(pa.int8(), 300), (pa.decimal128(3, 1), 1000), (pa.bool_(), b"x"), (pa.date32(), 2**40)],
)
def test_bounds_that_are_not_values_of_the_type_are_unknown(type_: pa.DataType, raw: Any) -> None:
    assert typed_bounds(column(type_), [raw], upper=False).to_pylist() == [None]


def test_bounds_that_do_not_fit_the_wider_type_are_unknown() -> None:
    assert fit_bounds(pa.chunked_array([["x"]]), pa.int32()).to_pylist() == [None]


@pytest.mark.parametrize(
    ("created_by", "sees"),
    [
        ("parquet-mr version 1.17.0 (build fac0c746532e133beb928a7f6a7e57b510b477a1)", True),
        ("parquet-mr version 1.10.1 (build a89df8f)", True),
        ("parquet-mr version 1.9.0", False),
        ("parquet-mr version 1.18.0", False),
        ("parquet-mr version 2.0.0", False),
        ("parquet-mr", False),
        ("parquet-cpp-arrow version 21.0.0", False),
        ("DuckDB version v1.4.0", False),
        ("", False),
        (None, False),
    ],
)
def test_only_bounds_of_writers_known_to_respect_nan_prove_its_absence(
    created_by: str | None, sees: bool
) -> None:
    assert writer_sees_nan(created_by) is sees
