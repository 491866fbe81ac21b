"""Choose the rewrites that save readers most for what they cost, within a budget.

A rewrite is worth the read seconds that it saves in all: those of one read, times the reads that
are expected while its gain lasts. Rewrites are ranked by that for each second that they cost.
"""

from __future__ import annotations

import numpy as np

from windrow_core.sizes import SMALL
from windrow_service.planner.maintenance.budget import Budget
from windrow_service.planner.maintenance.columns import (
    CHOSEN,
    REASONS,
    Choice,
    Reason,
    Rewrites,
    Rules,
    TablePolicies,
)
from windrow_service.planner.splits import Bools, Ints
from windrow_service.planner.writes.keys import Floats

_DAY = 86_400.0
# Less than any rewrite takes; it only keeps scores finite.
_LEAST_SECONDS = 1e-6
# Sums of the same numbers may differ by that.
_ROUNDING = 1e-9
# Beyond that, powers of two only overflow.
_MOST_DOUBLINGS = 60


def choose(rewrites: Rewrites, policies: TablePolicies, budget: Budget, rules: Rules) -> Choice:
    """Choose what the budget is spent on, and say for each other rewrite why it waits.

    The result does not depend on the order of rows, except for rows that are equal in rank, table,
    partition, files and bytes. Without rows, nothing is chosen.

    Args:
        rewrites: n possible rewrites.
        policies: The tables that they belong to.
        budget: What may be spent now.
        rules: The constants of maintenance.

    Complexity: O(n log n).
    """
    table = rewrites.table
    lasting = np.minimum(rewrites.lasting_days, rules.horizon_days)
    until_next = np.minimum(lasting, _days_alone(rewrites, policies))
    each_day = rewrites.gain_seconds * rewrites.reads_per_day
    cost = np.maximum(rewrites.cost_seconds, _LEAST_SECONDS)
    score = each_day * until_next / cost
    backoff = _backoff_left(
        rewrites.failures,
        rewrites.failure_seconds,
        rules.backoff_seconds,
        rules.max_backoff_seconds,
    )
    idle = _backoff_left(
        rewrites.idle_runs, rewrites.run_seconds, rules.idle_seconds, rules.max_idle_seconds
    )
    quiet = policies.min_quiet_seconds[table] - rewrites.quiet_seconds
    least = policies.min_ratio[table]
    conditions: dict[Reason, Bools] = {
        "off": policies.is_off[table],
        "excluded": rewrites.is_excluded,
        "running": rewrites.is_running,
        "window": ~policies.is_open[table],
        "quiet": quiet > 0,
        "backing_off": backoff > 0,
        "no_gain": idle > 0,
        "nothing_small": (rewrites.files < 2) | (rewrites.gain_seconds <= 0),
        "unread": rewrites.reads_per_day <= 0,
        "amplification": rewrites.rewritten_bytes + rewrites.size_bytes
        > rules.amplification * rewrites.written_bytes,
        "not_worth": each_day * lasting / cost < least,
        "gathering": score < least,
    }
    reason = np.select(
        list(conditions.values()), [REASONS.index(name) for name in conditions], CHOSEN
    ).astype(np.int64)
    order = _ranked(rewrites, policies, score, np.flatnonzero(reason == CHOSEN), rules)
    order = _one_of_each(rewrites, order, reason)
    savings = each_day * until_next, each_day * lasting
    order = _worth_a_batch(rewrites, policies, savings, order, reason, score, rules)
    order = _affordable(rewrites, policies, budget, order, reason, rules)
    waits: dict[Reason, Floats] = {
        "quiet": quiet,
        "backing_off": backoff,
        "no_gain": idle,
        "gathering": rewrites.next_write_days * _DAY,
    }
    return Choice(
        order=order,
        batch=_batches(rewrites, order, rules),
        reason=reason,
        score=score,
        saved_seconds=each_day * until_next,
        wait_seconds=np.select(
            [reason == REASONS.index(name) for name in waits], list(waits.values()), np.nan
        ),
        left=budget.spent(
            float(_costs(rewrites, policies, order, rules).sum()),
            float(rewrites.size_bytes[order].sum()),
        ),
    )


