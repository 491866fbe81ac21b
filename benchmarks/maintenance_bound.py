"""What no rule of maintenance can save more than, even if it knows the future.

A knapsack over everything that could be rewritten, with the true costs and all later reads known.
Core seconds have a price, which falls over the days because those that are not spent are kept. With
such prices, the best schedule of each partition is found by dynamic programming. Whatever the
prices, what these schedules save beyond them, and the price of the whole budget, come to an upper
bound; a search over prices finds a low one. Schedules have it easier than any rule: the budget is
kept for ever, batches cost nothing, a merged file is never merged again, all rewrites of a partition
leave one file together, and no rewrite is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from maintenance_run import OPEN_SECONDS, State, model_cost
from maintenance_world import (
    ALL_TICKS,
    HISTORY,
    SMALL_CLASSES,
    Floats,
    Ints,
    World,
)

# Most figures of one step.
_STEP = 8_000_000
# The hours in which prices may fall.
_FALLS = HISTORY + np.array([0, 12, 24, 48, 96, 168, 336, 504])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lives:
    """Files that are written into partitions between two replacements, in groups of equal length.

    Attributes:
        files: Files of each life (row), in the order of their writes.
        cost: True cost of merging one of them.
        later: What opening one file costs all reads after the hour of the write.
        hour: The hour of the write.
        fixed: True cost of each rewrite of the life, whatever it merges.
    """

    files: Floats
    cost: Floats
    later: Floats
    hour: Ints
    fixed: Floats


def most_saved(start: State, hour_seconds: float) -> float:
    """Return an upper bound on the read seconds that a budget saves in the days after the start.

    Args:
        start: The files at first.
        hour_seconds: Core seconds that each hour adds to the budget.
    """
    lives = _lives(start)
    lengths = np.diff(np.append(_FALLS, ALL_TICKS))

    def bound(logs: Floats) -> float:
        last, more, days = np.exp(logs)
        price = last * (1 + more * np.exp(-(_FALLS - HISTORY) / 24 / days))
        saved = sum(_best(one, price) for one in lives)
        return saved + hour_seconds * float((lengths * price).sum())

    # One number after another, in smaller and smaller steps.
    logs = np.log([5.0, 1.0, 4.0])
    lowest = bound(logs)
    for step in (1.0, 0.5, 0.25, 0.12):
        for at in range(len(logs)):
            for sign in (1.0, -1.0):
                moved = logs.copy()
                moved[at] += sign * step
                other = bound(moved)
                while other < lowest:
                    logs, lowest = moved.copy(), other
                    moved[at] += sign * step
                    other = bound(moved)
    return lowest


def _lives(start: State) -> list[_Lives]:
    world = start.world
    life, hour, partition, files, size_bytes = _events(start)
    each = size_bytes / np.maximum(files, 1)
    table = world.table[partition]
    two = np.full(len(each), 2)
    # What one more file of that size costs, and what the rewrite costs without any.
    rate = (
        model_cost(two, 2 * np.full(len(each), 2.0**20))
        - model_cost(two, np.full(len(each), 2.0**20))
    ) / 2**20
    opening = model_cost(two + 1, np.zeros(len(each))) - model_cost(two, np.zeros(len(each)))
    fixed = model_cost(np.zeros(len(each), np.int64), np.zeros(len(each)))
    later = _later(world, life, hour, partition) * OPEN_SECONDS * world.open_factor[table]
    cost = (rate * each + opening) * world.cost_factor[table]
    fixed = fixed * world.cost_factor[table]
    begins = np.flatnonzero(np.concatenate(([True], np.diff(life) != 0)))
    lengths = np.diff(np.concatenate((begins, [len(life)])))
    groups = []
    width = 1
    while width <= 2 * lengths.max():
        rows = np.flatnonzero((lengths <= width) & (lengths > width // 2))
        at = begins[rows, None] + np.minimum(np.arange(width), lengths[rows, None] - 1)
        is_there = np.arange(width) < lengths[rows, None]
        groups.append(
            _Lives(
                files=np.where(is_there, files[at], 0.0),
                cost=cost[at],
                later=later[at],
                hour=hour[at],
                fixed=fixed[begins[rows]],
            )
        )
        width *= 2
    return groups


def _events(start: State) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """Return life, hour, partition, files and bytes of each write, and of what is there at first."""
    world = start.world
    at, size_class = np.nonzero(start.files[:, :SMALL_CLASSES])
    rows = slice(int(world.writes.begins[HISTORY]), int(world.writes.begins[ALL_TICKS]))
    small = world.writes.size_class[rows] < SMALL_CLASSES
    counts = np.diff(world.writes.begins[HISTORY:])
    hour = np.repeat(np.arange(HISTORY, ALL_TICKS), counts)[small]
    columns = [
        (at, world.writes.partition[rows][small]),
        (np.full(len(at), HISTORY), hour),
        (start.files[at, size_class], world.writes.files[rows][small]),
        (start.size_bytes[at, size_class], world.writes.size_bytes[rows][small]),
    ]
    partition, hour, files, size_bytes = (np.concatenate(pair) for pair in columns)
    # What is there at first comes before what replaces it in the same hour.
    is_new = np.concatenate((np.zeros(len(at), np.int64), np.ones(int(small.sum()), np.int64)))
    # Rewrites may wait until prices fall.
    falls = np.tile(_FALLS[1:], world.partitions)
    waits = np.repeat(np.arange(world.partitions), len(_FALLS) - 1)
    partition, hour = np.concatenate((partition, waits)), np.concatenate((hour, falls))
    files = np.concatenate((files, np.zeros(len(falls), np.int64)))
    size_bytes = np.concatenate((size_bytes, np.zeros(len(falls))))
    is_new = np.concatenate((is_new, np.ones(len(falls), np.int64)))
    cuts = _cuts(world)
    moment = partition * ALL_TICKS + hour
    cut = np.where(
        is_new == 1, np.searchsorted(cuts, moment, "right"), np.searchsorted(cuts, moment, "left")
    )
    life = partition * (len(cuts) + 1) + cut
    order = np.lexsort((is_new, hour, life))
    return (
        life[order],
        hour[order],
        partition[order],
        files[order].astype(np.float64),
        size_bytes[order],
    )


def _later(world: World, life: Ints, hour: Ints, partition: Ints) -> Floats:
    """Return the reads after each write, until its files are replaced."""
    total = np.zeros((ALL_TICKS - HISTORY + 1, world.partitions))
    np.cumsum(world.reads[HISTORY:], axis=0, out=total[1:])
    cuts = _cuts(world)
    last = np.append(cuts, np.iinfo(np.int64).max)[life % (len(cuts) + 1)]
    end = np.where(last // ALL_TICKS == partition, last % ALL_TICKS, ALL_TICKS)
    until = total[np.maximum(end - HISTORY, 0), partition]
    return np.maximum(until - total[np.minimum(hour - HISTORY + 1, end - HISTORY), partition], 0.0)


def _cuts(world: World) -> Ints:
    """Return when partitions are replaced: partition x ALL_TICKS + hour, ascending."""
    replaced = world.replaced[HISTORY:]
    hour = np.repeat(np.arange(HISTORY, ALL_TICKS), [len(one) for one in replaced])
    return np.sort(np.concatenate(replaced) * ALL_TICKS + hour)


def _best(lives: _Lives, price: Floats) -> float:
    """Return what the best schedules of some lives save beyond the price of their costs."""
    # A life from which even the lowest price leaves nothing is not worth a schedule.
    worth = (lives.files * np.maximum(lives.later - price[-1] * lives.cost, 0.0)).sum(1)
    rows = np.flatnonzero(worth > price[-1] * lives.fixed)
    step = max(_STEP // lives.files.shape[1] ** 2, 1)
    return sum(_best_of(lives, rows[at : at + step], price) for at in range(0, len(rows), step))


def _best_of(lives: _Lives, rows: Ints, price: Floats) -> float:
    files, later = lives.files[rows], lives.later[rows]
    prices = price[np.searchsorted(_FALLS, lives.hour[rows], "right") - 1]
    # worth[:, t, f]: what merging the files of write f right after write t, or later, is worth. Prices
    # fall, so that later may be better; whoever merges then need not rewrite anything else.
    worth = later[:, :, None] - prices[:, :, None] * lives.cost[rows][:, None, :]
    np.maximum(worth, 0.0, out=worth)
    backwards = worth[:, ::-1]
    np.maximum.accumulate(backwards, axis=1, out=backwards)
    worth *= files[:, None, :]
    # best[:, s]: the best of all schedules whose last rewrite comes right after write s - 1; s = 0 is
    # none. A file goes into the first rewrite after its write, or into none.
    width = files.shape[1]
    best = np.full((len(files), width + 1), -np.inf)
    best[:, 0] = 0.0
    fixed = prices * lives.fixed[rows, None]
    for at in range(width):
        before = np.cumsum(worth[:, at, : at + 1], axis=1)
        whole = before[:, -1]
        # Some file is left from the first rewrite on.
        first = whole - later[:, at]
        others = (best[:, 1 : at + 1] - before[:, :at]).max(1, initial=-np.inf) + whole
        best[:, at + 1] = np.maximum(first, others) - fixed[:, at]
    return float(best.max(1).sum())
