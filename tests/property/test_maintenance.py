"""What a choice of rewrites keeps to, whatever there is to choose from."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from tests.support.tables.rewrites import budget, policies, rewrites
from windrow_service.planner.maintenance.budget import Budget
from windrow_service.planner.maintenance.choose import choose, representatives
from windrow_service.planner.maintenance.columns import (
    CHOSEN,
    REASONS,
    Rewrites,
    Rules,
    TablePolicies,
)

TABLES = 4
RULES = Rules(max_batch_bytes=300, max_batch_files=30)
AMOUNTS = st.floats(0, 60)
ROWS = st.fixed_dictionaries(
    {
        "table": st.integers(0, TABLES - 1),
        "partition": st.integers(0, 2),
        "small_bytes": st.sampled_from([64, 256]),
        "files": st.integers(0, 20),
        "becomes": st.integers(0, 3),
        "size_bytes": st.integers(0, 200),
        "cost_seconds": st.just(0.0) | AMOUNTS,
        "gain_seconds": AMOUNTS,
        "reads_per_day": AMOUNTS,
        "lasting_days": AMOUNTS,
        "next_write_days": AMOUNTS | st.just(float("inf")),
        "gathering_days": AMOUNTS,
        "quiet_seconds": AMOUNTS,
        "written_bytes": st.integers(0, 400),
        "rewritten_bytes": st.integers(0, 400),
        "failures": st.integers(0, 2),
        "failure_seconds": st.sampled_from([0.0, 1e4]),
        "idle_runs": st.integers(0, 2),
        "run_seconds": st.sampled_from([0.0, 1e5]),
        "is_excluded": st.sampled_from([False, False, True]),
        "is_running": st.sampled_from([False, False, True]),
    }
)
POLICIES = st.fixed_dictionaries(
    {
        "target_bytes": st.integers(1, 400),
        "is_off": st.sampled_from([False, False, True]),
        "is_open": st.sampled_from([True, True, False]),
        "min_quiet_seconds": st.sampled_from([0.0, 0.0, 30.0]),
        "min_ratio": st.sampled_from([0.0, 1.0, 5.0]),
        "max_share": st.sampled_from([0.25, 1.0]),
        "share_debt": st.sampled_from([0.0, 0.2, 0.5]),
        "waiting_days": AMOUNTS,
        "piece_seconds": st.sampled_from([0.0, 0.0, 1.0, 30.0]),
    }
)
BUDGETS = st.builds(
    Budget,
    seconds=st.floats(-10, 200),
    size_bytes=st.floats(-10, 2_000),
    hour_seconds=st.floats(0, 50),
    hour_bytes=st.floats(0, 500),
    carried_hours=st.sampled_from([1.0, 4.0]),
)


def columns(rows: list[dict[str, float]]) -> dict[str, list[float]]:
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {"table": []}


CANDIDATES = st.lists(ROWS, max_size=12).map(lambda rows: rewrites(**columns(rows)))
TABLE_POLICIES = st.lists(POLICIES, min_size=TABLES, max_size=TABLES).map(
    lambda rows: policies(**columns(rows))
)


@given(rows=CANDIDATES, tables=TABLE_POLICIES, hour=BUDGETS)
@examples(150)
def test_the_budget_is_never_exceeded(rows: Rewrites, tables: TablePolicies, hour: Budget) -> None:
    choice = choose(rows, tables, hour, RULES)

    at = choice.order
    if len(at):
        assert rows.cost_seconds[at].sum() <= hour.seconds + 1e-9
        assert rows.size_bytes[at].sum() <= hour.size_bytes
        assert choice.left.seconds >= -1e-9


@given(rows=CANDIDATES, tables=TABLE_POLICIES)
@examples(150)
def test_each_batch_is_worth_what_it_costs_with_what_each_piece_of_work_costs(
    rows: Rewrites, tables: TablePolicies
) -> None:
    plenty = budget(seconds=1e9, size_bytes=1e12, hour_seconds=1e9, hour_bytes=1e12)

    choice = choose(rows, tables, plenty, RULES)

    spent = plenty.seconds - choice.left.seconds
    pieces = 0.0
    for number in range(int(choice.batch.max(initial=-1)) + 1):
        at = choice.order[choice.batch == number]
        table = rows.table[at[0]]
        pieces += tables.piece_seconds[table]
        cost = tables.piece_seconds[table] + rows.cost_seconds[at].sum()
        assert choice.saved_seconds[at].sum() >= tables.min_ratio[table] * cost - 1e-5
    assert abs(spent - pieces - rows.cost_seconds[choice.order].sum()) < 1e-3


@given(rows=CANDIDATES, tables=TABLE_POLICIES, hour=BUDGETS)
@examples(150)
def test_each_rewrite_is_chosen_or_has_a_reason_and_each_partition_is_chosen_once(
    rows: Rewrites, tables: TablePolicies, hour: Budget
) -> None:
    choice = choose(rows, tables, hour, RULES)

    assert sorted(choice.order.tolist()) == np.flatnonzero(choice.reason == CHOSEN).tolist()
    assert all(0 <= at < len(REASONS) for at in choice.reason.tolist())
    pairs = list(zip(rows.table[choice.order], rows.partition[choice.order], strict=True))
    assert len(set(pairs)) == len(pairs)
    # A partition with an alternative has one that is better, whatever became of it.
    of_alternatives = choice.reason == REASONS.index("alternative")
    for table, partition in zip(
        rows.table[of_alternatives], rows.partition[of_alternatives], strict=True
    ):
        same = (rows.table == table) & (rows.partition == partition) & ~of_alternatives
        assert {REASONS[at] for at in choice.reason[same]} & {
            "chosen",
            "budget",
            "share",
            "too_large",
            # By what its batch costs beside it.
            "not_worth",
            "gathering",
        }


@given(rows=CANDIDATES, tables=TABLE_POLICIES, hour=BUDGETS)
@examples(150)
def test_nothing_that_must_be_left_alone_is_chosen(
    rows: Rewrites, tables: TablePolicies, hour: Budget
) -> None:
    at = choose(rows, tables, hour, RULES).order

    of = rows.table[at]
    assert not (tables.is_off[of] | ~tables.is_open[of] | rows.is_excluded[at]).any()
    assert not rows.is_running[at].any()
    assert (rows.quiet_seconds[at] >= tables.min_quiet_seconds[of]).all()
    assert (tables.share_debt[of] < tables.max_share[of]).all()
    assert (rows.rewritten_bytes[at] + rows.size_bytes[at] <= 2 * rows.written_bytes[at]).all()


@given(rows=CANDIDATES, tables=TABLE_POLICIES, hour=BUDGETS, random=st.randoms())
@examples(100)
def test_neither_order_nor_repetition_changes_what_is_chosen(
    rows: Rewrites, tables: TablePolicies, hour: Budget, random: st.random.Random
) -> None:
    order = list(range(len(rows)))
    random.shuffle(order)
    shuffled = Rewrites(**{field.name: getattr(rows, field.name)[order] for field in fields(rows)})

    first = choose(rows, tables, hour, RULES)
    again = choose(rows, tables, hour, RULES)
    other = choose(shuffled, tables, hour, RULES)

    assert first.order.tolist() == again.order.tolist()
    assert first.batch.tolist() == again.batch.tolist()
    assert first.reason.tolist() == again.reason.tolist()
    # Rows that are equal in every respect of the order may take each other's place.
    figures = [_figures(rows, first.order), _figures(shuffled, other.order)]
    assert figures[0] == figures[1]


@given(rows=CANDIDATES, tables=TABLE_POLICIES, hour=BUDGETS)
@examples(100)
def test_one_rewrite_stands_for_each_partition_and_it_is_the_chosen_one_if_there_is_one(
    rows: Rewrites, tables: TablePolicies, hour: Budget
) -> None:
    choice = choose(rows, tables, hour, RULES)

    at = representatives(rows, choice)

    pairs = list(zip(rows.table[at].tolist(), rows.partition[at].tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    assert set(pairs) == set(zip(rows.table.tolist(), rows.partition.tolist(), strict=True))
    assert set(choice.order.tolist()) <= set(at.tolist())
    assert "alternative" not in {REASONS[number] for number in choice.reason[at].tolist()}


def _figures(
    rows: Rewrites, at: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> list[tuple[int, ...]]:
    names = ("table", "partition", "files", "size_bytes")
    return list(zip(*(getattr(rows, name)[at].tolist() for name in names), strict=True))


@given(rows=CANDIDATES, tables=TABLE_POLICIES, hour=BUDGETS)
@examples(100)
def test_batches_are_numbered_in_order_of_one_table_each_and_bounded(
    rows: Rewrites, tables: TablePolicies, hour: Budget
) -> None:
    choice = choose(rows, tables, hour, RULES)

    numbers = list(dict.fromkeys(choice.batch.tolist()))
    assert numbers == list(range(len(numbers)))
    for number in numbers:
        at = choice.order[choice.batch == number]
        assert len(set(rows.table[at].tolist())) == 1
        assert len(set(rows.small_bytes[at].tolist())) == 1
        if len(at) > 1:
            assert rows.files[at].sum() <= RULES.max_batch_files
            assert rows.size_bytes[at].sum() <= RULES.max_batch_bytes


@given(
    better=st.lists(st.floats(1.0, 60.0), min_size=3, max_size=3),
    cost=st.floats(0.5, 3.0),
    small=st.floats(1.5, 5.0),
)
@examples(20)
def test_no_table_starves_however_good_others_are(
    better: list[float], cost: float, small: float
) -> None:
    # Three tables have something better to do in each hour, and use up the budget.
    rules = Rules(ageing_days=0.1)
    hour = budget(seconds=0.0, hour_seconds=2.0, carried_hours=6.0)
    waiting = np.zeros(TABLES)
    rows = rewrites(
        table=[0, 1, 2, 3],
        cost_seconds=[2.0, 2.0, 2.0, cost],
        gain_seconds=[*(200.0 * value for value in better), small * cost / 10.0],
        lasting_days=1.0,
    )
    least, most = small, 60.0 * 200.0 * 10.0 / 2.0
    # It doubles its rank until it is above all others; then the budget has to reach it.
    # Meanwhile, the ranks of the others grow for the few hours between their turns.
    bound = rules.ageing_days * 24 * np.log2(most / least) + 24

    hours = 0
    while hours <= bound:
        hours += 1
        hour = hour.refilled(1.0)
        choice = choose(rows, replace(policies(), waiting_days=waiting / 24), hour, rules)
        hour = choice.left
        waiting += 1
        waiting[rows.table[choice.order]] = 0
        if 3 in choice.order:
            break

    assert hours <= bound


@given(writes=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 9)), max_size=40))
@examples(100)
def test_no_more_than_twice_the_bytes_that_were_written_are_rewritten(
    writes: list[tuple[int, int]],
) -> None:
    # Whatever is written, all files are worth merging with those that were merged before.
    size, files, written, rewritten = 0, 0, 0, 0
    for size_bytes, count in writes:
        size, files, written = size + size_bytes, files + count, written + size_bytes
        rows = rewrites(
            files=files,
            size_bytes=size,
            written_bytes=written,
            rewritten_bytes=rewritten,
            gain_seconds=1e9,
        )
        if len(choose(rows, policies(), budget(), Rules()).order):
            files, rewritten = 1, rewritten + size

        assert rewritten <= 2 * written


@given(shares=st.lists(st.floats(0.1, 20.0), min_size=1, max_size=10))
@examples(50)
def test_a_table_uses_no_more_than_its_share_and_one_rewrite(shares: list[float]) -> None:
    hour = budget(seconds=0.0, carried_hours=1000.0)
    debt, spent, hours = 0.0, 0.0, 50
    for _ in range(hours):
        hour, debt = hour.refilled(1.0), max(debt - 0.25, 0.0)
        rows = rewrites(
            table=[0] * len(shares),
            partition=list(range(len(shares))),
            cost_seconds=shares,
            gain_seconds=1e6,
        )
        choice = choose(
            rows,
            policies(max_share=0.25, share_debt=[debt, 0.0, 0.0, 0.0]),
            hour,
            Rules(),
        )
        costs = rows.cost_seconds[choice.order]
        debt += float(hour.share_of(costs, rows.size_bytes[choice.order]).sum())
        spent += float(costs.sum())
        hour = choice.left

    assert spent <= 0.25 * hour.hour_seconds * (hours + 1) + max(shares)
