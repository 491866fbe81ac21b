"""Laws of every plan of any table under every strategy."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.support.laws import examples
from tests.support.tables.inventories import MIB, inventory, marked
from windrow_service.planner.packing.strategies import STRATEGIES
from windrow_service.planner.plan import GroupedSplits, plan_groups
from windrow_service.planner.policy import Policy
from windrow_service.wire import groups
from windrow_service.wire.groups import ArrowGroups

SETTINGS = examples(40)
KIB = 1024
HOSTS = ["a", "b", "ab", "/r/c", "/q/d", "localhost"]
SUFFIXES = ["", ".csv", ".gz", ".parquet"]


@st.composite
def files(draw: st.DrawFn) -> pa.Table:
    count = draw(st.integers(0, 40))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=count, max_size=count))

    sizes = column(st.integers(0, 40))
    cuts = column(st.sets(st.integers(1, 39), max_size=4))
    offsets = [
        sorted({1, *(c for c in cut if c < size)}) for cut, size in zip(cuts, sizes, strict=True)
    ]
    return inventory(
        sizes,
        hosts=column(st.lists(st.sampled_from(HOSTS), max_size=4, unique=True)),
        buckets=column(st.none() | st.integers(0, 2)),
        row_group_offsets=offsets,
        paths=[f"f{n:06d}{suffix}" for n, suffix in enumerate(column(st.sampled_from(SUFFIXES)))],
    )


def policies(strategy: str = "balanced") -> st.SearchStrategy[Policy]:
    return st.builds(
        Policy,
        strategy=st.just(strategy),
        max_split_size=st.integers(1, 60),
        min_split_size=st.integers(1, 60),
        max_initial_split_size=st.integers(1, 60),
        max_initial_splits=st.integers(0, 9),
        max_small_splits_grouped=st.none() | st.integers(1, 6),
        max_partition_num=st.none() | st.integers(1, 6),
        planning_lookback=st.integers(1, 12),
        rack_split_reduction=st.floats(0.01, 1),
        open_file_cost=st.integers(0, 30),
        parallelism=st.integers(1, 9),
    )


def flags(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(count) < 0.2


def under_every_strategy(drawn: Policy) -> Iterator[Policy]:
    """Yield the policy with each strategy, as drawing files takes longer than planning them."""
    for strategy in STRATEGIES:
        note(strategy)
        yield replace(drawn, strategy=strategy)


@SETTINGS
@given(files(), policies())
def test_every_byte_of_every_file_is_in_exactly_one_group(table: pa.Table, drawn: Policy) -> None:
    for policy in under_every_strategy(drawn):
        grouped = plan_groups(table, None, policy)

        covered: dict[int, list[tuple[int, int]]] = {}
        for file, start, length in zip(
            grouped.splits.file, grouped.splits.start, grouped.splits.length, strict=True
        ):
            covered.setdefault(int(file), []).append((int(start), int(start + length)))
        sizes = grouped.files["size_bytes"].to_pylist()
        assert sorted(covered) == list(range(len(table)))
        for file, ranges in covered.items():
            ranges.sort()
            assert ranges[0][0] == 0
            assert ranges[-1][1] == sizes[file]
            assert all(left[1] == right[0] for left, right in pairwise(ranges))
        assert grouped.offsets[0] == 0
        assert grouped.offsets[-1] == len(grouped.splits)
        assert (np.diff(grouped.offsets) > 0).all()


@SETTINGS
@given(files(), policies(), st.integers(0, 9))
def test_the_limits_hold_and_buckets_and_cacheable_splits_never_mix(
    table: pa.Table, drawn: Policy, seed: int
) -> None:
    cacheable = flags(len(table), seed)
    for policy in under_every_strategy(drawn):
        grouped = plan_groups(table, None, policy, marked(cacheable))

        for begin, end in zip(grouped.offsets[:-1], grouped.offsets[1:], strict=True):
            members = grouped.splits.take(np.arange(begin, end))
            if len(members) > 1:
                assert members.length.sum() <= policy.max_split_size
                assert len(members) <= (policy.max_small_splits_grouped or len(members))
                assert not cacheable[members.file].any()
            assert len(set(members.bucket.tolist())) == 1


@SETTINGS
@given(files(), policies(), st.integers(0, 2**32 - 1))
def test_the_same_files_in_any_order_give_byte_identical_plans(
    table: pa.Table, drawn: Policy, seed: int
) -> None:
    order = np.random.default_rng(seed).permutation(len(table))
    cacheable = flags(len(table), seed)
    for policy in under_every_strategy(drawn):
        one = plan_groups(table, None, policy, marked(cacheable))
        other = plan_groups(table.take(pa.array(order)), None, policy, marked(cacheable))

        assert ArrowGroups().encode(one) == ArrowGroups().encode(other)


@SETTINGS
@given(files(), policies("balanced"))
def test_balanced_keeps_every_slot_busy_if_there_are_enough_splits(
    table: pa.Table, policy: Policy
) -> None:
    grouped = plan_groups(table, None, policy)

    assert len(grouped) >= min(policy.parallelism, len(grouped.splits))


@st.composite
def tables_on_hosts(draw: st.DrawFn) -> pa.Table:
    """Draw a table of few files on many or few hosts, some of which may hold most of them."""
    count, hosts = draw(st.integers(1, 120)), draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    typical = draw(st.sampled_from([16 * KIB, MIB, 8 * MIB, 40 * MIB]))
    sizes = rng.lognormal(0, draw(st.sampled_from([0.01, 1, 2])), count) * typical
    share = np.arange(1, hosts + 1) ** -draw(st.sampled_from([0.0, 1.0, 2.0]))
    replicas = min(draw(st.integers(1, 3)), hosts)
    chosen = [rng.choice(hosts, replicas, False, share / share.sum()) for _ in range(count)]
    return inventory(
        np.minimum(sizes, 63 * MIB).astype(np.int64).tolist(),
        hosts=[[f"h{host:02d}" for host in some] for some in chosen],
    )


def slowest(grouped: GroupedSplits, parallelism: int) -> float:
    """Return when the last slot finishes, if work not on a task's own host costs a quarter more.

    Of the hosts that its group prefers, a task runs on the one that holds most of the group.
    """
    splits, free_at = grouped.splits, [0.0] * parallelism
    for number, (begin, end) in enumerate(pairwise(grouped.offsets.tolist())):
        preferred = grouped.host_codes[slice(*grouped.host_offsets[number : number + 2])]
        held = dict.fromkeys(preferred.tolist(), 0)
        work = 0
        for split in range(begin, end):
            cost = int(splits.length[split]) + 32 * KIB
            work += cost
            for host in splits.hosts.codes[slice(*splits.hosts.offsets[split : split + 2])]:
                if host in held:
                    held[host] += cost
        remote = work - max(held.values(), default=0)
        heapq.heapreplace(free_at, free_at[0] + 16 * MIB + work + remote / 4)
    return max(free_at)


@SETTINGS
@given(tables_on_hosts(), st.integers(1, 13))
def test_balanced_is_at_most_a_tenth_slower_than_spark(table: pa.Table, parallelism: int) -> None:
    ours = plan_groups(table, None, Policy(parallelism=parallelism))
    theirs = plan_groups(
        table, None, Policy(strategy="spark", parallelism=parallelism, open_file_cost=4 * MIB)
    )

    assert slowest(ours, parallelism) <= 1.1 * slowest(theirs, parallelism)


@SETTINGS
@given(
    files(), policies("balanced"), st.integers(0, 5), st.integers(1, 7), st.sampled_from([1, 5, 99])
)
def test_pages_hold_every_group_once_in_order(
    table: pa.Table, policy: Policy, max_groups: int, max_splits: int, chunk_splits: int
) -> None:
    grouped = plan_groups(table, None, policy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "SPLITS_PER_BATCH", chunk_splits)
        body = ArrowGroups().encode(grouped)

    seen: list[int] = []
    splits = 0
    while len(seen) < len(grouped):
        chunk = [chunk for chunk in body.chunks if chunk.first_group <= len(seen)][-1]
        pages = ArrowGroups().read(body.head, chunk, len(seen), max_groups + 1, max_splits)
        page = [json.loads(group) for group in pages]
        assert 1 <= len(page) <= max_groups + 1
        assert len(page) == 1 or sum(len(g["splits"]) for g in page) <= max_splits
        seen += [group["group_id"] for group in page]
        splits += sum(len(group["splits"]) for group in page)

    assert seen == list(range(len(grouped)))
    assert splits == len(grouped.splits)
