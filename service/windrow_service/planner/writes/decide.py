"""Which scheme a write should use, what each would come to, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from windrow_service.planner.splits import Ints
from windrow_service.planner.writes.errors import SchemeUnfitError, TooManyFilesError
from windrow_service.planner.writes.exact import ExactTasks, files_per_key, pack
from windrow_service.planner.writes.keys import SMALL, Keys
from windrow_service.planner.writes.outcomes import Outcome
from windrow_service.planner.writes.schemes import (
    by_columns,
    dealt,
    exactly,
    ranged,
    ranged_by_hash,
    salted,
    scale_for,
)

SCHEMES = ("coalesce", "repartition", "columns", "salted", "range", "range_hash", "exact")
_BY_KEYS = ("columns", "salted", "range", "range_hash")
# Of all files: so many small ones may be, beyond those of keys that are small themselves.
_FEW_SMALL = 0.05
# Tasks of more targets than this keep the others waiting.
_LONG_TASK = 1.5
_LARGE_FILE = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """What is to be written.

    Attributes:
        keys: What schemes have to place; equal ones where nobody counted.
        tasks: Files of the wanted size, all keys together.
        divided: Whether the table has partition columns or buckets.
        files_per_key: The same for every key, where somebody said so.
        source_tasks: Spark partitions of the data before; None if that is not known.
        parallelism: How many tasks run at the same time; None if that is not known.
        efficiency: Wanted of `salted`.
        exact: Where an exact plan puts the keys; None where nobody counted.
    """

    keys: Keys
    tasks: int
    divided: bool
    files_per_key: int | None
    source_tasks: int | None
    parallelism: int | None = None
    efficiency: float
    exact: ExactTasks | None = None

    @property
    def salts(self) -> int:
        """Files of each key if all are given the same."""
        return self.files_per_key or max(1, round(self.tasks / max(len(self.keys), 1)))

    def key_files(self) -> Ints:
        """Return how many files an exact plan gives each key."""
        if self.files_per_key is None:
            return files_per_key(self.keys)
        return np.minimum(self.files_per_key, np.maximum(self.keys.rows, 1))

    def placed(self) -> Write:
        """Return the same with its exact plan."""
        return replace(self, exact=self.packed())

    def packed(self) -> ExactTasks:
        """Return where an exact plan puts the keys."""
        return pack(self.keys, self.key_files(), self.parallelism)


@dataclass(frozen=True, slots=True)
class Judged:
    """One scheme for one write."""

    scheme: str
    outcome: Outcome
    serves: bool
    reason: str


def choose(write: Write) -> tuple[str, str]:
    """Return the scheme for a write, and why it is the one."""
    if not write.divided or (write.keys.counted and len(write.keys) == 1):
        one = "there is one partition to write"
        if write.source_tasks is not None and write.tasks <= write.source_tasks < 2 * write.tasks:
            return "coalesce", (
                f"{one}, and its {write.tasks:,} files are almost as many as the tasks that make "
                "the rows, so that nothing needs to be moved"
            )
        return "repartition", f"{one}: rows are dealt out evenly, whatever the skew"
    if write.keys.counted:
        return "exact", "the rows of each partition are known, so each gets the files it needs"
    if write.files_per_key is not None:
        return "salted", (
            "every partition is to have the same number of files, and nobody counted their rows; "
            f"figures are for {len(write.keys):,} partitions, as the table has"
        )
    return "range_hash", (
        "nobody counted the rows of each partition, and even ranges bound files and tasks without "
        f"that; figures are for {len(write.keys):,} equal partitions, as the table has, and fewer "
        "make fewer files"
    )


def judge(scheme: str, write: Write) -> Judged:
    """Predict what a scheme makes of a write, and say whether it is fit for it."""
    outcome = _PREDICTIONS[scheme](write)
    if scheme in _BY_KEYS and not write.divided:
        problems = ["there are no partition columns to place rows by"]
    else:
        problems = [*_own_problems(scheme, write), *_problems(outcome, write)]
    if problems:
        return Judged(scheme, outcome, False, "; ".join(problems))
    return Judged(scheme, outcome, True, _MERITS[scheme])


def file_count(scheme: str, write: Write) -> int:
    """Return how many files a scheme makes, and nothing else of what it comes to."""
    rows = write.keys.rows[write.keys.rows > 0]
    if scheme == "exact":
        return int(write.key_files()[write.keys.rows > 0].sum())
    if scheme == "range_hash":
        return min(write.tasks + len(rows) - 1, int(rows.sum())) if len(rows) else 0
    each = {"coalesce": write.tasks, "repartition": write.tasks, "salted": write.salts}
    return int(np.minimum(rows, each.get(scheme, 1)).sum())


def refuse_too_many(files: int, max_files: int) -> None:
    """Make sure that a plan stays within its limit.

    Raises:
        TooManyFilesError: It does not.
    """
    if files > max_files:
        raise TooManyFilesError(files, max_files)


def refuse_unfit(scheme: str, write: Write) -> None:
    """Make sure that a scheme that was asked for can place the rows at all.

    Raises:
        SchemeUnfitError: It cannot.
    """
    if scheme == "exact" and not write.keys.counted:
        raise SchemeUnfitError(
            "an exact plan needs the rows of each partition: give keys, or keys_from, or take "
            "scheme range_hash, which needs none"
        )
    if scheme in _BY_KEYS and not write.divided:
        raise SchemeUnfitError(
            f"scheme {scheme} places rows by partition columns, and there are none: take "
            "repartition or coalesce"
        )
    if scheme == "coalesce" and (write.source_tasks or write.tasks) < write.tasks:
        raise SchemeUnfitError(
            f"coalesce makes tasks fewer, and {write.tasks:,} are needed of "
            f"{write.source_tasks:,}: take repartition"
        )


def _salted(write: Write) -> Outcome:
    return salted(write.keys, write.salts, scale_for(write.keys, write.salts, write.efficiency))


_PREDICTIONS: Mapping[str, Callable[[Write], Outcome]] = {
    "coalesce": lambda write: dealt(
        write.keys, min(write.tasks, write.source_tasks or write.tasks)
    ),
    "repartition": lambda write: dealt(write.keys, write.tasks),
    "columns": lambda write: by_columns(write.keys, write.tasks),
    "salted": _salted,
    "range": lambda write: ranged(write.keys, write.tasks),
    "range_hash": lambda write: ranged_by_hash(write.keys, write.tasks),
    "exact": lambda write: exactly(write.keys, write.exact or write.packed()),
}

_MERITS: Mapping[str, str] = {
    "coalesce": "no row is moved, and the stage that makes the rows runs in as few tasks",
    "repartition": "rows are dealt out evenly",
    "columns": "every partition is about one file, and tasks are about equal",
    "salted": "all partitions are about equal, so that one number of files fits them",
    "range": "every partition is about one file",
    "range_hash": "even ranges bound files and tasks, whatever the partitions hold",
    "exact": "each partition gets the files it needs",
}


def _own_problems(scheme: str, write: Write) -> list[str]:
    if scheme == "coalesce" and write.source_tasks is None:
        return ["how many tasks make the rows is not known (source_tasks)"]
    if scheme == "coalesce" and write.source_tasks is not None:
        if write.source_tasks < write.tasks:
            return [f"the rows come in {write.source_tasks:,} tasks, and coalesce makes no more"]
        if write.source_tasks >= 2 * write.tasks:
            return [
                f"the stage that makes the rows would run in {write.tasks:,} tasks instead of "
                f"{write.source_tasks:,}"
            ]
    if scheme == "range":
        return ["it makes the files of `columns`, and looks at the data twice"]
    if scheme == "exact" and not write.keys.counted:
        return ["it needs the rows of each partition"]
    return []


def _problems(outcome: Outcome, write: Write) -> list[str]:
    """Return what is wrong with an outcome, the worst first."""
    wanted = max(write.tasks, len(write.keys))
    found = []
    if outcome.files > 2 * wanted:
        found.append(f"it makes {outcome.files:,} files where {wanted:,} would do")
    if outcome.largest_task > _LONG_TASK:
        found.append(f"one task writes {outcome.largest_task:,.1f} targets while others are done")
    if outcome.largest_file > _LARGE_FILE:
        found.append(f"its largest file is {outcome.largest_file:,.1f} targets")
    unavoidable = int(np.count_nonzero(write.keys.weight < SMALL))
    small = outcome.small_files - unavoidable
    if small > _FEW_SMALL * outcome.files:
        found.append(f"{100 * small / outcome.files:.0f} % of its files are small for no need")
    return found
