"""Laws of cacheable splits in every plan under every strategy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.property.test_plan_laws import files, under_every_strategy
from tests.support.laws import examples
from tests.support.tables.inventories import inventory, told
from windrow_service.planner.caching.cached import FALLBACK, HELD, Cached
from windrow_service.planner.plan import plan_groups
from windrow_service.planner.policy import Policy
from windrow_service.planner.splits import NO_HOST

WORKERS = ("w1", "a", "w2")
SETTINGS = examples(35)


def cached_at(count: int, seed: int) -> Cached:
    rng = np.random.default_rng(seed)
    worker = rng.integers(-1, len(WORKERS), count)
    return Cached(
        cacheable=rng.random(count) < rng.random(),
        worker=worker,
        workers=WORKERS,
        choice=np.where(worker == NO_HOST, FALLBACK, HELD).astype(np.int8),
    )


@SETTINGS
@given(
    files(),
    st.builds(
        Policy,
        max_split_size=st.integers(1, 60),
        max_small_splits_grouped=st.none() | st.integers(1, 6),
        cached_splits=st.just("by_worker"),
        parallelism=st.integers(1, 9),
    ),
    st.integers(0, 99),
)
def test_splits_that_one_worker_holds_never_share_groups_with_others(
    table: pa.Table, drawn: Policy, seed: int
) -> None:
    cached = cached_at(len(table), seed)
    for policy in under_every_strategy(drawn):
        grouped = plan_groups(table, None, policy, told(cached))

        assert sorted(set(grouped.splits.file.tolist())) == list(range(len(table)))
        for begin, end in zip(grouped.offsets[:-1], grouped.offsets[1:], strict=True):
            members = grouped.splits.take(np.arange(begin, end))
            assert len(set(members.bucket.tolist())) == 1
            if len(members) > 1:
                assert members.length.sum() <= policy.max_split_size
                assert len(members) <= (policy.max_small_splits_grouped or len(members))
                places = {
                    cached.worker[file] if cached.cacheable[file] else NO_HOST
                    for file in members.file.tolist()
                }
                assert len(places) == 1


@SETTINGS
@given(files(), st.integers(0, 99), st.sampled_from(["separate", "by_worker"]))
def test_a_split_that_a_worker_holds_is_read_there(
    table: pa.Table, seed: int, cached_splits: str
) -> None:
    cached = cached_at(len(table), seed)
    policy = Policy(cached_splits=cached_splits, parallelism=2)  # type: ignore[arg-type]

    grouped = plan_groups(table, None, policy, told(cached))

    assert len(grouped.cached_on) == len(grouped)
    for group, first in enumerate(grouped.offsets[:-1].tolist()):
        file = int(grouped.splits.file[first])
        if cached.cacheable[file] and cached.worker[file] >= 0:
            codes = grouped.host_codes[
                grouped.host_offsets[group] : grouped.host_offsets[group + 1]
            ]
            names = [grouped.splits.hosts.names[code] for code in codes]
            assert names == [WORKERS[cached.worker[file]]]
            assert grouped.cached_on[group] == cached.worker[file]
        else:
            assert grouped.cached_on[group] == NO_HOST


@examples(20)
@given(st.integers(1, 5), st.integers(1, 8), st.integers(0, 99))
def test_small_cached_files_cost_few_tasks(workers: int, buckets: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 3_000, 2_000)
    table = inventory(sizes.tolist(), buckets=rng.integers(0, buckets, 2_000).tolist())
    cached = Cached(
        cacheable=np.ones(2_000, np.bool_),
        worker=rng.integers(0, workers, 2_000),
        workers=tuple(f"w{n}" for n in range(workers)),
        choice=np.zeros(2_000, np.int8),
    )
    policy = Policy(max_split_size=64_000, cached_splits="by_worker")

    grouped = plan_groups(table, None, policy, told(cached))

    assert len(grouped) <= 1.1 * (sizes.sum() / 64_000 + workers * buckets)
