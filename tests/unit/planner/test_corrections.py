"""Predictions of maintenance are corrected by what was measured, table by table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_service.planner.maintenance.corrections import (
    PIECE_SECONDS,
    Corrections,
    Receipts,
    corrections,
)


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


def prediction(of: Corrections, model_seconds: float = 1.0, table: int = 0) -> float:
    """Return the cost of a piece of work, as corrected."""
    return float(of.piece[table] + of.cost[table] * model_seconds)


def test_without_receipts_a_piece_costs_what_it_does_on_a_quiet_machine() -> None:
    without = factors({})

    assert without.cost.tolist() == [1.0] * 3
    assert without.piece.tolist() == [PIECE_SECONDS] * 3


def test_two_receipts_may_be_chance() -> None:
    assert prediction(factors({1: [40.0, 40.0]}), table=1) == PIECE_SECONDS + 1


def test_a_table_with_few_receipts_has_what_all_tables_have() -> None:
    by_table = factors({0: [8.0] * 10, 1: [9.0]})

    assert prediction(by_table, table=0) == pytest.approx(8.0, rel=0.1)
    assert prediction(by_table, table=1) == pytest.approx(8.0, rel=0.1)


def test_each_table_has_its_own_costs() -> None:
    by_table = factors({0: [20.0] * 12, 2: [0.5] * 12})

    assert prediction(by_table, table=0) == pytest.approx(20.0, rel=0.15)
    assert prediction(by_table, table=2) == pytest.approx(0.5, rel=0.15)


def test_few_receipts_change_less_than_many() -> None:
    few, many = factors({0: [40.0] * 3}), factors({0: [40.0] * 12})

    assert 4.0 < prediction(few) < prediction(many) < 40.0


def test_one_slow_run_does_not_change_the_cost() -> None:
    usual, slow = factors({0: [4.0] * 12}), factors({0: [4.0] * 11 + [1000.0]})

    assert prediction(slow) == pytest.approx(prediction(usual), rel=0.01)


def test_a_factor_has_bounds_however_wrong_the_prediction_was() -> None:
    cost = factors({0: [1e9] * 1000, 1: [1e-9] * 1000}).cost

    assert cost[0] <= 64.0
    assert cost[1] >= 1 / 64


@given(
    piece=st.floats(0.05, 50),
    factor=st.floats(0.1, 30),
    sizes=st.lists(st.floats(-5, 1.5), min_size=30, max_size=30),
    seed=st.integers(0, 2**32 - 1),
)
@examples(100)
def test_after_ten_receipts_the_median_prediction_is_near_what_work_costs(
    piece: float, factor: float, sizes: list[float], seed: int
) -> None:
    noise = np.random.default_rng(seed).lognormal(0, 0.25, len(sizes))
    model = np.exp(sizes)
    cost = (piece + factor * model) * noise
    ratios = []
    for done in range(10, len(sizes)):
        newest = slice(done - 10, done)
        of = corrections(
            Receipts(
                table=np.zeros(10, np.int64),
                predicted_cost=model[newest],
                cost=cost[newest],
                predicted_gain=np.ones(10),
                gain=np.full(10, np.nan),
            ),
            tables=1,
        )
        ratios.append(cost[done] / prediction(of, model[done]))

    assert 0.67 <= float(np.median(ratios)) <= 1.5


@pytest.mark.parametrize("piece", [0.25, 4.0, 30.0])
def test_what_pieces_cost_is_told_from_what_their_files_cost(piece: float) -> None:
    model = np.array([0.01, 20.0] * 6)
    of = corrections(
        Receipts(
            table=np.zeros(12, np.int64),
            predicted_cost=model,
            cost=piece + 3 * model,
            predicted_gain=np.ones(12),
            gain=np.full(12, np.nan),
        ),
        tables=1,
    )

    assert prediction(of, 0.01) == pytest.approx(piece, rel=0.5)
    assert prediction(of, 20.0) == pytest.approx(piece + 60, rel=0.5)


def test_gains_that_were_not_measured_yet_do_not_count() -> None:
    unknown = factors({0: [1.0] * 4}, {0: [3.0, 3.0, np.nan, np.nan]})
    enough = factors({0: [1.0] * 4}, {0: [3.0, 3.0, 3.0, np.nan]})

    assert unknown.gain[0] == 1.0 < enough.gain[0]


def test_runs_that_gained_nothing_lower_the_gain() -> None:
    assert factors({0: [1.0] * 50}, {0: [0.0] * 50}).gain[0] < 0.15


def test_the_order_of_receipts_does_not_matter() -> None:
    one, other = factors({0: [1.0, 2.0, 3.0, 9.0]}), factors({0: [9.0, 1.0, 3.0, 2.0]})

    assert prediction(one) == pytest.approx(prediction(other))
