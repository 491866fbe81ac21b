"""The plans that `benchmarks/plan_quality.py` compares, and plans under other options."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.support.benchmarks import load_benchmark
from tests.support.golden.files import lines_of

_MIB = 2**20
_SCALE = 0.01
# One option or two at a time, each under the strategies that heed it.
_OPTIONS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (("balanced", "openlookeng", "spark", "iceberg", "tez"), {"max_split_size": 16 * _MIB}),
    (("balanced", "openlookeng", "spark", "iceberg", "tez"), {"open_file_cost": _MIB}),
    (("balanced", "openlookeng", "spark", "iceberg", "tez"), {"parallelism": 7}),
    (("balanced", "openlookeng"), {"max_small_splits_grouped": 3}),
    (("balanced", "openlookeng"), {"max_initial_splits": 50, "max_initial_split_size": 4 * _MIB}),
    (("iceberg", "tez"), {"min_split_size": 4 * _MIB}),
    (("spark",), {"max_partition_num": 20}),
    (("iceberg",), {"planning_lookback": 2}),
    (("tez",), {"rack_split_reduction": 0.25}),
)


def text() -> str:
    """Return a row for each workload under each strategy, and under each option."""
    benchmark = load_benchmark("plan_quality")
    return lines_of([*_compared(benchmark), *_under_options(benchmark)])


def _compared(benchmark: Any) -> Iterator[dict[str, Any]]:
    for workload in benchmark.workloads(benchmark.QUICK_SCALE):
        for strategy in benchmark.STRATEGIES:
            options = {"strategy": strategy, "parallelism": workload.parallelism}
            yield _row(benchmark, workload, options)


def _under_options(benchmark: Any) -> Iterator[dict[str, Any]]:
    for workload in benchmark.workloads(_SCALE):
        for strategies, options in _OPTIONS:
            for strategy in strategies:
                base = {"strategy": strategy, "parallelism": workload.parallelism}
                yield _row(benchmark, workload, base | options)


def _row(benchmark: Any, workload: Any, options: dict[str, Any]) -> dict[str, Any]:
    complete = benchmark.with_defaults(benchmark.PlanOptions(**options))
    policy = benchmark.policy_of(complete, benchmark.MAX_FILES)
    plan = benchmark.plan_groups(workload.files, None, policy)
    prediction = benchmark.predict(plan, policy)
    return {
        "workload": workload.name,
        "files": len(workload.files),
        **options,
        "groups": len(plan),
        "splits": len(plan.splits.file),
        "slowest_slot_ms": round(prediction.slowest_slot_seconds * 1_000),
        "plan": _digest(plan),
    }


def _digest(plan: Any) -> str:
    """Return a digest of which ranges of which files each group reads, and on which hosts."""
    digest = hashlib.sha256()
    paths = plan.files["path"].to_numpy()
    numbers = np.argsort(np.argsort(paths, kind="stable"), kind="stable")
    hosts = "\n".join(plan.splits.hosts.names)
    columns = (
        numbers[plan.splits.file],
        plan.splits.start,
        plan.splits.length,
        plan.offsets,
        plan.size_bytes,
        plan.bucket,
        plan.host_offsets,
        plan.host_codes,
        plan.residual,
    )
    for column in columns:
        digest.update(np.asarray(column, np.int64).tobytes())
    digest.update(hosts.encode())
    return digest.hexdigest()[:16]
