"""Laws of the placement of cacheable files, for any files and workers."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from tests.support.tables.inventories import inventory
from windrow_service.planner.caching.cached import FALLBACK, HELD, PRIMARY, SECONDARY
from windrow_service.planner.caching.file_keys import Holding, file_keys
from windrow_service.planner.caching.workers import candidates, place
from windrow_service.planner.splits import NO_HOST, Hashes, Ints

SETTINGS = examples(50)
NOTHING = np.empty(0, np.uint64)


def keys_of(count: int, seed: int = 0) -> Hashes:
    return np.unique(np.random.default_rng(seed).integers(0, 2**64, count, np.uint64))


def placed(
    keys: Hashes, sizes: Ints, holdings: list[Holding]
) -> tuple[list[str | None], list[int]]:
    """Return the host of each file, and the reason for it."""
    cached = place(keys, sizes, holdings)
    hosts = [cached.workers[at] if at != NO_HOST else None for at in cached.worker]
    return hosts, cached.choice.tolist()


@st.composite
def situations(draw: st.DrawFn) -> tuple[Hashes, Ints, list[Holding]]:
    keys = keys_of(draw(st.integers(1, 60)), draw(st.integers(0, 99)))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    sizes = rng.integers(0, draw(st.sampled_from([2, 100, 10**9])), len(keys))
    hosts = draw(st.lists(st.sampled_from("abcde"), max_size=6))
    share = draw(st.sampled_from([0.0, 0.3, 1.0]))
    room = draw(st.sampled_from([0, 1, int(sizes.sum()) // 3, 2**62]))
    holdings = [
        Holding(host, room, np.union1d(keys[rng.random(len(keys)) < share], keys_of(2, at)))
        for at, host in enumerate(hosts)
    ]
    return keys, sizes, holdings


@SETTINGS
@given(situations(), st.randoms(use_true_random=False))
def test_a_file_is_read_where_it_is_held_or_at_a_candidate_that_has_room(
    situation: tuple[Hashes, Ints, list[Holding]], random: Random
) -> None:
    keys, sizes, holdings = situation
    hosts, choice = placed(keys, sizes, holdings)
    names = tuple(sorted({holding.host for holding in holdings}))
    first, second = candidates(keys, names)

    fetched: dict[str, int] = {}
    for at, (host, why) in enumerate(zip(hosts, choice, strict=True)):
        holders = {each.host for each in holdings if keys[at] in each.keys}
        if why == HELD:
            assert host in holders
            assert holders.isdisjoint({names[first[at]]}) or host == names[first[at]]
        elif why == FALLBACK:
            assert host is None
            assert not holders
        else:
            assert host == names[{PRIMARY: first, SECONDARY: second}[why][at]]
            assert host is not None
            assert not holders or (why == PRIMARY and host not in holders)
            fetched[host] = fetched.get(host, 0) + int(sizes[at])
    for host, size_bytes in fetched.items():
        assert size_bytes <= sum(each.capacity_bytes for each in holdings if each.host == host)
    # The order of workers and files makes no difference.
    shuffled = list(holdings)
    random.shuffle(shuffled)
    order = np.random.default_rng(len(keys)).permutation(len(keys))
    assert placed(keys[order], sizes[order], shuffled) == (
        [hosts[at] for at in order],
        [choice[at] for at in order],
    )


@SETTINGS
@given(st.integers(1, 12), st.integers(1, 300), st.integers(0, 99))
def test_with_enough_room_every_file_is_cached_and_shares_are_nearly_equal(
    workers: int, files: int, seed: int
) -> None:
    keys = keys_of(files, seed)
    sizes = np.random.default_rng(seed).integers(1, 1_000, len(keys))
    holdings = [Holding(f"w{at}", 2**62, NOTHING) for at in range(workers)]

    hosts, choice = placed(keys, sizes, holdings)

    assert FALLBACK not in choice
    load = dict.fromkeys(hosts, 0)
    for host, size, why in zip(hosts, sizes.tolist(), choice, strict=True):
        load[host] += size
        if why == SECONDARY:
            assert workers > 1
    if workers > 1:
        # Only files whose two candidates both have their share may exceed it, and they are rare.
        share = 1.25 * int(sizes.sum()) / workers + int(sizes.max())
        beyond = sum(max(0, each - share) for each in load.values())
        assert beyond <= 0.2 * sizes.sum() + sizes.max()


@pytest.mark.parametrize("workers", [3, 10, 50])
def test_if_a_worker_dies_only_its_files_move_and_they_return_with_it(
    workers: int,
) -> None:
    keys = keys_of(30_000)
    sizes = np.full(len(keys), 1_000)
    alive = [Holding(f"w{at}", 2**62, NOTHING) for at in range(workers)]
    before, _ = placed(keys, sizes, alive)
    full = [
        Holding(each.host, each.capacity_bytes, keys[np.array(before) == each.host])
        for each in alive
    ]

    after, choice = placed(keys, sizes, full[1:])

    moved = sum(one != other for one, other in zip(before, after, strict=True))
    assert moved == sum(host == "w0" for host in before)
    assert 0 < moved <= 2 / workers * len(keys)
    assert choice.count(HELD) == len(keys) - moved
    # w0 comes back with the files on its disk, which other workers hold too now.
    again, _ = placed(
        keys,
        sizes,
        [
            Holding(each.host, each.capacity_bytes, keys[np.array(after) == each.host])
            if each.host != "w0"
            else each
            for each in full
        ],
    )
    assert again == before


def test_a_worker_that_comes_back_empty_regains_its_share_by_tenths() -> None:
    keys = keys_of(9_000)
    sizes = np.full(len(keys), 1_000)
    held = {
        host: np.array(placed(keys, sizes, [Holding(w, 2**62, NOTHING) for w in "bc"])[0]) == host
        for host in "bc"
    } | {"a": np.zeros(len(keys), np.bool_)}
    rounds = []
    for _ in range(8):
        hosts, choice = placed(
            keys, sizes, [Holding(host, 2**62, keys[rows]) for host, rows in held.items()]
        )
        moved = np.array(choice) == PRIMARY
        assert set(choice) <= {HELD, PRIMARY}
        assert {host for host, new in zip(hosts, moved, strict=True) if new} <= {"a"}
        held["a"] |= moved
        rounds.append(int(moved.sum()))

    assert max(rounds) == 900
    assert rounds[-1] == 0
    assert held["a"].sum() >= 0.6 * len(keys) / 3


@pytest.mark.parametrize("workers", [2, 3, 17, 200])
def test_candidates_are_spread_evenly_and_the_two_of_a_file_differ(workers: int) -> None:
    keys = keys_of(200_000)
    hosts = [f"host-{at}" for at in range(workers)]

    first, second = candidates(keys, hosts)

    assert (first != second).all()
    for choice in (first, second):
        counts = np.bincount(choice, minlength=workers)
        assert counts.min() > 0.75 * len(keys) / workers
        assert counts.max() < 1.25 * len(keys) / workers


def test_without_workers_nothing_is_placed() -> None:
    files = inventory([1, 2, 3])

    assert placed(file_keys(files), np.array([1, 2, 3]), []) == ([None] * 3, [FALLBACK] * 3)


def test_a_file_too_large_for_its_worker_does_not_keep_other_files_out() -> None:
    keys = keys_of(100)
    sizes = np.full(len(keys), 10)
    sizes[::7] = 5_000

    hosts, choice = placed(keys, sizes, [Holding("a", 1_000, NOTHING)])

    assert [why == FALLBACK for why in choice] == (sizes > 1_000).tolist()
    assert {host for host, size in zip(hosts, sizes, strict=True) if size == 10} == {"a"}


def test_keys_do_not_depend_on_the_chunks_of_a_table() -> None:
    files = inventory([5, 6, 7, 8])
    cut = pa.concat_tables([files[:1], files[1:3], files[3:]])

    assert file_keys(files).tolist() == file_keys(cut).tolist()
