"""What maintenance chooses from, and under which rules, as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from windrow_service.planner.maintenance.budget import Budget
from windrow_service.planner.splits import Bools, Ints
from windrow_service.planner.writes.keys import Floats

# Why a rewrite waits, or `chosen`; the first that applies counts.
#
# * `off`: the table's policy is off, or the table is paused.
# * `excluded`: the policy leaves the partition alone.
# * `running`: the partition is being rewritten already.
# * `window`: outside the table's window.
# * `quiet`: written too recently.
# * `backing_off`: after conflicts with writers, or failures.
# * `no_gain`: the last runs brought nothing.
# * `nothing_small`: there are no files to merge.
# * `unread`: nobody reads it.
# * `amplification`: it was rewritten enough for what was written into it.
# * `not_worth`: reads would save too little for what it costs.
# * `gathering`: it is worth it, but more files are about to come.
# * `alternative`: another rewrite of the same partition is better.
# * `too_large`: it costs more than the budget can ever hold.
# * `share`: the table has used its share.
# * `budget`: the budget is used up, and this comes next.
Reason: TypeAlias = Literal[
    "off",
    "excluded",
    "running",
    "window",
    "quiet",
    "backing_off",
    "no_gain",
    "nothing_small",
    "unread",
    "amplification",
    "not_worth",
    "gathering",
    "alternative",
    "too_large",
    "share",
    "budget",
    "chosen",
]
REASONS: tuple[Reason, ...] = get_args(Reason)
CHOSEN = REASONS.index("chosen")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The constants of maintenance, which are the same for all tables.

    Attributes:
        amplification: Most bytes rewritten in 30 days, for each byte written.
        horizon_days: A gain counts for at most so long.
        ageing_days: The best rewrite of a table doubles its rank each time the table has waited
            so long.
        backoff_seconds: How long a partition is left alone after a conflict or failure; doubled by
            each further one.
        max_backoff_seconds: The longest back-off.
        idle_seconds: How long a partition is left alone after a run without gain; doubled by each
            further one.
        max_idle_seconds: The longest time that it is left alone for that.
        max_batch_bytes: Most bytes of a batch, unless one rewrite has more.
        max_batch_files: Most files of a batch, unless one rewrite has more.
    """

    amplification: float = 2.0
    horizon_days: float = 30.0
    ageing_days: float = 7.0
    backoff_seconds: float = 15 * 60.0
    max_backoff_seconds: float = 24 * 3600.0
    idle_seconds: float = 6 * 3600.0
    max_idle_seconds: float = 7 * 24 * 3600.0
    max_batch_bytes: int = 8 * 2**30
    max_batch_files: int = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePolicies:
    """The policies of m tables and how much they have had of the budget, as columns.

    Attributes:
        target_bytes: Target size of a file.
        is_off: Whether maintenance of the table is off or paused.
        is_open: Whether the table's window is open now.
        min_quiet_seconds: A partition is left alone for so long after a write.
        min_ratio: Least read seconds saved for each second of rewriting.
        max_share: The table's largest share of the budget, from 0 to 1.
        share_debt: What the table used of its share and has not earned back, in hours of the
            budget: each run adds `Budget.share_of` its cost, and each hour takes off `max_share`,
            until nothing is left.
        waiting_days: Since the table was last rewritten, or since its maintenance began.
        piece_seconds: Core seconds that each batch costs beside its rewrites.
    """

    target_bytes: Ints
    is_off: Bools
    is_open: Bools
    min_quiet_seconds: Floats
    min_ratio: Floats
    max_share: Floats
    share_debt: Floats
    waiting_days: Floats
    piece_seconds: Floats

    def __len__(self) -> int:
        return len(self.is_off)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrites:
    """The n rewrites that are possible, as columns in any order.

    Attributes:
        table: Position of its table in the policies.
        partition: Number of its partition, or bucket or piece of one, within the table. Rows with
            the same number are alternatives, of which at most one is chosen.
        small_bytes: Files below this size are rewritten.
        files: Number of these files.
        becomes: Number of files that they become.
        size_bytes: Bytes that are rewritten.
        cost_seconds: Time of one core to rewrite them.
        gain_seconds: Time of one core that each later read of the partition saves.
        reads_per_day: Expected reads of the partition.
        lasting_days: How long the gain is expected to last: until the files are overwritten or
            expire, or until nobody reads them any more.
        next_write_days: Expected time until the next write into the partition; infinite if none is
            expected.
        gathering_days: How long ago the oldest of the files was written.
        quiet_seconds: Since the last write into the partition.
        written_bytes: Bytes that writers put into the partition in the last 30 days; at least those
            of its files that maintenance has not rewritten.
        rewritten_bytes: Bytes of the partition that maintenance rewrote in the last 30 days.
        failures: Conflicts and failures in a row, up to now.
        failure_seconds: Since the last of them.
        idle_runs: Runs without gain in a row, up to now.
        run_seconds: Since the last run.
        is_excluded: Whether the policy leaves the partition alone.
        is_running: Whether it is being rewritten already.
    """

    table: Ints
    partition: Ints
    small_bytes: Ints
    files: Ints
    becomes: Ints
    size_bytes: Ints
    cost_seconds: Floats
    gain_seconds: Floats
    reads_per_day: Floats
    lasting_days: Floats
    next_write_days: Floats
    gathering_days: Floats
    quiet_seconds: Floats
    written_bytes: Ints
    rewritten_bytes: Ints
    failures: Ints
    failure_seconds: Floats
    idle_runs: Ints
    run_seconds: Floats
    is_excluded: Bools
    is_running: Bools

    def __len__(self) -> int:
        return len(self.table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the budget is spent on, and why the others of n rewrites wait.

    Attributes:
        order: The rewrites that are chosen, best first.
        batch: For each of them, its batch: numbered from 0 by their best rewrites, each of files of
            one table below one size.
        reason: For each of the n, a position in `REASONS`.
        score: For each of the n, the read seconds that a second of rewriting is expected to save.
        saved_seconds: For each of the n, the read seconds that it is expected to save in all.
        wait_seconds: For each of the n, the time after which the reason no longer applies; NaN
            where time alone does not tell.
        left: The budget after the choice.
    """

    order: Ints
    batch: Ints
    reason: Ints
    score: Floats
    saved_seconds: Floats
    wait_seconds: Floats
    left: Budget

    @property
    def saves(self) -> float:
        """Read seconds that the chosen rewrites are expected to save in all."""
        return float(np.sum(self.saved_seconds[self.order]))
