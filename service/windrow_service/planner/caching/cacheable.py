"""Which files the cache rules of their table mark as cacheable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_service.planner.pruning.bounds import Bools, FileFacts, mask
from windrow_service.planner.pruning.expressions import Expression
from windrow_service.planner.pruning.outcomes import truth_values


@dataclass(frozen=True, slots=True)
class MarkingRule:
    """A cache rule, as the planner applies it.

    Attributes:
        expression: On partition columns alone; a file is marked where it is TRUE.
        first_path: The first path, in path order, within the rule's byte limit; files before it
            are not marked.
    """

    expression: Expression
    first_path: str = ""

    def marks(self, files: pa.Table) -> Bools:
        """Return which files of an inventory the rule marks."""
        if not len(files):
            return np.zeros(0, np.bool_)
        possible = truth_values(
            self.expression, FileFacts(files, np.ones(len(files), np.bool_), evidence="partition")
        )
        marked = possible.true & ~possible.false & ~possible.null
        if self.first_path:
            marked &= mask(pc.greater_equal(files["path"], self.first_path))
        return np.asarray(marked)


def cacheable_by(files: pa.Table, rules: Sequence[MarkingRule]) -> Bools:
    """Return which files are marked by at least one of the rules."""
    cacheable = np.zeros(len(files), np.bool_)
    for rule in rules:
        cacheable |= rule.marks(files)
    return cacheable


def first_path_within(files: pa.Table, rule: MarkingRule, max_bytes: int) -> str | None:
    """Return the first path that a rule marks when its bytes are limited.

    The limit is filled from the end of the path order, because folders named by date have the
    newest files there.

    Args:
        files: An inventory in path order, with every file that the rule marks.
        rule: The rule without its limit.
        max_bytes: Most bytes that the marked files may hold together.

    Returns:
        The path of the first file within the limit; None if not even the last file fits.
    """
    rows = np.flatnonzero(rule.marks(files))[::-1]
    within = np.cumsum(files["size_bytes"].to_numpy()[rows]) <= max_bytes
    count = len(rows) if within.all() else int(np.argmin(within))
    return files["path"][int(rows[count - 1])].as_py() if count else None
