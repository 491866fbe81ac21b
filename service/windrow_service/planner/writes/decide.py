"""Which scheme a write should use, what each scheme would produce, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from windrow_core.cards import count_text
from windrow_core.sizes import SMALL
from windrow_service.planner.splits import Ints
from windrow_service.planner.writes.errors import SchemeUnfitError, TooManyFilesError
from windrow_service.planner.writes.exact import ExactTasks, files_per_key, pack
from windrow_service.planner.writes.keys import WriteKeys
from windrow_service.planner.writes.outcomes import Outcome
from windrow_service.planner.writes.schemes import (
    by_columns,
    dealt,
    exactly,
    ranged_by_hash,
    salted,
    scale_for,
)

# Part of all files that may be small, not counting the files of keys that are small themselves.
_FEW_SMALL = 0.05
# In targets: the other tasks have to wait for a longer one.
_LONG_TASK = 1.5
_LARGE_FILE = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write to be planned.

    Attributes:
        keys: The keys that schemes have to place; equal ones if their rows were not counted.
        tasks: Number of files of the target size for all keys together.
        divided: Whether the table has partition columns or buckets.
        files_per_key: Number of files for every key, if the caller gave it.
        source_tasks: Spark partitions of the data before the write; None if unknown.
        parallelism: How many tasks run at the same time; None if unknown.
        efficiency: Efficiency that `salted` should reach.
        exact: Where an exact plan puts the keys; None if their rows were not counted.
    """

    keys: WriteKeys
    tasks: int
    divided: bool
    files_per_key: int | None
    source_tasks: int | None
    parallelism: int | None = None
    efficiency: float
    exact: ExactTasks | None = None

    @property
    def salts(self) -> int:
        """Number of files of each key if all keys get the same number."""
        return self.files_per_key or max(1, round(self.tasks / max(len(self.keys), 1)))

    def key_files(self) -> Ints:
        """Return the number of files that an exact plan gives each key."""
        if self.files_per_key is None:
            return files_per_key(self.keys)
        return np.minimum(self.files_per_key, np.maximum(self.keys.rows, 1))

    def placed(self) -> Write:
        """Return the same write with its exact plan."""
        return replace(self, exact=self.packed())

    def packed(self) -> ExactTasks:
        """Return where an exact plan puts the keys."""
        return pack(self.keys, self.key_files(), self.parallelism)


@dataclass(frozen=True, slots=True)
class Judged:
    """The judgement of one scheme for one write."""

    scheme: str
    outcome: Outcome
    serves: bool
    reason: str


def choose(write: Write) -> tuple[str, str]:
    """Return the scheme for a write, and the reason for the choice."""
    if not write.divided or (write.keys.counted and len(write.keys) == 1):
        one = "there is one partition to write"
        if write.source_tasks is not None and write.tasks <= write.source_tasks < 2 * write.tasks:
            return "coalesce", (
                f"{one}, and almost as many tasks produce its rows as it gets files "
                f"({write.tasks:,}), so no rows need to be moved"
            )
        return "repartition", f"{one}: rows are dealt out evenly, whatever the skew"
    if write.keys.counted:
        return "exact", "the rows of each partition are known, so each gets the files it needs"
    if write.files_per_key is not None:
        return "salted", (
            "every partition gets the same number of files, as requested, and their rows have not "
            f"been counted; figures assume {_equal(write)}, as in the table now"
        )
    return "range_hash", (
        "the rows of each partition have not been counted, and even ranges bound the size of files "
        f"and tasks without that; figures assume {_equal(write)}, as in the table "
        "now, and fewer partitions give fewer files"
    )


def judge(scheme: str, write: Write) -> Judged:
    """Predict the outcome of a scheme for a write, and tell whether the scheme suits it."""
    outcome = SCHEMES[scheme].predict(write)
    if SCHEMES[scheme].by_keys and not write.divided:
        problems = ["there are no partition columns to place rows by"]
    else:
        problems = [*_own_problems(scheme, write), *_problems(outcome, write)]
    if problems:
        return Judged(scheme, outcome, False, "; ".join(problems))
    return Judged(scheme, outcome, True, SCHEMES[scheme].merit)


def file_count(scheme: str, write: Write) -> int:
    """Return how many files a scheme makes, without predicting anything else."""
    rows = write.keys.rows[write.keys.rows > 0]
    if scheme == "exact":
        return int(write.key_files()[write.keys.rows > 0].sum())
    if scheme == "range_hash":
        return min(write.tasks + len(rows) - 1, int(rows.sum())) if len(rows) else 0
    each = {"coalesce": write.tasks, "repartition": write.tasks, "salted": write.salts}
    return int(np.minimum(rows, each.get(scheme, 1)).sum())


