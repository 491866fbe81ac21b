"""Thirty days of a world under one rule of maintenance.

In each hour, writers write, readers read what there is, and then the rule may choose rewrites, which
later reads find done. What a rewrite costs in truth, and what a file costs readers, differs from the
cost model by factors of each table, which no rule knows, and rewrites by chance; each batch (the
rewrites of one table in one hour, below one size) costs more, which the model does not know at all. A
rewrite whose partition a writer replaces meanwhile costs as much and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from maintenance_world import (
    BOUNDS,
    CLASSES,
    HISTORY,
    TARGET,
    TICKS,
    Bools,
    Floats,
    Ints,
    World,
)

from windrow_service.planner.maintenance.budget import Budget
from windrow_service.planner.policy import DEFAULT_OPEN_FILE_COST, READ_BYTES_PER_SECOND
from windrow_service.planner.upkeep.compaction import rewrite_seconds

OPEN_SECONDS = DEFAULT_OPEN_FILE_COST / READ_BYTES_PER_SECOND
# What a batch costs beyond its rewrites, in core seconds: planning, starting tasks, the commit.
BATCH_SECONDS = 0.2
_NOISE = 0.15
_NEVER = -(10**6)


@dataclass(slots=True)
class State:
    """The files of all p partitions now, by size class.

    Attributes:
        world: What happens to them.
        hour: The current hour, from the start of the history.
        files: Files of each partition (row) and size class (column).
        size_bytes: Their bytes.
        since: The hour in which the oldest of them was written.
        fresh_bytes: Bytes that were never rewritten.
        written_bytes: For each partition, bytes written into it up to now.
        rewritten_bytes: For each partition, bytes that were rewritten.
        last_write: For each partition, the hour of the last write into it.
        last_rewrite: For each partition, the hour of the last rewrite.
        failures: For each partition, rewrites in a row that were lost.
        last_failure: For each partition, the hour of the last one that was lost.
    """

    world: World
    hour: int
    files: Ints
    size_bytes: Floats
    since: Ints
    fresh_bytes: Floats
    written_bytes: Floats
    rewritten_bytes: Floats
    last_write: Ints
    last_rewrite: Ints
    failures: Ints
    last_failure: Ints

    @classmethod
    def empty(cls, world: World) -> State:
        """Return the state before anything was written."""
        count, shape = world.partitions, (world.partitions, CLASSES)
        return cls(
            world=world,
            hour=0,
            files=np.zeros(shape, np.int64),
            size_bytes=np.zeros(shape),
            since=np.full(shape, 10**6),
            fresh_bytes=np.zeros(shape),
            written_bytes=np.zeros(count),
            rewritten_bytes=np.zeros(count),
            last_write=np.full(count, _NEVER),
            last_rewrite=np.full(count, _NEVER),
            failures=np.zeros(count, np.int64),
            last_failure=np.full(count, _NEVER),
        )

    def copy(self) -> State:
        """Return a state that changes independently."""
        columns = (
            getattr(self, name).copy() for name in self.__slots__ if name not in ("world", "hour")
        )
        return State(self.world, self.hour, *columns)

    def write(self) -> None:
        """Let writers write what they write in this hour."""
        gone = self.world.replaced[self.hour]
        self._clear(gone, CLASSES)
        rows = self.world.writes.of_hour(self.hour)
        at = (self.world.writes.partition[rows], self.world.writes.size_class[rows])
        size_bytes = self.world.writes.size_bytes[rows]
        self.files[at] += self.world.writes.files[rows]
        self.size_bytes[at] += size_bytes
        self.fresh_bytes[at] += size_bytes
        self.since[at] = np.minimum(self.since[at], self.hour)
        np.add.at(self.written_bytes, at[0], size_bytes)
        self.last_write[at[0]] = self.hour

    def _clear(self, partitions: Ints, classes: int) -> None:
        self.files[partitions, :classes] = 0
        self.size_bytes[partitions, :classes] = 0
        self.fresh_bytes[partitions, :classes] = 0
        self.since[partitions, :classes] = 10**6

    def merge(self, picks: Picks) -> None:
        """Rewrite files of the picked partitions."""
        for classes in np.unique(picks.classes).tolist():
            at = picks.partition[picks.classes == classes]
            size_bytes = self.size_bytes[at, :classes].sum(1)
            self._clear(at, classes)
            becomes = becomes_of(size_bytes)
            size_class = np.searchsorted(BOUNDS, size_bytes / becomes, "right")
            self.files[at, size_class] += becomes
            self.size_bytes[at, size_class] += size_bytes
            self.since[at, size_class] = np.minimum(self.since[at, size_class], self.hour)
            self.rewritten_bytes[at] += size_bytes
            self.last_rewrite[at] = self.hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Picks:
    """Rewrites that a rule picks, best first: at most one of each partition.

    Attributes:
        partition: The partition of each.
        classes: How many size classes are rewritten, from the smallest on.
        cost_seconds: What it should cost.
        size_bytes: The bytes that are rewritten.
        files: How many files there are fewer.
    """

    partition: Ints
    classes: Ints
    cost_seconds: Floats
    size_bytes: Floats
    files: Ints

    def take(self, rows: Ints) -> Picks:
        """Return some of them."""
        return Picks(**{name: getattr(self, name)[rows] for name in self.__slots__})


class Rule(Protocol):
    """A way to choose what is rewritten."""

    @property
    def name(self) -> str:
        """How tables call it."""

    def pick(self, state: State, budget: Budget) -> Picks:
        """Return what is rewritten in this hour."""

    def learn(self, state: State, receipts: HourReceipts) -> None:
        """Take note of what rewrites of this hour came to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HourReceipts:
    """What the picks of an hour came to: their true costs, and the gain that later reads measure."""

    picks: Picks
    cost_seconds: Floats
    gain_seconds: Floats
    is_lost: Bools


