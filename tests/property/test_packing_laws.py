"""Laws of the parts of `balanced` packing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from tests.support.tables.inventories import inventory
from windrow_service.planner.packing.cut import cut
from windrow_service.planner.packing.fill import fill_groups
from windrow_service.planner.packing.locality import places
from windrow_service.planner.packing.spread import Items
from windrow_service.planner.packing.waves import group_by_key
from windrow_service.planner.policy import Policy

SETTINGS = examples(100)
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Packing:
    """Splits in runs of equal key, and limits."""

    length: Ints
    work: Ints
    keys: Ints
    share: int
    policy: Policy

    @property
    def key(self) -> Ints:
        return np.repeat(np.arange(len(self.keys) - 1), np.diff(self.keys))


@st.composite
def packings(draw: st.DrawFn) -> Packing:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.integers(1, 120), min_size=1, max_size=4))
    limit = draw(st.integers(2, 200))
    most = draw(st.sampled_from([2, 4, 10, limit]))
    length = rng.integers(0, max(min(most, limit), 1), sum(sizes))
    work = length + draw(st.integers(1, 20)) + rng.integers(0, draw(st.integers(1, 30)), sum(sizes))
    policy = Policy(
        max_split_size=limit,
        max_small_splits_grouped=draw(st.none() | st.integers(1, 30)),
        parallelism=draw(st.integers(1, 9)),
    )
    share = draw(st.integers(1, 2_000))
    return Packing(length, work, np.concatenate(([0], np.cumsum(sizes))), share, policy)


@st.composite
def small_packings(draw: st.DrawFn) -> Packing:
    """Draw splits of at most a sixteenth of a group each."""
    packing = draw(packings())
    limit = 16 * max(int(packing.length.max()), 1) + draw(st.integers(0, 50))
    share = 16 * int(packing.work.max()) + draw(st.integers(0, 2_000))
    policy = replace(packing.policy, max_split_size=limit)
    return replace(packing, share=share, policy=policy)


def check_groups(packing: Packing, group: Ints) -> None:
    """Check that groups are numbered without gaps, hold one key each, and keep the limits."""
    used = np.unique(group)
    assert used.tolist() == list(range(len(used)))
    for number in used:
        members = np.flatnonzero(group == number)
        assert len(set(packing.key[members].tolist())) == 1
        if len(members) > 1:
            assert packing.length[members].sum() <= packing.policy.max_split_size
            most = packing.policy.max_small_splits_grouped
            assert most is None or len(members) <= most


@SETTINGS
@given(packings())
def test_filling_keeps_every_limit_and_never_mixes_keys(packing: Packing) -> None:
    group = fill_groups(packing.length, packing.work, packing.keys, packing.share, packing.policy)

    check_groups(packing, group)


@SETTINGS
@given(small_packings())
def test_groups_of_small_splits_are_filled_until_the_next_split_does_not_fit(
    packing: Packing,
) -> None:
    group = fill_groups(packing.length, packing.work, packing.keys, packing.share, packing.policy)

    check_groups(packing, group)
    work = np.bincount(group, packing.work)
    assert work.max() <= packing.share
    length = np.bincount(group, packing.length)
    size = np.bincount(group)
    key = packing.key[np.unique(group, return_index=True)[1]]
    for number in np.flatnonzero(key[1:] == key[:-1]):
        following = np.flatnonzero(group == number + 1)[0]
        full = (
            length[number] + packing.length[following] > packing.policy.max_split_size
            or work[number] + packing.work[following] > packing.share
            or size[number] == packing.policy.max_small_splits_grouped
        )
        assert full


@SETTINGS
@given(small_packings(), st.integers(1, 40))
def test_filling_does_not_depend_on_later_splits(packing: Packing, more: int) -> None:
    """Groups of small splits stay the same when splits are added after them."""
    count = len(packing.length)
    one_key = np.array([0, count])
    before = fill_groups(packing.length, packing.work, one_key, packing.share, packing.policy)

    length = np.concatenate((packing.length, packing.length[:more]))
    work = np.concatenate((packing.work, packing.work[:more]))
    keys = np.array([0, len(length)])
    after = fill_groups(length, work, keys, packing.share, packing.policy)

    assert after[:count].tolist() == before.tolist()


@SETTINGS
@given(packings(), st.data())
def test_spreading_keeps_every_limit_and_leaves_no_group_empty(
    packing: Packing, data: st.DataObject
) -> None:
    size = np.diff(packing.keys)
    count = np.array([data.draw(st.integers(1, int(most))) for most in size])

    items = Items(packing.length, packing.work, packing.keys)
    group = items.spread(count, packing.policy)

    check_groups(packing, group)
    made = [len(set(group[packing.key == key].tolist())) for key in range(len(size))]
    assert (np.array(made) >= count).all()


@SETTINGS
@given(packings(), st.booleans(), st.lists(st.integers(1, 500), max_size=12))
def test_grouping_by_key_keeps_every_limit_and_enough_slots_busy(
    packing: Packing, is_short: bool, alone: list[int]
) -> None:
    share = None if is_short else packing.share
    others = np.array(alone, np.int64)

    group = group_by_key(packing.length, packing.work, packing.keys, share, others, packing.policy)

    check_groups(packing, group)
    if is_short:
        slots = min(packing.policy.parallelism, len(group) + len(alone))
        assert len(set(group.tolist())) + len(alone) >= slots


@SETTINGS
@given(
    st.lists(
        st.tuples(
            st.integers(1, 60),
            st.lists(st.sampled_from(["/r/a", "/r/b", "/q/c", "d", "e"]), max_size=3, unique=True),
            st.integers(0, 2),
        ),
        min_size=1,
        max_size=60,
    ),
    st.integers(20, 200),
)
def test_a_place_is_a_host_or_rack_of_all_its_splits_or_anywhere(
    files: list[tuple[int, list[str], int]], share: int
) -> None:
    sizes, hosts, regions = (list(column) for column in zip(*files, strict=True))
    splits = cut(inventory(sizes, hosts=hosts), np.arange(len(sizes)), 1_000)
    region = np.array(regions)

    place, _ = places(splits, region, np.array(sizes) / share)

    names = splits.hosts.names
    racks = sorted({rack for rack in splits.hosts.racks if rack})
    for row, number in enumerate(place.tolist()):
        mine = set(hosts[row])
        if 1 <= number <= len(names):
            assert names[number - 1] in {name.rpartition("/")[2] for name in mine}
        elif number > len(names):
            rack = racks[number - 1 - len(names)]
            assert rack in {name.rpartition("/")[0] for name in mine}
    held = np.zeros((3, int(place.max()) + 1))
    np.add.at(held, (region, place), np.array(sizes) / share)
    at_a_place = held[:, 1:]
    assert ((at_a_place == 0) | (at_a_place >= 0.5)).all()