def refuse_too_many(files: int, max_files: int) -> None:
    """Check that a plan stays within its limit."""
    if files > max_files:
        raise TooManyFilesError(files, max_files)


def refuse_unfit(scheme: str, write: Write) -> None:
    """Check that a requested scheme can place the rows at all."""
    if scheme == "exact" and not write.keys.counted:
        raise SchemeUnfitError(
            "an exact plan needs the rows of each partition",
            "give {keys} or {keys_from}, or use scheme range_hash, which needs neither",
        )
    if SCHEMES[scheme].by_keys and not write.divided:
        raise SchemeUnfitError(
            f"scheme {scheme} places rows by partition columns, and the table has none: use "
            "repartition or coalesce"
        )
    if scheme == "coalesce" and (write.source_tasks or write.tasks) < write.tasks:
        raise SchemeUnfitError(
            f"coalesce cannot increase the number of tasks from {write.source_tasks:,} to the "
            f"{write.tasks:,} that are needed: use repartition"
        )


def _salted(write: Write) -> Outcome:
    return salted(write.keys, write.salts, scale_for(write.keys, write.salts, write.efficiency))


@dataclass(frozen=True, slots=True)
class Scheme:
    """A way to place the rows of a write on Spark partitions.

    Attributes:
        predict: Predicts its outcome for a write.
        merit: Why it serves a write that it suits.
        by_keys: Whether it needs partition columns or buckets.
    """

    predict: Callable[[Write], Outcome]
    merit: str
    by_keys: bool = False


SCHEMES: Mapping[str, Scheme] = {
    "coalesce": Scheme(
        lambda write: dealt(write.keys, min(write.tasks, write.source_tasks or write.tasks)),
        "no row is moved, and the stage that produces the rows keeps most of its tasks",
    ),
    "repartition": Scheme(
        lambda write: dealt(write.keys, write.tasks), "rows are dealt out evenly"
    ),
    "columns": Scheme(
        lambda write: by_columns(write.keys, write.tasks),
        "every partition is about one file, and tasks are about equal",
        by_keys=True,
    ),
    "salted": Scheme(
        _salted,
        "all partitions are about equal, so one number of files suits them all",
        by_keys=True,
    ),
    "range_hash": Scheme(
        lambda write: ranged_by_hash(write.keys, write.tasks),
        "even ranges bound the size of files and tasks, whatever the partitions hold",
        by_keys=True,
    ),
    "exact": Scheme(
        lambda write: exactly(write.keys, write.exact or write.packed()),
        "each partition gets the files it needs",
    ),
}


def _equal(write: Write) -> str:
    return count_text(len(write.keys), "equal partition")


def _own_problems(scheme: str, write: Write) -> list[str]:
    if scheme == "coalesce" and write.source_tasks is None:
        return ["the number of tasks that produce the rows is unknown (source_tasks)"]
    if scheme == "coalesce" and write.source_tasks is not None:
        if write.source_tasks < write.tasks:
            tasks = count_text(write.source_tasks, "task")
            return [f"the rows come in {tasks}, and coalesce cannot add any"]
        if write.source_tasks >= 2 * write.tasks:
            return [
                "the stage that produces the rows would run in "
                f"{count_text(write.tasks, 'task')} instead of {write.source_tasks:,}"
            ]
    if scheme == "exact" and not write.keys.counted:
        return ["it needs the rows of each partition"]
    return []


def _problems(outcome: Outcome, write: Write) -> list[str]:
    """Return the problems of an outcome, the worst first."""
    enough = max(write.tasks, len(write.keys))
    problems = []
    if outcome.files > 2 * enough:
        problems.append(f"it makes {outcome.files:,} files where {enough:,} would be enough")
    if outcome.largest_task > _LONG_TASK:
        problems.append(
            f"one task writes {outcome.largest_task:,.1f} targets while the others wait"
        )
    if outcome.largest_file > _LARGE_FILE:
        problems.append(f"its largest file has {outcome.largest_file:,.1f} targets")
    unavoidable = int(np.count_nonzero(write.keys.weight < SMALL))
    small = outcome.small_files - unavoidable
    if small > _FEW_SMALL * outcome.files:
        problems.append(f"{100 * small / outcome.files:.0f} % of its files are needlessly small")
    return problems
