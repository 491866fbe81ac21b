"""What a packing strategy is: a way to pack splits, and the defaults that belong to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from windrow_service.planner.packing.preferred_hosts import MIN_LOCAL_SHARE
from windrow_service.planner.policy import DEFAULT_OPEN_FILE_COST, Policy
from windrow_service.planner.splits import Groups, Ints, Splits


def max_split_size(size_bytes: Ints, policy: Policy) -> int:
    """Cut every file that is over `max_split_size`."""
    return policy.max_split_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One way to pack splits into groups.

    Attributes:
        pack: Groups splits. Every split is in exactly one group, no group mixes buckets, and
            no group of several splits passes `max_split_size` or `max_small_splits_grouped`.
        cut_size: From the sizes of the planned files, how large a piece of a file may be.
        level_tail: Whether the last two pieces of a file are made about equal.
        max_small_splits_grouped: What holds if the caller does not say.
        min_split_size: What holds if the caller does not say.
        open_file_cost: What holds if the caller does not say.
        min_local_share: The share of a group's bytes that a host must hold to be preferred.
    """

    pack: Callable[[Splits, Policy], Groups]
    cut_size: Callable[[Ints, Policy], int] = max_split_size
    level_tail: bool = True
    max_small_splits_grouped: int | None = None
    min_split_size: int = 1
    open_file_cost: int = DEFAULT_OPEN_FILE_COST
    min_local_share: float = MIN_LOCAL_SHARE
