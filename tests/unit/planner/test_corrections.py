"""Predictions of maintenance are corrected by what was measured, table by table."""

from __future__ import annotations

import numpy as np
import pytest

from windrow_service.planner.maintenance.corrections import Corrections, Receipts, corrections


def factors(
    costs: dict[int, list[float]], gains: dict[int, list[float]] | None = None
) -> Corrections:
    """Return the corrections of three tables whose predictions were 1 s each."""
    table = [number for number, values in costs.items() for _ in values]
    cost = [value for values in costs.values() for value in values]
    gain = [value for values in (gains or {}).values() for value in values]
    return corrections(
        Receipts(
            table=np.array(table, np.int64),
            predicted_cost=np.ones(len(cost)),
            cost=np.array(cost),
            predicted_gain=np.ones(len(cost)),
            gain=np.array(gain or [np.nan] * len(cost)),
        ),
        tables=3,
    )


def test_without_receipts_nothing_is_corrected() -> None:
    assert factors({}).cost.tolist() == [1.0, 1.0, 1.0]


def test_two_receipts_may_be_chance() -> None:
    assert factors({1: [4.0, 4.0]}).cost.tolist() == [1.0, 1.0, 1.0]


def test_each_table_has_its_own_factor() -> None:
    cost = factors({0: [2.0] * 50, 2: [0.5] * 50}).cost

    assert cost.tolist() == pytest.approx([2.0, 1.0, 0.5], rel=0.05)


def test_few_receipts_change_less_than_many() -> None:
    few, many = factors({0: [4.0] * 3}).cost[0], factors({0: [4.0] * 30}).cost[0]

    assert 1.5 < few < many < 4.0


def test_one_slow_run_does_not_change_the_factor() -> None:
    usual, slow = factors({0: [2.0] * 9}), factors({0: [2.0] * 8 + [1000.0]})

    assert slow.cost[0] == usual.cost[0]


def test_a_factor_has_bounds_however_wrong_the_prediction_was() -> None:
    cost = factors({0: [1e9] * 1000, 1: [0.0] * 1000}).cost

    assert cost[:2].tolist() == pytest.approx([8.0, 1 / 8], rel=0.01)


def test_gains_that_were_not_measured_yet_do_not_count() -> None:
    unknown = factors({0: [1.0] * 4}, {0: [3.0, 3.0, np.nan, np.nan]})
    enough = factors({0: [1.0] * 4}, {0: [3.0, 3.0, 3.0, np.nan]})

    assert unknown.gain[0] == 1.0 < enough.gain[0]


def test_runs_that_gained_nothing_lower_the_gain() -> None:
    assert factors({0: [1.0] * 50}, {0: [0.0] * 50}).gain[0] < 0.15


def test_the_order_of_receipts_does_not_matter() -> None:
    assert factors({0: [1.0, 2.0, 3.0, 9.0]}).cost[0] == factors({0: [9.0, 1.0, 3.0, 2.0]}).cost[0]