@dataclass(slots=True)
class Outcome:
    """What thirty days under one rule came to.

    Attributes:
        name: The rule.
        read_seconds: For each table, what opening files cost its readers.
        spent_seconds: True cost of all rewrites.
        rewritten_bytes: Bytes that were rewritten.
        written_bytes: Bytes that writers wrote in these days.
        rewrites: Number of rewrites.
        lost: How many of them were lost to writers.
    """

    name: str
    read_seconds: Floats
    spent_seconds: float = 0.0
    rewritten_bytes: float = 0.0
    written_bytes: float = 0.0
    rewrites: int = 0
    lost: int = 0
    spent_by_hour: list[float] = field(default_factory=list)


def start_of(world: World) -> State:
    """Return the files after thirty days of writes without maintenance."""
    state = State.empty(world)
    for state.hour in range(HISTORY):
        state.write()
    return state


def becomes_of(size_bytes: Floats) -> Ints:
    """Return how many files come nearest to the target."""
    return np.maximum(np.round(size_bytes / TARGET), 1).astype(np.int64)


def model_cost(files: Ints, size_bytes: Floats) -> Floats:
    """Return what the product's cost model predicts, in core seconds."""
    return rewrite_seconds(files, size_bytes.astype(np.int64), becomes_of(size_bytes), TARGET)


def simulate(start: State, rule: Rule | None, budget: Budget, seed: int) -> Outcome:
    """Return what thirty days come to under a rule; under none if it is None."""
    state, world = start.copy(), start.world
    random = np.random.default_rng(seed)
    outcome = Outcome(
        name="untouched" if rule is None else rule.name, read_seconds=np.zeros(world.tables)
    )
    written_before = state.written_bytes.sum()
    for state.hour in range(HISTORY, HISTORY + TICKS):
        state.write()
        opens = world.reads[state.hour] * state.files.sum(1)
        outcome.read_seconds += np.bincount(world.table, opens, world.tables)
        if rule is None:
            continue
        budget = budget.refilled(1.0)
        picks = rule.pick(state, budget)
        receipts = _receipts(state, picks, random)
        budget = budget.spent(float(receipts.cost_seconds.sum()), float(picks.size_bytes.sum()))
        _note(state, receipts, outcome)
        rule.learn(state, receipts)
    outcome.read_seconds *= OPEN_SECONDS * world.open_factor
    outcome.written_bytes = float(state.written_bytes.sum() - written_before)
    return outcome


def _receipts(state: State, picks: Picks, random: np.random.Generator) -> HourReceipts:
    world, hour = state.world, state.hour
    table = world.table[picks.partition]
    noise = random.lognormal(0, _NOISE, len(table))
    batch = table * CLASSES + picks.classes
    batch_seconds = BATCH_SECONDS / np.bincount(batch)[batch]
    lost = np.zeros(world.partitions, np.bool_)
    if hour + 1 < HISTORY + TICKS:
        lost[world.replaced[hour + 1]] = world.collides[hour + 1]
    return HourReceipts(
        picks=picks,
        cost_seconds=picks.cost_seconds * world.cost_factor[table] * noise + batch_seconds,
        gain_seconds=picks.files * OPEN_SECONDS * world.open_factor[table]
        * random.lognormal(0, _NOISE, len(table)),
        is_lost=lost[picks.partition],
    )  # fmt: skip


def _note(state: State, receipts: HourReceipts, outcome: Outcome) -> None:
    picks, lost = receipts.picks, receipts.is_lost
    cost = float(receipts.cost_seconds.sum())
    outcome.spent_seconds += cost
    outcome.spent_by_hour.append(cost)
    outcome.rewritten_bytes += float(picks.size_bytes.sum())
    outcome.rewrites += len(lost)
    outcome.lost += int(lost.sum())
    state.failures[picks.partition] = np.where(lost, state.failures[picks.partition] + 1, 0)
    state.last_failure[picks.partition[lost]] = state.hour
    state.merge(picks.take(np.flatnonzero(~lost)))
