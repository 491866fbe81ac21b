"""Which files the cache rules of their table mark as cacheable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_service.planner.pruning.bounds import Bools, Inventory, mask
from windrow_service.planner.pruning.expressions import Expression
from windrow_service.planner.pruning.outcomes import outcome


@dataclass(frozen=True, slots=True)
class MarkingRule:
    """A cache rule, as the planner applies it.

    Attributes:
        expression: On partition columns alone; TRUE marks a file.
        first_path: Files before it in the order of paths are beyond the rule's limit of bytes.
    """

    expression: Expression
    first_path: str = ""

    def marks(self, files: pa.Table) -> Bools:
        """Tell which files of an inventory the rule marks."""
        if not len(files):
            return np.zeros(0, np.bool_)
        said = outcome(
            self.expression, Inventory(files, np.ones(len(files), np.bool_), evidence="partition")
        )
        marked = said.true & ~said.false & ~said.null
        if self.first_path:
            marked &= mask(pc.greater_equal(files["path"], self.first_path))
        return np.asarray(marked)


def cacheable_by(files: pa.Table, rules: Sequence[MarkingRule]) -> Bools:
    """Tell which files any of some rules marks."""
    marked = np.zeros(len(files), np.bool_)
    for rule in rules:
        marked |= rule.marks(files)
    return marked


def first_path_within(files: pa.Table, rule: MarkingRule, max_bytes: int) -> str | None:
    """Return the first path of those that a rule may mark under a limit of bytes.

    Files that come last in the order of paths go first, as folders by date have the newest
    there.

    Args:
        files: An inventory in the order of paths, with every file that the rule marks.
        rule: The rule without a limit.
        max_bytes: Most bytes of all files that it marks.

    Returns:
        The path of the first file within the limit; None if not even the last fits.
    """
    rows = np.flatnonzero(rule.marks(files))[::-1]
    within = np.cumsum(files["size_bytes"].to_numpy()[rows]) <= max_bytes
    # Sizes may be 0 past the limit too: only what comes before it counts.
    count = len(rows) if within.all() else int(np.argmin(within))
    return files["path"][int(rows[count - 1])].as_py() if count else None