def representatives(rewrites: Rewrites, choice: Choice) -> Ints:
    """Return the rewrite of each partition that came closest to being chosen, in any order.

    Args:
        rewrites: Rewrites, some of which are alternatives.
        choice: What was chosen of them.
    """
    # Reasons are numbered in the order in which they are checked.
    order = np.lexsort((choice.score, choice.reason, rewrites.partition, rewrites.table))
    table, partition = rewrites.table[order], rewrites.partition[order]
    is_last = np.ones(len(order), np.bool_)
    is_last[:-1] = (np.diff(table) != 0) | (np.diff(partition) != 0)
    return order[is_last]


def _days_alone(rewrites: Rewrites, policies: TablePolicies) -> Floats:
    """Return for how long a rewrite helps that has to be done again when more files have come.

    If reads lose more each day while files gather, the loss per second of rewriting is smallest if
    a rewrite waits until what it saves each day, times half of the time that its files took to
    gather, is worth its cost. That does not hold for rewrites whose files are large enough to
    stay.
    """
    whole = SMALL * policies.target_bytes[rewrites.table] * np.maximum(rewrites.becomes, 1)
    stays = rewrites.size_bytes >= whole
    waiting = np.maximum(rewrites.gathering_days / 2, rewrites.next_write_days)
    return np.where(stays, np.inf, waiting)


def _backoff_left(times: Ints, since_seconds: Floats, base: float, longest: float) -> Floats:
    """Return how much is left of a pause that doubles each time; zero or less if nothing is."""
    doublings = np.clip(times - 1, 0, _MOST_DOUBLINGS)
    pause = np.minimum(base * np.exp2(doublings), longest)
    return np.where(times > 0, pause - since_seconds, 0.0)


def _ranked(
    rewrites: Rewrites, policies: TablePolicies, score: Floats, rows: Ints, rules: Rules
) -> Ints:
    """Return rows by score, best first; that of the best row of a table grows as the table waits."""
    table = rewrites.table[rows]
    keys = (
        -rewrites.size_bytes[rows],
        -rewrites.files[rows],
        rewrites.partition[rows],
        table,
    )
    by_score = np.lexsort((*keys, -score[rows]))
    _, first = np.unique(table[by_score], return_index=True)
    best = by_score[first]
    rank = score[rows]
    doublings = np.minimum(policies.waiting_days[table[best]] / rules.ageing_days, _MOST_DOUBLINGS)
    rank[best] *= np.exp2(doublings)
    return rows[np.lexsort((*keys, -rank))]


def _one_of_each(rewrites: Rewrites, order: Ints, reason: Ints) -> Ints:
    """Keep the best alternative of each partition, and note the reason of the others."""
    table, partition = rewrites.table[order], rewrites.partition[order]
    together = np.lexsort((partition, table))
    changes = (np.diff(table[together]) != 0) | (np.diff(partition[together]) != 0)
    best = np.zeros(len(order), np.bool_)
    best[together[np.concatenate(([True], changes))[: len(order)]]] = True
    reason[order[~best]] = REASONS.index("alternative")
    return order[best]


def _costs(rewrites: Rewrites, policies: TablePolicies, order: Ints, rules: Rules) -> Floats:
    """Return the costs of ranked rewrites: the first of a batch has what the batch costs beside."""
    _, first = np.unique(_batches(rewrites, order, rules), return_index=True)
    cost = rewrites.cost_seconds[order]
    cost[first] += policies.piece_seconds[rewrites.table[order[first]]]
    return cost


