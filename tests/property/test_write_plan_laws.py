"""Laws of exact plans and of predicted outcomes."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from windrow_service.planner.writes.exact import MOST, ExactTasks, files_per_key, pack
from windrow_service.planner.writes.keys import WriteKeys
from windrow_service.planner.writes.murmur3 import hash_columns
from windrow_service.planner.writes.schemes import (
    by_columns,
    dealt,
    exactly,
    ranged_by_hash,
    salted,
    scale_for,
)

MASK = 2**32 - 1
row_counts = st.one_of(st.integers(0, 30), st.integers(0, 5_000), st.integers(0, 2_000_000))


@st.composite
def keys_to_write(draw: st.DrawFn) -> WriteKeys:
    rows = draw(st.lists(row_counts, min_size=1, max_size=20))
    target_rows = draw(st.sampled_from([1, 7, 100, 1_000, 40_000]))
    each = draw(st.lists(st.sampled_from([0.5, 1, 2]), min_size=len(rows), max_size=len(rows)))
    buckets = draw(st.none() | st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    counts = np.array(rows, np.int64)
    return WriteKeys.of(
        counts,
        counts * np.array(each) / target_rows,
        None if buckets is None else np.array(buckets, np.int64),
        hash_columns([pa.array([f"key {at}" for at in range(len(rows))])], len(rows)),
        estimated=draw(st.booleans()),
    )


def planned(keys: WriteKeys, parallelism: int | None = None) -> ExactTasks:
    return pack(keys, files_per_key(keys), parallelism)


def tasks_of(tasks: ExactTasks, at: int) -> range:
    return range(int(tasks.first[at]), int(tasks.first[at] + tasks.files[at]))


@given(keys_to_write(), st.none() | st.integers(1, 50))
def test_every_key_has_files_and_every_task_has_a_key(
    keys: WriteKeys, parallelism: int | None
) -> None:
    tasks = planned(keys, parallelism)

    assert np.all(tasks.files >= 1)
    assert np.all(tasks.files <= np.maximum(keys.rows, 1))
    used = {task for at in range(len(keys)) for task in tasks_of(tasks, at)}
    assert used == set(range(tasks.count))


@given(keys_to_write())
def test_a_key_of_several_files_shares_its_tasks_with_no_other(keys: WriteKeys) -> None:
    tasks = planned(keys)

    held = Counter(task for at in range(len(keys)) for task in tasks_of(tasks, at))

    for at in np.flatnonzero((tasks.files > 1) | (keys.weight > 1)).tolist():
        assert all(held[task] == 1 for task in tasks_of(tasks, at))


@given(keys_to_write(), st.integers(1, 50))
def test_no_task_gets_more_small_keys_than_its_share(keys: WriteKeys, parallelism: int) -> None:
    tasks = planned(keys, parallelism)
    work = np.maximum(keys.weight, 1 / 64)

    for task in set(tasks.first.tolist()):
        sharing = tasks.first == task
        if np.count_nonzero(sharing) > 1:
            one_more = work[(tasks.files == 1) & (keys.weight <= 1)].max()
            assert work[sharing].sum() <= work.sum() / parallelism / 4 + one_more + 1e-6
    assert tasks.files.tolist() == planned(keys).files.tolist()


@given(keys_to_write())
def test_small_keys_share_a_task_within_a_bucket_and_up_to_the_target(keys: WriteKeys) -> None:
    tasks = planned(keys)

    for task in set(tasks.first.tolist()):
        sharing = np.flatnonzero((tasks.first == task) & (tasks.files == 1))
        if len(sharing) > 1:
            assert keys.weight[sharing].sum() <= 1 + 1e-6
            assert len(sharing) <= 64
            assert keys.bucket is None or len(set(keys.bucket[sharing].tolist())) == 1


@given(keys_to_write())
def test_neighbouring_tasks_of_small_keys_could_not_be_merged(keys: WriteKeys) -> None:
    tasks = planned(keys)
    small = np.flatnonzero((tasks.files == 1) & (keys.weight <= 1))
    bucket = np.zeros(len(keys)) if keys.bucket is None else keys.bucket
    size: defaultdict[int, float] = defaultdict(float)
    of: dict[int, int] = {}
    for at in small.tolist():
        size[int(tasks.first[at])] += max(float(keys.weight[at]), 1 / 64)
        of[int(tasks.first[at])] = int(bucket[at])

    for left, right in zip(sorted(of), sorted(of)[1:], strict=False):
        assert of[left] != of[right] or size[left] + size[right] > 1


@given(keys_to_write())
def test_files_are_neither_far_above_the_target_nor_needlessly_halved(keys: WriteKeys) -> None:
    files = files_per_key(keys)
    mean = keys.weight / files

    one_row_each = files == np.maximum(keys.rows, 1)
    assert np.all((mean <= 2**0.5 + 1e-9) | one_row_each)
    assert np.all((mean >= MOST / 2 / 1.04 - 1e-9) | (files == 1))
    alone = files == 1
    assert np.all((keys.weight[alone] <= MOST) | (keys.rows[alone] <= 1))


@given(keys_to_write())
def test_the_same_keys_give_the_same_plan(keys: WriteKeys) -> None:
    first, again = planned(keys), planned(keys)

    assert (first.files.tolist(), first.first.tolist()) == (
        again.files.tolist(),
        again.first.tolist(),
    )


def naive_murmur3_of_int(value: int, seed: int) -> int:
    def rotated(word: int, bits: int) -> int:
        return (word << bits | word >> (32 - bits)) & MASK

    mixed = (value & MASK) * 0xCC9E2D51 & MASK
    mixed = rotated(mixed, 15) * 0x1B873593 & MASK
    hashed = (rotated(seed ^ mixed, 13) * 5 + 0xE6546B64) & MASK
    hashed ^= 4
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & MASK
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & MASK
    hashed ^= hashed >> 16
    return hashed - 2**32 if hashed >= 2**31 else hashed


@given(
    st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=25, unique=True),
    st.integers(1, 6),
    st.integers(1, 20),
)
def test_collisions_equal_a_count_one_by_one(
    values: list[int | None], salts: int, scale: int
) -> None:
    hashes = hash_columns([pa.array(values, pa.int32())], len(values))
    rows = np.full(len(values), 10**9, np.int64)
    keys = WriteKeys.of(rows, np.full(len(values), float(salts)), None, hashes)
    slots = len(values) * salts * scale

    outcome = salted(keys, salts, scale)

    seeds = [42 if value is None else naive_murmur3_of_int(value, 42) for value in values]
    held = Counter(
        naive_murmur3_of_int(salt, seed & MASK) % slots for seed in seeds for salt in range(salts)
    )
    assert outcome.files == len(values) * salts
    assert round(outcome.efficiency * outcome.files) == len(held)
    assert round(outcome.collisions * len(held)) == sum(count > 1 for count in held.values())
    assert round(outcome.severe * len(held)) == sum(count > 2 for count in held.values())
    assert outcome.most_keys == max(held.values())


@given(keys_to_write(), st.integers(1, 50), st.integers(1, 6))
def test_the_figures_of_an_outcome_are_within_their_bounds(
    keys: WriteKeys, tasks: int, salts: int
) -> None:
    with_rows = int(np.count_nonzero(keys.rows))
    for outcome in (
        by_columns(keys, tasks),
        salted(keys, salts, 2),
        ranged_by_hash(keys, tasks),
        exactly(keys, planned(keys)),
        *([dealt(keys, tasks)] if with_rows == len(keys) else []),
    ):
        assert with_rows <= outcome.files <= max(int(keys.rows.sum()), 1)
        assert 0 <= outcome.small_files <= outcome.files
        assert 0 <= outcome.severe <= outcome.collisions <= 1
        assert 0 <= outcome.efficiency <= 1
        if with_rows:
            assert outcome.mean_file * outcome.files <= keys.total * (1 + 1e-9)
            assert outcome.largest_file <= outcome.largest_task * (1 + 1e-9)


@given(st.integers(1, 400), st.integers(1, 9), st.floats(0.05, 0.98))
def test_the_scale_reaches_the_requested_efficiency(
    count: int, salts: int, efficiency: float
) -> None:
    keys = WriteKeys.equal(count, float(count * salts), None)

    scale = scale_for(keys, salts, efficiency)

    assert salted(keys, salts, scale).efficiency >= efficiency
