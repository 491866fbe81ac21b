"""The interface of a packing strategy: a way to pack splits, and its defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from windrow_service.planner.packing.preferred_hosts import MIN_LOCAL_SHARE
from windrow_service.planner.policy import DEFAULT_OPEN_FILE_COST, Policy
from windrow_service.planner.splits import Groups, Ints, Splits


def max_split_size(size_bytes: Ints, policy: Policy) -> int:
    """Return `max_split_size`: the default `cut_size`."""
    return policy.max_split_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One way to pack splits into groups.

    Attributes:
        pack: Groups splits. Every split is in exactly one group, no group mixes buckets, and
            no group of several splits exceeds `max_split_size` or `max_small_splits_grouped`.
        cut_size: Returns the most bytes of a piece, given the sizes of the planned files.
        level_tail: Whether the last two pieces of a file are made about equal.
        max_small_splits_grouped: Default for requests that do not set it.
        min_split_size: Default for requests that do not set it.
        open_file_cost: Default for requests that do not set it.
        min_local_share: The share of a group's bytes that a host must hold to be preferred.
    """

    pack: Callable[[Splits, Policy], Groups]
    cut_size: Callable[[Ints, Policy], int] = max_split_size
    level_tail: bool = True
    max_small_splits_grouped: int | None = None
    min_split_size: int = 1
    open_file_cost: int = DEFAULT_OPEN_FILE_COST
    min_local_share: float = MIN_LOCAL_SHARE
