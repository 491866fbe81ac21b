"""Each strategy makes the groups that the original system's own tests expect.

Tests of the originals that are not cases here, and why:

| tests | why not |
|---|---|
| openLooKeng: outstanding splits, failing and waiting readers, empty bucket | they test its queue |
| openLooKeng: 10 splits, half of them left by a dynamic filter | a filter: tests/contract |
| openLooKeng: page sources, configuration, index filter, split cache map, node scheduler | they test readers and schedulers, not groups |
| openLooKeng: initial splits before grouping | there they shrink groups; here they only cut |
| Spark: 12 files under a largest number of partitions | plans have no such option |
| Spark: empty buckets become empty partitions | a plan has no empty group |
| Iceberg: packing from the end | only manifests are packed that way, not splits |
| Iceberg: keys of mixed specs, a field that a spec does not know | keys are buckets here |
| Iceberg: five adjacent pieces merged into three | they stay splits of their own, in one group |
| Tez: estimators, splits without a length, custom locations, formats, gzip records | drivers of file formats; the estimated sizes are a case |
| Tez: a rack reduction of 1, as in its tests of order | not an option of plans: a case of `by_rounds` below |
| Hadoop: CombineFileInputFormat over nodes, racks and pools | no strategy follows it; its cuts are cases |
| Hive: pools by deserializer, compaction order, host affinity by hash | they test table formats and caches |
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.conformance import CASES, Case
from tests.support.inventories import inventory
from windrow.models import PlanOptions
from windrow_service.planner.packing.strategies.iceberg import first_fit
from windrow_service.planner.packing.strategies.tez import by_rounds
from windrow_service.planner.plan import plan_groups
from windrow_service.planner.splits import Hosts
from windrow_service.usecases.plans.drafts import policy_of, with_defaults


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.strategy}: {case.name}")
def test_the_groups_are_those_of_the_original(case: Case) -> None:
    published = case.published()
    files = inventory(case.sizes)
    for name in published.column_names:
        files = files.set_column(
            files.schema.get_field_index(name), files.schema.field(name), published[name]
        )
    options = PlanOptions.model_validate({"strategy": case.strategy, **case.options})

    grouped = plan_groups(files, None, policy_of(with_defaults(options), len(files)))

    names = grouped.splits.hosts.names
    case.check(
        [part.tolist() for part in np.split(grouped.splits.length, grouped.offsets[1:-1])],
        [
            [names[code] for code in part]
            for part in np.split(grouped.host_codes, grouped.host_offsets[1:-1])
        ],
    )


@pytest.mark.parametrize(
    ("weights", "target", "lookback", "expected"),
    [
        ([5, 1] * 3, 8, 100, [[5, 1, 1, 1], [5], [5]]),
        ([5, 1] * 3, 8, 2, [[5, 1, 1], [5, 1], [5]]),
        ([5, 1] * 3, 8, 1, [[5, 1], [5, 1], [5, 1]]),
        ([64, 64, 128, 32, 32, 32, 32], 128, 1, [[64, 64], [128], [32] * 4]),
    ],
)
def test_first_fit_looks_back_as_far_as_iceberg_does(
    weights: list[int], target: int, lookback: int, expected: list[list[int]]
) -> None:
    bins: dict[int, list[int]] = {}
    for weight, number in zip(weights, first_fit(weights, target, None, lookback), strict=True):
        bins.setdefault(number, []).append(weight)

    assert sorted(bins.values()) == sorted(expected)


def test_rounds_keep_the_order_of_splits_and_leave_the_rest_to_racks_as_tez_does() -> None:
    files = inventory([100] * 12, hosts=[[f"node{n % 3}"] for n in range(12)])
    length = np.full(12, 100)

    number = by_rounds(length, Hosts.of(files["hosts"]), 300, rack_reduction=1.0)

    groups = [np.flatnonzero(number == group).tolist() for group in range(number.max() + 1)]
    assert groups == [[0, 3, 6], [1, 4, 7], [2, 5, 8], [9, 10, 11]]
