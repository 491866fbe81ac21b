"""Which rewrites the budget of maintenance is spent on, and why others wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.tables.rewrites import budget, policies, rewrites
from windrow_service.planner.maintenance.budget import Budget
from windrow_service.planner.maintenance.choose import choose, representatives
from windrow_service.planner.maintenance.columns import REASONS, Choice, Rewrites, Rules

MIB = 2**20
HOUR, DAY = 3600.0, 86_400.0


def chosen(rows: Rewrites, hour: Budget | None = None, **policy: Any) -> Choice:
    return choose(rows, policies(**policy), hour or budget(), Rules())


def reasons(choice: Choice) -> list[str]:
    return [REASONS[at] for at in choice.reason.tolist()]


def test_without_rewrites_nothing_is_chosen() -> None:
    choice = chosen(rewrites(table=[]))

    assert (len(choice.order), len(choice.reason), choice.saves) == (0, 0, 0.0)
    assert choice.left == budget()


def test_the_score_is_what_reads_save_for_each_second_of_rewriting() -> None:
    rows = rewrites(gain_seconds=0.5, reads_per_day=20.0, lasting_days=4.0, cost_seconds=8.0)

    choice = chosen(rows)

    assert choice.saved_seconds.tolist() == [40.0]
    assert choice.score.tolist() == [5.0]
    assert choice.saves == 40.0
    assert choice.left.seconds == budget().seconds - 8.0


def test_files_that_are_read_often_come_first() -> None:
    choice = chosen(rewrites(table=[0, 1, 2], reads_per_day=[5.0, 50.0, 20.0]))

    assert choice.order.tolist() == [1, 2, 0]
    assert choice.batch.tolist() == [0, 1, 2]


def test_a_gain_counts_for_a_month_at_most() -> None:
    choice = chosen(rewrites(table=[0, 1], lasting_days=[30.0, 300.0]))

    assert choice.score[0] == choice.score[1]


@pytest.mark.parametrize(
    ("reason", "row", "policy"),
    [
        ("off", {}, {"is_off": True}),
        ("excluded", {"is_excluded": True}, {}),
        ("running", {"is_running": True}, {}),
        ("window", {}, {"is_open": False}),
        ("quiet", {"quiet_seconds": 3599.0}, {"min_quiet_seconds": 3600.0}),
        ("backing_off", {"failures": 1, "failure_seconds": 899.0}, {}),
        ("no_gain", {"idle_runs": 1, "run_seconds": 6 * HOUR - 1}, {}),
        ("nothing_small", {"files": 1, "becomes": 1, "gain_seconds": 0.0}, {}),
        ("unread", {"reads_per_day": 0.0}, {}),
        ("amplification", {"rewritten_bytes": 200 * MIB, "written_bytes": 100 * MIB}, {}),
        ("not_worth", {"cost_seconds": 30.1, "gain_seconds": 0.1, "reads_per_day": 10.0}, {}),
        ("gathering", {"gathering_days": 0.1, "next_write_days": 0.04, "cost_seconds": 2.0}, {}),
        ("too_large", {"cost_seconds": 2401.0, "gain_seconds": 1e6}, {}),
        ("share", {}, {"share_debt": 1.0}),
        ("budget", {"cost_seconds": 101.0, "gain_seconds": 1e6}, {}),
    ],
)
def test_each_rewrite_that_waits_has_a_reason(
    reason: str, row: dict[str, Any], policy: dict[str, Any]
) -> None:
    choice = chosen(rewrites(**row), **policy)

    assert reasons(choice) == [reason]
    assert choice.order.tolist() == []


@pytest.mark.parametrize(
    ("row", "policy"),
    [
        ({"quiet_seconds": 3600.0}, {"min_quiet_seconds": 3600.0}),
        ({"failures": 1, "failure_seconds": 900.0}, {}),
        ({"idle_runs": 1, "run_seconds": 6 * HOUR}, {}),
        ({"rewritten_bytes": 199 * MIB, "written_bytes": 100 * MIB}, {}),
        ({"cost_seconds": 30.0, "gain_seconds": 0.1, "reads_per_day": 10.0}, {}),
        ({"cost_seconds": 100.0, "gain_seconds": 1e6}, {}),
        ({}, {"share_debt": 0.99}),
    ],
)
def test_at_the_bound_a_rewrite_is_chosen(row: dict[str, Any], policy: dict[str, Any]) -> None:
    assert reasons(chosen(rewrites(**row), **policy)) == ["chosen"]


def test_reasons_that_time_ends_say_when() -> None:
    rows = rewrites(
        table=[0, 1, 2, 3],
        quiet_seconds=[600.0, DAY, DAY, DAY],
        failures=[0, 3, 0, 0],
        failure_seconds=[0.0, 600.0, 0.0, 0.0],
        idle_runs=[0, 0, 2, 0],
        run_seconds=[DAY, DAY, HOUR, DAY],
        reads_per_day=[9.0, 9.0, 9.0, 0.0],
    )

    choice = chosen(rows, min_quiet_seconds=3600.0)

    assert reasons(choice) == ["quiet", "backing_off", "no_gain", "unread"]
    assert choice.wait_seconds[:3].tolist() == [3000.0, HOUR - 600.0, 11 * HOUR]
    assert np.isnan(choice.wait_seconds[3])


def test_pauses_grow_to_their_longest_and_no_further() -> None:
    rows = rewrites(
        table=[0, 1], failures=[1000, 0], failure_seconds=0.0, idle_runs=[0, 1000], run_seconds=0.0
    )

    assert chosen(rows).wait_seconds.tolist() == [DAY, 7 * DAY]


def test_files_that_gather_are_rewritten_once_waiting_has_paid_off() -> None:
    # Each day saves 2 s for a cost of 1 s: worth it after half of a day's gathering.
    rows = rewrites(
        table=[0, 1], gathering_days=[0.9, 1.1], next_write_days=0.1, gain_seconds=0.2,
        reads_per_day=10.0, cost_seconds=1.0, size_bytes=MIB,
    )  # fmt: skip

    choice = chosen(rows)

    assert reasons(choice) == ["gathering", "chosen"]
    assert choice.wait_seconds[0] == pytest.approx(0.1 * DAY)


def test_files_that_stay_need_not_gather() -> None:
    rows = rewrites(
        size_bytes=64 * MIB, gathering_days=0.0, next_write_days=0.1, written_bytes=64 * MIB
    )

    assert reasons(chosen(rows)) == ["chosen"]


def test_the_best_alternative_of_a_partition_is_chosen() -> None:
    rows = rewrites(
        table=[0, 0, 0, 1],
        partition=[7, 7, 8, 7],
        gain_seconds=[1.0, 1.2, 1.0, 1.0],
        cost_seconds=[1.0, 2.0, 3.0, 4.0],
    )

    assert reasons(chosen(rows)) == ["chosen", "alternative", "chosen", "chosen"]


def test_a_rewrite_that_comes_next_keeps_the_budget_from_those_behind_it() -> None:
    rows = rewrites(table=[0, 1, 2], cost_seconds=[60.0, 50.0, 1.0], gain_seconds=[60.0, 40.0, 0.5])

    first = chosen(rows)
    second = chosen(rows, first.left.refilled(1.0))

    assert reasons(first) == ["chosen", "budget", "budget"]
    assert first.left.seconds == 40.0
    assert second.order.tolist() == [0, 1, 2]


def test_bytes_have_a_budget_of_their_own() -> None:
    rows = rewrites(table=[0, 1], size_bytes=[60 * MIB, 60 * MIB], written_bytes=60 * MIB)

    assert reasons(chosen(rows, budget(size_bytes=100.0 * MIB))) == ["chosen", "budget"]


def test_an_overdrawn_budget_buys_nothing() -> None:
    assert reasons(chosen(rewrites(), budget().spent(100.5, 0))) == ["budget"]


def test_a_budget_is_carried_over_for_some_hours_only() -> None:
    hour = budget(carried_hours=6.0)

    assert hour.refilled(1.0).seconds == 200.0
    assert hour.refilled(100.0).seconds == 600.0
    assert hour.refilled(100.0).size_bytes == 6 * hour.hour_bytes


def test_a_table_begins_no_rewrite_once_its_share_is_used() -> None:
    rows = rewrites(
        table=[0, 0, 0, 1],
        partition=[0, 1, 2, 0],
        cost_seconds=20.0,
        gain_seconds=[9.0, 8.0, 7.0, 1.0],
    )

    choice = chosen(rows, max_share=0.25)

    assert reasons(choice) == ["chosen", "chosen", "share", "chosen"]


def test_a_table_that_has_waited_comes_before_a_better_one() -> None:
    rows = rewrites(table=[0, 1, 1], partition=[0, 0, 1], gain_seconds=[1.0, 0.3, 0.3])

    now = chosen(rows, waiting_days=0.0)
    later = chosen(rows, waiting_days=[0.0, 14.0, 0.0, 0.0])

    assert now.order.tolist() == [0, 1, 2]
    # Only one of its rewrites goes first.
    assert later.order.tolist() == [1, 0, 2]


def test_batches_are_of_one_table_and_bounded() -> None:
    rows = rewrites(
        table=[0, 1, 0, 0, 1],
        partition=[0, 0, 1, 2, 1],
        gain_seconds=[9.0, 8.0, 7.0, 6.0, 5.0],
        files=[40, 10, 50, 20, 95],
        becomes=1,
    )
    rules = Rules(max_batch_files=100)

    choice = choose(rows, policies(), budget(), rules)

    assert choice.order.tolist() == [0, 1, 2, 3, 4]
    assert choice.batch.tolist() == [0, 1, 0, 2, 3]


def test_a_batch_has_files_below_one_size() -> None:
    rows = rewrites(
        partition=[0, 1, 2], small_bytes=[MIB, 4 * MIB, MIB], gain_seconds=[9.0, 8.0, 7.0]
    )

    assert chosen(rows).batch.tolist() == [0, 1, 0]


def test_the_rewrite_that_came_closest_to_being_chosen_stands_for_its_partition() -> None:
    rows = rewrites(
        table=[0, 0, 0, 0, 1, 1],
        partition=[0, 0, 1, 1, 0, 0],
        # In turn: chosen and an alternative, not worth it twice, too large and not worth it.
        gain_seconds=[2.0, 1.0, 0.001, 0.002, 1e6, 1.0],
        cost_seconds=[1.0, 1.0, 1.0, 1.0, 1e5, 1e4],
    )

    choice = chosen(rows)

    assert sorted(representatives(rows, choice).tolist()) == [0, 3, 4]


def test_the_order_of_rows_does_not_matter() -> None:
    rows = rewrites(table=[2, 0, 1, 0], partition=[0, 1, 2, 0])
    backwards = rewrites(table=[0, 1, 0, 2], partition=[0, 2, 1, 0])
    hour = budget(seconds=2.5)

    first, second = chosen(rows, hour), chosen(backwards, hour)

    assert (3 - second.order).tolist() == first.order.tolist()
    assert second.reason[::-1].tolist() == first.reason.tolist()
