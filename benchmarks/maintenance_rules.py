"""The rules of maintenance that the simulation compares: Windrow's, and public ones.

Each public rule is rebuilt from its text, with the target, the budget, the cost model, the order
and the carrying-over of Windrow's, where the text leaves them open:

* `files per GB-hour` is AutoComp's (arXiv 2504.04186; openhouse's libs/datalayout): partitions by
  the files that compaction removes, for each GB-hour (bytes / 2 MB/s x 2 GB, and 0.5 GB-hours for
  the start), greedily within the budget, or by the same sums of their tables. Files under three
  quarters of the target, and at least five, as Iceberg rewrites them. Its rule that tables without
  partitions count nothing while they change is left out, which is better for it.
* `fragments` is Amoro's: partitions with at least 12 files under an eighth of the target, or that
  have had at least two for an hour, of which these are merged; those with most come first.
* `hundred files` is Glue's: partitions with more than 100 files under three quarters of the target;
  those with most come first, or those with the fewest bytes.
* `debt` is Floe's: the share of small files (or that, times the logarithm of their number), the
  time since the last rewrite, and failures are added up; five files at least, and a back-off of six
  hours after three failures.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from maintenance_run import OPEN_SECONDS, HourReceipts, Picks, State, becomes_of, model_cost
from maintenance_world import BOUNDS, CLASSES, DAYS, SMALL_CLASSES, TARGET, Bools, Floats, Ints

from windrow_service.planner.maintenance.budget import Budget
from windrow_service.planner.maintenance.choose import choose
from windrow_service.planner.maintenance.columns import Rewrites, Rules, TablePolicies
from windrow_service.planner.maintenance.corrections import PIECE_SECONDS, Receipts, corrections
from windrow_service.planner.maintenance.reading import Expectation, expected_events

# Files under an eighth of the target, half of it, and three quarters of it.
_EIGHTH, _HALF, _THREE_QUARTERS = SMALL_CLASSES - 1, SMALL_CLASSES, SMALL_CLASSES + 1
_KNOWN_DAYS = 14
_HOURS_BETWEEN_ESTIMATES = 6


@dataclass(frozen=True, slots=True)
class FilesPerGbHour:
    """AutoComp: files removed for each GB-hour."""

    name: str = "AutoComp: files per GB-hour"
    by_table: bool = False

    def pick(self, state: State, budget: Budget) -> Picks:
        """See `Rule.pick`."""
        files, size_bytes = _below(state, _THREE_QUARTERS)
        removed, of_bytes = (files - becomes_of(size_bytes)) * (files >= 5), size_bytes
        if self.by_table:
            table, count = state.world.table, state.world.tables
            removed = np.bincount(table, removed, count)[table]
            of_bytes = np.bincount(table, of_bytes, count)[table]
        gb_hours = of_bytes / (2 * 2**20) / 3600 * 2 + 0.5
        return _greedy(state, budget, _THREE_QUARTERS, files >= 5, removed / gb_hours)

    def learn(self, state: State, receipts: HourReceipts) -> None:
        """See `Rule.learn`."""


@dataclass(frozen=True, slots=True)
class Fragments:
    """Amoro: at least 12 files under an eighth of the target, or any after an hour."""

    name: str = "Amoro: 12 fragments"
    waits: bool = True

    def pick(self, state: State, budget: Budget) -> Picks:
        """See `Rule.pick`."""
        files, _ = _below(state, _EIGHTH)
        is_due = files >= 12
        if not self.waits:
            is_due |= (files >= 2) & (state.since[:, :_EIGHTH].min(1) < state.hour)
        return _greedy(state, budget, _EIGHTH, is_due, files.astype(np.float64))

    def learn(self, state: State, receipts: HourReceipts) -> None:
        """See `Rule.learn`."""


@dataclass(frozen=True, slots=True)
class HundredFiles:
    """Glue: more than 100 files under three quarters of the target."""

    name: str = "Glue: 100 small files"
    fewest_bytes: bool = False

    def pick(self, state: State, budget: Budget) -> Picks:
        """See `Rule.pick`."""
        files, size_bytes = _below(state, _THREE_QUARTERS)
        score = -size_bytes if self.fewest_bytes else files.astype(np.float64)
        return _greedy(state, budget, _THREE_QUARTERS, files > 100, score)

    def learn(self, state: State, receipts: HourReceipts) -> None:
        """See `Rule.learn`."""


@dataclass(frozen=True, slots=True)
class Debt:
    """Floe: health, time since the last rewrite, and failures."""

    name: str = "Floe: debt"
    by_count: bool = True

    def pick(self, state: State, budget: Budget) -> Picks:
        """See `Rule.pick`."""
        files, _ = _below(state, _THREE_QUARTERS)
        share = files / np.maximum(state.files.sum(1), 1)
        health = np.log1p(files) * share if self.by_count else share
        days = np.minimum((state.hour - state.last_rewrite) / 24, 7.0)
        score = health + days / 7 - state.failures
        rests = (state.failures >= 3) & (state.hour - state.last_failure < 6)
        return _greedy(state, budget, _THREE_QUARTERS, (files >= 5) & ~rests, score)

    def learn(self, state: State, receipts: HourReceipts) -> None:
        """See `Rule.learn`."""


def _below(state: State, classes: int) -> tuple[Ints, Floats]:
    return state.files[:, :classes].sum(1), state.size_bytes[:, :classes].sum(1)


def _greedy(state: State, budget: Budget, classes: int, is_due: Bools, score: Floats) -> Picks:
    """Return partitions by score, until the budget is used up."""
    files, size_bytes = _below(state, classes)
    rows = np.flatnonzero(is_due & (files > becomes_of(size_bytes)))
    cost = model_cost(files[rows], size_bytes[rows])
    possible = (cost <= budget.max_seconds) & (size_bytes[rows] <= budget.max_bytes)
    rows, cost = rows[possible], cost[possible]
    order = np.lexsort((rows, -score[rows]))
    rows, cost = rows[order], cost[order]
    fits = (np.cumsum(cost) <= budget.seconds) & (np.cumsum(size_bytes[rows]) <= budget.size_bytes)
    rows, cost = rows[fits], cost[fits]
    return Picks(
        partition=rows,
        classes=np.full(len(rows), classes),
        cost_seconds=cost,
        size_bytes=size_bytes[rows],
        files=files[rows] - becomes_of(size_bytes[rows]),
    )


@dataclass(slots=True)
class Windrow:
    """The product's own choice, with what a coordinator knows: past reads, writes and receipts.

    Attributes:
        name: How tables call it.
        knows_reads: Whether it knows how often partitions are read; if not, all count the same.
        chooses_files: Whether it may rewrite only the smallest files of a partition, as coordinators
            offer it; if not, all files under half of the target.
        corrects: Whether receipts correct predictions.
    """

    name: str = "Windrow"
    knows_reads: bool = True
    chooses_files: bool = True
    corrects: bool = True
    _estimates: Estimates | None = None
    _receipts: list[tuple[Ints, Floats, Floats, Floats, Floats]] = field(default_factory=list)
    _waiting_since: Ints | None = None

    def pick(self, state: State, budget: Budget) -> Picks:
        """See `Rule.pick`."""
        world = state.world
        if self._waiting_since is None:
            self._waiting_since = np.full(world.tables, state.hour)
        if self._estimates is None or state.hour % _HOURS_BETWEEN_ESTIMATES == 0:
            self._estimates = _estimates(state, self._corrections(world.tables), self.knows_reads)
        rewrites, classes = _rewrites(state, self._estimates, self.chooses_files)
        count = world.tables
        policies = TablePolicies(
            target_bytes=np.full(count, TARGET),
            is_off=np.zeros(count, np.bool_),
            is_open=np.ones(count, np.bool_),
            min_quiet_seconds=np.zeros(count),
            min_ratio=np.ones(count),
            max_share=np.ones(count),
            share_debt=np.zeros(count),
            waiting_days=(state.hour - self._waiting_since) / 24,
            piece_seconds=self._estimates.piece_seconds,
        )
        choice = choose(rewrites, policies, budget, Rules())
        at = choice.order
        partition = rewrites.partition[at]
        self._waiting_since[rewrites.table[at]] = state.hour
        return Picks(
            partition=partition,
            classes=classes[at],
            cost_seconds=model_cost(rewrites.files[at], rewrites.size_bytes[at].astype(np.float64)),
            size_bytes=rewrites.size_bytes[at].astype(np.float64),
            files=rewrites.files[at] - rewrites.becomes[at],
        )

    def learn(self, state: State, receipts: HourReceipts) -> None:
        """See `Rule.learn`."""
        picks = receipts.picks
        table = state.world.table[picks.partition]
        gain = np.where(receipts.is_lost, np.nan, receipts.gain_seconds)
        # A receipt is of a batch.
        _, first, batch = np.unique(
            table * CLASSES + picks.classes, return_index=True, return_inverse=True
        )
        amounts = (picks.cost_seconds, receipts.cost_seconds, picks.files * OPEN_SECONDS, gain)
        cost, real_cost, saving, real_saving = (np.bincount(batch, one) for one in amounts)
        self._receipts.append((table[first], cost, real_cost, saving, real_saving))

    def _corrections(self, tables: int) -> tuple[Floats, Floats, Floats]:
        if not self._receipts or not self.corrects:
            return np.full(tables, PIECE_SECONDS), np.ones(tables), np.ones(tables)
        # Those of the last five days.
        columns = [np.concatenate(column) for column in zip(*self._receipts[-120:], strict=True)]
        names = ("table", "predicted_cost", "cost", "predicted_gain", "gain")
        factors = corrections(Receipts(**dict(zip(names, columns, strict=True))), tables)
        return factors.piece, factors.cost, factors.gain


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """What is expected of each partition, and the corrections of each table."""

    reads: Expectation
    writes_per_day: Floats
    lasting_days: Floats
    piece_seconds: Floats
    cost: Floats
    gain: Floats


def _estimates(
    state: State, factors: tuple[Floats, Floats, Floats], knows_reads: bool
) -> Estimates:
    """Estimate from what has happened up to now."""
    world, hour = state.world, state.hour
    age = np.maximum((hour + 1) / 24 - world.first_day, 0.0)
    # What has happened in this hour is known, too.
    reads, writes, replaced = (
        of_days(hour + 1, _KNOWN_DAYS)
        for of_days in (world.reads_of_days, world.writes_of_days, world.replacements_of_days)
    )
    if not knows_reads:
        reads = np.full_like(reads, 10)
    expected = expected_events(world.table, age, reads, DAYS)
    writing = expected_events(world.table, age, writes, 1)
    replacing = expected_events(world.table, age, replaced, 1)
    lasting = 1 / (1 / np.maximum(expected.lasting_days, 1e-9) + replacing.per_day)
    return Estimates(
        reads=expected,
        writes_per_day=writing.per_day,
        lasting_days=lasting,
        piece_seconds=factors[0],
        cost=factors[1],
        gain=factors[2],
    )


def _rewrites(state: State, estimates: Estimates, chooses_files: bool) -> tuple[Rewrites, Ints]:
    """Return every way to rewrite files below a size, and how many size classes each has."""
    files = np.cumsum(state.files[:, :_HALF], axis=1)
    size_bytes = np.cumsum(state.size_bytes[:, :_HALF], axis=1)
    fresh = np.cumsum(state.fresh_bytes[:, :_HALF], axis=1)
    since = np.minimum.accumulate(state.since[:, :_HALF], axis=1)
    # A bound is no other way if the next one takes in no further file.
    is_other = files >= 2
    is_other[:, :-1] &= files[:, :-1] != files[:, 1:]
    at, last = np.nonzero(is_other)
    if not chooses_files:
        at = np.flatnonzero(files[:, -1] >= 2)
        last = np.full(len(at), _HALF - 1)
    table, count, of_bytes = state.world.table[at], files[at, last], size_bytes[at, last]
    becomes = becomes_of(of_bytes)
    next_write = 1 / np.maximum(estimates.writes_per_day, 1e-9)
    hour = state.hour
    return Rewrites(
        table=table,
        partition=at,
        small_bytes=BOUNDS[last],
        files=count,
        becomes=becomes,
        size_bytes=of_bytes.astype(np.int64),
        cost_seconds=model_cost(count, of_bytes) * estimates.cost[table],
        gain_seconds=np.maximum(count - becomes, 0) * OPEN_SECONDS * estimates.gain[table],
        reads_per_day=estimates.reads.per_day[at],
        lasting_days=estimates.lasting_days[at],
        next_write_days=next_write[at],
        gathering_days=(hour + 1 - since[at, last]) / 24,
        quiet_seconds=(hour - state.last_write[at]) * 3600.0,
        written_bytes=np.maximum(state.written_bytes[at], fresh[at, last]).astype(np.int64),
        rewritten_bytes=state.rewritten_bytes[at].astype(np.int64),
        failures=state.failures[at],
        failure_seconds=(hour - state.last_failure[at]) * 3600.0,
        idle_runs=np.zeros(len(at), np.int64),
        run_seconds=(hour - state.last_rewrite[at]) * 3600.0,
        is_excluded=np.zeros(len(at), np.bool_),
        is_running=np.zeros(len(at), np.bool_),
    ), last + 1
