"""The limits and costs that a plan is made under."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
CachedSplits: TypeAlias = Literal["separate", "by_worker"]

KIB = 2**10
MIB = 2**20

# What opening one more small file costs the grouped reader, in bytes of reading: measured by
# benchmarks/open_file_cost.py, explained in docs/decisions/0005.
DEFAULT_OPEN_FILE_COST = 32 * KIB
# Fixed cost of a task, in bytes of reading, and read speed of one core, by the same benchmark.
TASK_COST = 16 * MIB
READ_BYTES_PER_SECOND = 320 * MIB
# The extra cost of work on a host that does not hold the file, as a fraction: an estimate, since it
# depends on the network. Groups ignore hosts if locality gains less than this.
REMOTE_COST = 0.25
DEFAULT_MAX_INITIAL_SPLIT_SIZE = 32 * MIB


# Most splits of one plan; files of lines could be cut into as many pieces as they have bytes.
MAX_SPLITS = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How splits are grouped. Sizes and costs are bytes; bounds are inclusive.

    Attributes:
        strategy: Name of the packing strategy.
        max_split_size: Most bytes in a group, and where large files are cut.
        min_split_size: `tez` and `iceberg` do not make groups smaller than this to gain
            parallelism.
        max_initial_split_size: Where large files are cut for the initial splits of a plan.
        max_initial_splits: Number of initial splits.
        max_small_splits_grouped: Most splits in a group; None means no limit.
        max_partition_num: `spark` makes larger partitions if there would be more; None means no
            limit.
        planning_lookback: Groups that `iceberg` fills at the same time.
        rack_split_reduction: How long a group of a rack may be under `tez`, as a fraction of the
            length of a host's group.
        open_file_cost: Cost of opening one file, in bytes of reading.
        cached_splits: `separate` leaves every cacheable split alone; `by_worker` groups those of
            one bucket that are cached on the same worker; None means what suits their sizes.
        parallelism: Tasks that run at the same time; a plan has at least as many groups
            if there are that many splits.
        max_files: Most files in one plan.
    """

    strategy: str = "balanced"
    max_split_size: int = 64 * MIB
    min_split_size: int = 1
    max_initial_split_size: int = DEFAULT_MAX_INITIAL_SPLIT_SIZE
    max_initial_splits: int = 0
    max_small_splits_grouped: int | None = None
    max_partition_num: int | None = None
    planning_lookback: int = 10
    rack_split_reduction: float = 0.75
    open_file_cost: int = DEFAULT_OPEN_FILE_COST
    cached_splits: CachedSplits | None = "separate"
    parallelism: int = 1
    max_files: int = 20_000_000

    def fewest_groups(self, size_bytes: Ints, split_count: Ints) -> Ints:
        """Return the fewest groups that the limits allow for sets of splits.

        Args:
            size_bytes: Total bytes of each of n sets of splits.
            split_count: Number of splits in each set.
        """
        fewest: Ints = -(-size_bytes // self.max_split_size)
        if self.max_small_splits_grouped is not None:
            fewest = np.maximum(fewest, -(-split_count // self.max_small_splits_grouped))
        return np.where(split_count > 0, np.maximum(fewest, 1), 0)
