"""Predict what a plan costs to run, under the cost model that the planner uses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windrow_service.planner.plan import GroupedSplits
from windrow_service.planner.policy import READ_BYTES_PER_SECOND, Policy
from windrow_service.planner.slots import slowest_slot, task_costs
from windrow_service.planner.splits import NO_HOST, Bools, Hosts, Ints, run_numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long the groups of a plan are expected to take.

    Attributes:
        longest_task_seconds: Time of the group with the most work.
        all_tasks_seconds: Time of all groups, one after another.
        slowest_slot_seconds: When the last of `parallelism` slots finishes, if each takes the
            next group, in the plan's order, as soon as it is free.
    """

    longest_task_seconds: float
    all_tasks_seconds: float
    slowest_slot_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction(Times):
    """The expected cost of a plan.

    Attributes:
        fill: Mean size of the groups as a fraction of `max_split_size`, each at most 1.
        host_local_bytes: Bytes of splits with a replica on a host that their group prefers.
        rack_local_bytes: Bytes of other splits with a replica in the rack of such a host.
        located_bytes: Bytes of splits for which at least one host is known.
        fewest_groups: A lower bound on the groups of any plan of these splits.
    """

    fill: float
    host_local_bytes: int
    rack_local_bytes: int
    located_bytes: int
    fewest_groups: int


def predict(plan: GroupedSplits, policy: Policy) -> Prediction:
    """Return what reading the plan's groups is expected to cost.

    Args:
        plan: The groups, in the order in which they run.
        policy: Limits and costs of the reader, whatever strategy made the groups.
    """
    times = predict_times(plan, policy)
    size = plan.size_bytes
    length = plan.splits.length
    at_host, in_rack, located = _locality(plan)
    return Prediction(
        fill=float(np.minimum(size / policy.max_split_size, 1.0).mean()) if len(plan) else 0.0,
        host_local_bytes=int(length[at_host].sum()),
        rack_local_bytes=int(length[in_rack & ~at_host].sum()),
        located_bytes=int(length[located].sum()),
        longest_task_seconds=times.longest_task_seconds,
        all_tasks_seconds=times.all_tasks_seconds,
        slowest_slot_seconds=times.slowest_slot_seconds,
        fewest_groups=fewest_groups(plan, policy),
    )


def predict_times(plan: GroupedSplits, policy: Policy) -> Times:
    """Return how long the plan's groups are expected to take.

    Args:
        plan: The groups, in the order in which they run.
        policy: Limits and costs of the reader, whatever strategy made the groups.
    """
    work = plan.splits.work(plan.splits.open_cost(policy.open_file_cost))
    tasks = task_costs(np.add.reduceat(work, plan.offsets[:-1]) if len(plan) else work)
    return Times(
        longest_task_seconds=_seconds(int(tasks.max(initial=0))),
        all_tasks_seconds=_seconds(int(tasks.sum())),
        slowest_slot_seconds=_seconds(slowest_slot(tasks, policy.parallelism)),
    )


def fewest_groups(plan: GroupedSplits, policy: Policy) -> int:
    """Return the fewest groups that the limits allow: a lower bound, not always reachable.

    A split of at least `max_split_size` can share its group only with empty splits. The other
    splits of each bucket need room for their bytes and their count, and one group for each split
    over half of `max_split_size`.
    """
    limit = policy.max_split_size
    length, bucket = plan.splits.length, _dense(plan.splits.bucket)
    count = int(bucket.max(initial=-1)) + 1
    alone = np.bincount(bucket[length >= limit], minlength=count)
    rest = (length > 0) & (length < limit)
    bucket, length = bucket[rest], length[rest]
    sizes = np.bincount(bucket, length, count).astype(np.int64)
    over_half = np.bincount(bucket[length > limit // 2], minlength=count)
    members = np.bincount(bucket, minlength=count)
    fewest = np.maximum(policy.fewest_groups(sizes, members), over_half)
    # A bucket that has only empty splits needs a group, too.
    return int(np.maximum(alone + fewest, 1).sum())


def _dense(bucket: Ints) -> Ints:
    return np.unique(bucket, return_inverse=True)[1].reshape(-1).astype(np.int64, copy=False)


def _locality(plan: GroupedSplits) -> tuple[Bools, Bools, Bools]:
    """Return which splits are local to a preferred host, local to its rack, and located at all."""
    hosts, group = plan.splits.hosts, run_numbers(plan.host_offsets)
    located = hosts.counts > 0
    at_host = _at(plan, hosts, group, plan.host_codes)
    if not any(hosts.racks):
        return at_host, np.zeros_like(at_host), located
    racks = hosts.by_rack()
    number = {rack: at for at, rack in enumerate(racks.names)}
    rack = np.array([number.get(rack, NO_HOST) for rack in hosts.racks])[plan.host_codes]
    has_rack = rack != NO_HOST
    return at_host, _at(plan, racks, group[has_rack], rack[has_rack]), located


def _at(plan: GroupedSplits, hosts: Hosts, group: Ints, preferred: Ints) -> Bools:
    """Return which splits have a host that their group prefers.

    Args:
        plan: The groups.
        hosts: Hosts, or racks, of the splits.
        group: For each of p preferences, its group.
        preferred: For each of p preferences, a position in `hosts.names`.
    """
    here = np.zeros(len(plan.splits), np.bool_)
    if not len(preferred):
        return here
    host_count = len(hosts.names)
    # Nearly sorted already; duplicates do no harm.
    pairs = np.sort(group * host_count + preferred, kind="stable")
    split = run_numbers(hosts.offsets)
    pair = run_numbers(plan.offsets)[split] * host_count + hosts.codes
    at = np.minimum(np.searchsorted(pairs, pair), len(pairs) - 1)
    here[split[pairs[at] == pair]] = True
    return here


def _seconds(cost: int) -> float:
    return cost / READ_BYTES_PER_SECOND
