"""Packing strategies, one module each behind one signature.

A strategy is `pack(splits, policy) -> Groups`. Whatever it does, every split is in exactly
one group, no group mixes buckets, no group of several splits passes `max_split_size` or
`max_small_splits_grouped`, and no cacheable split shares a group.
"""

from collections.abc import Callable, Mapping

from windrow_service.planner.policy import Policy
from windrow_service.planner.splits import Groups, Splits
from windrow_service.planner.strategies import balanced, openlookeng

__all__ = ["STRATEGIES"]

STRATEGIES: Mapping[str, Callable[[Splits, Policy], Groups]] = {
    "balanced": balanced.pack,
    "openlookeng": openlookeng.pack,
}
