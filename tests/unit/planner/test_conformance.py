"""Each strategy makes the groups that the original system's own tests expect.

Tests of the originals that are not cases here, and why:

| tests | why not |
|---|---|
| openLooKeng: outstanding splits, failing and waiting readers, empty bucket | they test its queue |
| openLooKeng: 10 splits, half of them left by a dynamic filter | a filter: tests/contract |
| openLooKeng: page sources, configuration, index filter, split cache map, node scheduler | they test readers and schedulers, not groups |
| openLooKeng: initial splits before grouping | they shrink groups there; here they only cut files |
| Spark: a maximum number of partitions that only partitions above the maximum size can meet | the limits of a plan take precedence |
| Spark: empty buckets become empty partitions | a plan has no empty group |
| Iceberg: packing from the end | only manifests are packed that way, not splits |
| Iceberg: keys of mixed specs, a field that a spec does not know | keys are buckets here |
| Iceberg: five adjacent pieces merged into three | they stay separate splits, in one group |
| Tez: estimators, splits without a length, custom locations, formats, gzip records | drivers of file formats; the estimated sizes are a case |
| Hadoop: CombineFileInputFormat over nodes, racks and pools | no strategy follows it; its cuts are cases |
| Hive: pools by deserializer, compaction order, host affinity by hash | they test table formats and caches |
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.plans.conformance import CASES, Case
from tests.support.tables.inventories import inventory
from windrow_core.models import PlanOptions
from windrow_service.planner.packing.strategies.tez import by_rounds
from windrow_service.planner.plan import plan_groups
from windrow_service.planner.splits import Hosts
from windrow_service.usecases.plans.options import policy_of, with_defaults


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


def test_rounds_keep_the_order_of_splits_and_leave_the_rest_to_racks_as_tez_does() -> None:
    files = inventory([100] * 12, hosts=[[f"node{n % 3}"] for n in range(12)])
    length = np.full(12, 100)

    number = by_rounds(length, Hosts.of(files["hosts"]), 300, rack_reduction=1.0)

    groups = [np.flatnonzero(number == group).tolist() for group in range(number.max() + 1)]
    assert groups == [[0, 3, 6], [1, 4, 7], [2, 5, 8], [9, 10, 11]]
