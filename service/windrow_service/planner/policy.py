"""The limits and costs that a plan is made under."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]

KIB = 2**10
MIB = 2**20

# What opening one more small file costs the grouped reader, as bytes of reading: measured by
# benchmarks/open_file_cost.py, explained in docs/decisions/0005.
DEFAULT_OPEN_FILE_COST = 32 * KIB
# What a task costs in itself, as bytes of reading, and how fast one core reads; measured there.
TASK_COST = 16 * MIB
READ_BYTES_PER_SECOND = 320 * MIB
DEFAULT_MAX_INITIAL_SPLIT_SIZE = 32 * MIB


# Most splits of one plan; files of lines can be cut into as many as they have bytes.
MAX_SPLITS = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How splits are grouped. Sizes and costs are bytes; bounds are inclusive.

    Attributes:
        strategy: Name of the packing strategy.
        max_split_size: Most bytes in a group, and where large files are cut.
        min_split_size: Below this, `tez` and `iceberg` do not make smaller groups for the
            sake of parallelism.
        max_initial_split_size: Where large files are cut for the first splits of a plan.
        max_initial_splits: How many splits are first.
        max_small_splits_grouped: Most splits in a group; None is no bound.
        open_file_cost: Bytes of reading that opening one file is worth.
        cached_splits: `separate` leaves every cacheable split alone; `by_worker` groups those of
            one bucket that are cached on the same worker.
        parallelism: Tasks that run at the same time; a plan has at least as many groups
            when there are that many splits.
        max_files: Most files in one plan.
    """

    strategy: str = "balanced"
    max_split_size: int = 64 * MIB
    min_split_size: int = 1
    max_initial_split_size: int = DEFAULT_MAX_INITIAL_SPLIT_SIZE
    max_initial_splits: int = 0
    max_small_splits_grouped: int | None = None
    open_file_cost: int = DEFAULT_OPEN_FILE_COST
    cached_splits: Literal["separate", "by_worker"] = "separate"
    parallelism: int = 1
    max_files: int = 20_000_000

    def fewest_groups(self, size_bytes: Ints, split_count: Ints) -> Ints:
        """Return the fewest groups that the limits make of splits that add up to this.

        Args:
            size_bytes: Bytes of each of n lots of splits.
            split_count: How many splits each lot has.
        """
        fewest: Ints = -(-size_bytes // self.max_split_size)
        if self.max_small_splits_grouped is not None:
            fewest = np.maximum(fewest, -(-split_count // self.max_small_splits_grouped))
        return np.where(split_count > 0, np.maximum(fewest, 1), 0)
