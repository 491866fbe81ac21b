"""Which answers of SQL count as equal in `benchmarks/star.py` and `tpc.py`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.support.benchmarks import load_benchmark

Rows = list[tuple[Any, ...]]
difference = load_benchmark("sql_turns").difference


@pytest.mark.parametrize(
    ("expected", "rows"),
    [
        ([], []),
        ([(1, "a"), (2, "b")], [(2, "b"), (1, "a")]),
        # Sums of floats depend on the order of their terms.
        ([(0.1 + 0.2, "a"), (0.5, "b")], [(0.5, "b"), (0.3, "a")]),
        ([(0.1 + 0.2, "a"), (0.3, "b")], [(0.3, "a"), (0.1 + 0.2, "b")]),
        ([(float("nan"), None)], [(float("nan"), None)]),
    ],
)
def test_rows_are_equal_in_any_order_and_up_to_the_last_digits_of_floats(
    expected: Rows, rows: Rows
) -> None:
    assert difference(expected, rows) == ""


@pytest.mark.parametrize(
    ("expected", "rows", "reason"),
    [
        ([(1,)], [], "0 rows instead of 1"),
        ([(1,), (1,), (2,)], [(1,), (2,), (2,)], "(2,) instead of (1,)"),
        ([(1,)], [(2,)], "(2,) instead of (1,)"),
        ([(None,)], [(0,)], "(0,) instead of (None,)"),
        ([(1,)], [(Decimal(1),)], "(Decimal('1'),) instead of (1,)"),
        ([(1.0, "a")], [(1.000001, "a")], "(1.000001, 'a') instead of (1.0, 'a')"),
        ([(None, "a")], [(0.0, "a")], "(0.0, 'a') instead of (None, 'a')"),
        ([(1.0, "a"), (2.0, "b")], [(2.0, "a"), (1.0, "b")], "(2.0, 'a') instead of (1.0, 'a')"),
    ],
)
def test_other_rows_differ_and_the_first_of_them_is_named(
    expected: Rows, rows: Rows, reason: str
) -> None:
    assert difference(expected, rows) == reason


def test_of_a_query_that_may_answer_any_rows_only_the_number_counts() -> None:
    assert difference([(1,)], [(2,)], any_rows=True) == ""
    assert difference([(1,)], [(2,), (3,)], any_rows=True) == "2 rows instead of 1"