def _worth_a_batch(
    rewrites: Rewrites,
    policies: TablePolicies,
    savings: tuple[Floats, Floats],
    order: Ints,
    reason: Ints,
    score: Floats,
    rules: Rules,
) -> Ints:
    """Keep the batches that are worth what they cost in all, and note why the others are not.

    Args:
        rewrites: Possible rewrites.
        policies: The tables that they belong to.
        savings: What each saves until more files come, and as long as its gain lasts.
        order: Those that are worth it by themselves, the best first.
        reason: The reason of each, for those that are dropped.
        score: The score of each, the same.
        rules: The bounds of a batch.
    """
    batch = _batches(rewrites, order, rules)
    cost = np.bincount(batch, _costs(rewrites, policies, order, rules))
    ratio, most = (
        np.bincount(batch, each[order]) / np.maximum(cost, _LEAST_SECONDS) for each in savings
    )
    least = policies.min_ratio[rewrites.table[order]] * (1 - _ROUNDING)
    is_worth = ratio[batch] >= least
    why = np.where(most[batch] < least, REASONS.index("not_worth"), REASONS.index("gathering"))[
        ~is_worth
    ]
    reason[order[~is_worth]] = why
    score[order[~is_worth]] = ratio[batch][~is_worth]
    return order[is_worth]


def _affordable(
    rewrites: Rewrites,
    policies: TablePolicies,
    budget: Budget,
    order: Ints,
    reason: Ints,
    rules: Rules,
) -> Ints:
    """Keep what the budget pays for, in order, and note the reason of the others.

    The first that does not fit keeps what is left, which grows until it does: so the small ones
    behind it do not starve it.
    """
    size_bytes = rewrites.size_bytes
    cost = _costs(rewrites, policies, order, rules)
    fits = (cost <= budget.max_seconds) & (size_bytes[order] <= budget.max_bytes)
    reason[order[~fits]] = REASONS.index("too_large")
    order, cost = order[fits], cost[fits]
    within = _within_share(rewrites.table[order], cost, size_bytes[order], policies, budget)
    reason[order[~within]] = REASONS.index("share")
    order = order[within]
    fits = (np.cumsum(_costs(rewrites, policies, order, rules)) <= budget.seconds) & (
        np.cumsum(size_bytes[order]) <= budget.size_bytes
    )
    count = len(fits) if fits.all() else int(fits.argmin())
    reason[order[count:]] = REASONS.index("budget")
    return order[:count]


def _within_share(
    table: Ints, cost: Floats, size_bytes: Ints, policies: TablePolicies, budget: Budget
) -> Bools:
    """Return which of some ranked rewrites begin while their table has something of its share."""
    by_table = np.argsort(table, kind="stable")
    share = budget.share_of(cost, size_bytes)[by_table]
    before = np.concatenate(([0.0], np.cumsum(share)[:-1]))[: len(share)]
    _, first, number = np.unique(table[by_table], return_index=True, return_inverse=True)
    before -= before[first][number.reshape(-1)]
    within = np.empty(len(table), np.bool_)
    within[by_table] = (
        policies.share_debt[table[by_table]] + before < policies.max_share[table[by_table]]
    )
    return within


def _batches(rewrites: Rewrites, order: Ints, rules: Rules) -> Ints:
    """Return the batch of each chosen rewrite.

    Batches are of one table and of files below one size, and within the bounds.
    """
    batch = np.empty(len(order), np.int64)
    filling: dict[tuple[int, int], tuple[int, int, int]] = {}
    count = 0
    columns = (rewrites.table, rewrites.small_bytes, rewrites.files, rewrites.size_bytes)
    rows = zip(*(column[order].tolist() for column in columns), strict=True)
    for at, (table, small_bytes, files, size_bytes) in enumerate(rows):
        kind = (table, small_bytes)
        number, of_files, of_bytes = filling.get(kind, (-1, 0, 0))
        of_files, of_bytes = of_files + files, of_bytes + size_bytes
        if number < 0 or of_files > rules.max_batch_files or of_bytes > rules.max_batch_bytes:
            number, of_files, of_bytes, count = count, files, size_bytes, count + 1
        filling[kind] = (number, of_files, of_bytes)
        batch[at] = number
    return batch
