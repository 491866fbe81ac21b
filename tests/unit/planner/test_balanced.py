"""Windrow's own packing, by example."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.tables.inventories import MIB, inventory
from windrow_service.planner.plan import GroupedSplits, plan_groups
from windrow_service.planner.policy import Policy


def counts(grouped: GroupedSplits) -> list[int]:
    return np.diff(grouped.offsets).tolist()  # type: ignore[no-any-return]


def hosts_of(grouped: GroupedSplits) -> list[list[str]]:
    names = grouped.splits.hosts.names
    return [
        [names[code] for code in codes]
        for codes in np.split(grouped.host_codes, grouped.host_offsets[1:-1])
    ]


def test_small_files_fill_as_few_groups_as_the_size_limit_allows() -> None:
    grouped = plan_groups(inventory([16 * 1024] * 10_000), None, Policy())

    assert counts(grouped) == [4096, 4096, 10_000 - 2 * 4096]


def test_there_are_as_many_groups_as_tasks_that_run_at_the_same_time() -> None:
    grouped = plan_groups(inventory([1000] * 100), None, Policy(parallelism=20))

    assert counts(grouped) == [5] * 20


def test_fewer_splits_than_slots_are_one_group_each() -> None:
    assert counts(plan_groups(inventory([10] * 3), None, Policy(parallelism=8))) == [1, 1, 1]


def test_the_last_wave_of_tasks_is_full() -> None:
    grouped = plan_groups(inventory([MIB] * 192), None, Policy(parallelism=2))

    assert counts(grouped) == [64, 64, 32, 32]


def test_a_table_that_fits_one_wave_is_divided_evenly() -> None:
    grouped = plan_groups(inventory([MIB] * 96), None, Policy(parallelism=2))

    assert counts(grouped) == [48, 48]


def test_a_nearly_empty_last_wave_is_not_divided() -> None:
    grouped = plan_groups(inventory([MIB] * 64 * 8 + [1]), None, Policy(parallelism=8))

    assert counts(grouped) == [64] * 8 + [1]


def test_a_large_file_among_small_ones_does_not_make_a_straggler() -> None:
    policy = Policy(parallelism=4, open_file_cost=0)

    grouped = plan_groups(inventory([40 * MIB] + [MIB] * 120), None, policy)

    assert len(grouped) == 4
    assert grouped.size_bytes.tolist() == [40 * MIB] * 4


def test_opening_files_counts_as_work() -> None:
    policy = Policy(parallelism=2, open_file_cost=MIB)

    grouped = plan_groups(inventory([30 * MIB] + [1] * 30), None, policy)

    assert sorted(counts(grouped)) == [1, 30]


def test_a_split_as_large_as_the_limit_is_alone() -> None:
    grouped = plan_groups(inventory([64 * MIB, 1, 1]), None, Policy())

    assert counts(grouped) == [1, 2]


def test_the_size_limit_is_inclusive() -> None:
    grouped = plan_groups(inventory([20, 20, 20]), None, Policy(max_split_size=60))

    assert counts(grouped) == [3]


def test_the_count_limit_holds() -> None:
    policy = Policy(max_small_splits_grouped=7)

    grouped = plan_groups(inventory([1] * 50), None, policy)

    assert len(grouped) == 8
    assert max(counts(grouped)) <= 7


def test_buckets_never_share_a_group() -> None:
    grouped = plan_groups(
        inventory([1] * 8, buckets=[0, 1, None, 0, 1, None, 0, 0]), None, Policy()
    )

    assert sorted(grouped.bucket.tolist()) == [-1, 0, 1]


def test_files_are_grouped_by_host_if_hosts_hold_enough_bytes() -> None:
    hosts = [["a"], ["b"]] * 50
    grouped = plan_groups(inventory([MIB] * 100, hosts=hosts), None, Policy(parallelism=2))

    assert sorted(hosts_of(grouped)) == [["a"], ["b"]]


def test_hosts_with_too_few_bytes_share_groups_instead_of_making_tiny_ones() -> None:
    hosts = [[f"h{n:03d}"] for n in range(200)]

    grouped = plan_groups(inventory([1000] * 200, hosts=hosts), None, Policy(parallelism=4))

    assert counts(grouped) == [50] * 4
    assert hosts_of(grouped) == [[], [], [], []]


def test_hosts_that_would_double_the_slowest_slot_share_groups_with_their_neighbours() -> None:
    hosts = [[f"h{n % 8}"] for n in range(40)]

    grouped = plan_groups(inventory([16 * 1024] * 40, hosts=hosts), None, Policy(parallelism=4))

    assert counts(grouped) == [10] * 4
    # Two whole hosts in each group, half a group each.
    assert sorted(hosts_of(grouped)) == [[f"h{n}", f"h{n + 1}"] for n in range(0, 8, 2)]


def test_hosts_that_hold_half_a_group_together_are_preferred() -> None:
    hosts = [[f"h{n:02d}"] for n in range(20)]

    grouped = plan_groups(inventory([16 * 1024] * 20, hosts=hosts), None, Policy(parallelism=4))

    assert counts(grouped) == [5] * 4
    assert [len(names) for names in hosts_of(grouped)] == [3] * 4


def test_a_group_prefers_the_hosts_that_hold_most_of_it() -> None:
    files = inventory([10, 30], hosts=[["b", "a"], ["c", "b"]])

    grouped = plan_groups(files, None, Policy())

    assert hosts_of(grouped) == [["b", "c"]]


@pytest.mark.parametrize(
    ("sizes", "at_most"),
    [
        pytest.param(np.random.default_rng(1).integers(1, 60 * MIB, 5_000), 1.09, id="uniform"),
        pytest.param(
            np.minimum(np.random.default_rng(2).lognormal(13, 2, 50_000), 63 * MIB),
            1.05,
            id="log-normal",
        ),
        pytest.param(np.array([50 * MIB, 14 * MIB] * 500), 1.0, id="pairs-that-just-fit"),
    ],
)
def test_the_groups_are_close_to_the_fewest_possible(sizes: np.ndarray, at_most: float) -> None:
    sizes = sizes.astype(np.int64)

    grouped = plan_groups(inventory(sizes.tolist()), None, Policy())

    assert len(grouped) <= at_most * -(-int(sizes.sum()) // (64 * MIB))


def test_the_groups_come_largest_first() -> None:
    grouped = plan_groups(inventory([100 * MIB, 1, 80 * MIB, 90 * MIB]), None, Policy())

    assert grouped.size_bytes.tolist() == [100 * MIB, 90 * MIB, 80 * MIB, 1]


def test_delete_files_count_as_work_but_not_towards_the_size_limit() -> None:
    files = inventory([MIB] * 64, deletes=[(40, 30 * MIB)] + [(0, 0)] * 63)

    grouped = plan_groups(files, None, Policy(parallelism=2, open_file_cost=100))

    assert sum(counts(grouped)) == 64
    alone_with_deletes = next(
        members for members in np.split(grouped.splits.file, grouped.offsets[1:-1]) if 0 in members
    )
    assert len(alone_with_deletes) < 20


def test_leftovers_of_one_host_top_up_another_that_holds_a_replica() -> None:
    # Alone, each host would have one and a third groups.
    hosts = [["a", "b"], ["b", "a"]] * 170
    files = inventory([MIB // 4] * 340, hosts=hosts)

    grouped = plan_groups(files, None, Policy(max_split_size=32 * MIB, open_file_cost=0))

    assert len(grouped) == 3
    assert all(hosts_of(grouped))


def test_leftovers_of_hosts_are_grouped_by_rack_first() -> None:
    hosts = [[f"/rack-{n % 2}/h{n}"] for n in range(16)] * 4
    files = inventory([MIB] * 64, hosts=hosts)

    grouped = plan_groups(files, None, Policy(max_split_size=34 * MIB, open_file_cost=0))

    rack = [int(name[1:]) % 2 for name in grouped.splits.hosts.names]
    assert len(grouped) == 2
    for codes in np.split(grouped.splits.hosts.codes, grouped.offsets[1:-1]):
        assert len({rack[code] for code in codes}) == 1
    assert [len(hosts) for hosts in hosts_of(grouped)] == [3, 3]


def members(grouped: GroupedSplits) -> set[tuple[str, ...]]:
    paths = np.array(grouped.files["path"].to_pylist())
    return {
        tuple(paths[files].tolist())
        for files in np.split(grouped.splits.file, grouped.offsets[1:-1])
    }


@pytest.mark.parametrize("folder", ["ds=006x", "ds=999"], ids=["middle", "last"])
@pytest.mark.parametrize("most", [MIB // 4, 20 * MIB], ids=["small files", "large files"])
def test_a_new_partition_leaves_most_groups_unchanged(folder: str, most: int) -> None:
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, most, 40_000 if most == MIB // 4 else 8_000)
    paths = [f"ds={n * 10 // len(sizes):03d}/{n:06d}" for n in range(len(sizes))]
    before = plan_groups(inventory(sizes.tolist(), paths=paths), None, Policy())
    count = len(sizes) // 100
    more = rng.integers(1, most, count)

    after = plan_groups(
        inventory(
            [*sizes.tolist(), *more.tolist()],
            paths=[*paths, *(f"{folder}/new-{n:06d}" for n in range(count))],
        ),
        None,
        Policy(),
    )

    assert len(members(before) & members(after)) > 0.5 * len(before)


def test_a_host_with_most_of_a_short_table_keeps_the_size_limit() -> None:
    sizes, hosts = [MIB] * 160, [["a"]] * 100 + [["b"]] * 20 + [["c"]] * 20 + [["d"]] * 20

    grouped = plan_groups(inventory(sizes, hosts=hosts), None, Policy(parallelism=4))

    assert grouped.size_bytes.max() <= 64 * MIB
    assert len(grouped) % 4 == 0
