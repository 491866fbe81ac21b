"""The stream of a plan's groups: the size of its end, and the order of many groups."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tests.support.tables.inventories import inventory, marked
from windrow_calls.plans import read_group_stream
from windrow_service.planner.plan import plan_groups
from windrow_service.planner.policy import Policy
from windrow_service.wire.groups import ArrowGroups


def test_the_end_of_a_stream_is_small_however_many_splits_there_are() -> None:
    few, many = (
        len(ArrowGroups().encode(plan_groups(inventory([1] * count), None, Policy())).tail)
        for count in (10, 10_000)
    )

    assert few == many < 2_000


def test_the_largest_of_many_groups_come_first_in_steps_of_a_sixteenth() -> None:
    sizes = np.random.default_rng(3).integers(1, 10**7, 70_000)
    files = inventory(sizes.tolist())

    groups = plan_groups(files, None, Policy(), marked(np.ones(len(sizes), np.bool_)))

    work = groups.size_bytes + Policy().open_file_cost
    assert len(groups) == len(sizes)
    assert (work[1:] <= work[:-1] * 17 / 16).all()
    assert (work <= np.minimum.accumulate(work) * 17 / 16).all()
    # Groups with equal work keep the order of their files.
    same = np.flatnonzero(work == work[1_000])
    assert (np.diff(groups.splits.file[same]) > 0).all()
    stream = b"".join(ArrowGroups().encode(groups).parts)
    assert isinstance(read_group_stream("p", stream), pa.Table)
