"""Tez' rounds over nodes and racks, by example."""

from __future__ import annotations

import numpy as np

from tests.support.tables.inventories import inventory
from windrow_service.planner.packing.strategies.tez import by_rounds
from windrow_service.planner.splits import Hosts


def groups(hosts: list[list[str]], length: int, most: int | None = None) -> list[list[int]]:
    """Group splits of 100 bytes; return the splits of each group, in the order they were made."""
    column = inventory([100] * len(hosts), hosts=hosts)["hosts"]
    number = by_rounds(np.full(len(hosts), 100), Hosts.of(column), length, most)
    return [np.flatnonzero(number == group).tolist() for group in range(number.max() + 1)]


def test_nodes_take_one_group_each_in_turn_by_name() -> None:
    assert groups([["b"], ["a"]] * 4, 200) == [[1, 3], [0, 2], [5, 7], [4, 6]]


def test_a_split_goes_to_the_first_of_its_nodes_in_turn() -> None:
    assert groups([["a", "b"]] * 4, 200) == [[0, 1], [2, 3]]


def test_splits_too_few_for_a_node_are_grouped_with_its_rack() -> None:
    hosts = [["/r1/a"], ["/r2/c"], ["/r1/b"], ["/r2/d"]]

    assert groups(hosts, 400) == [[0, 2], [1, 3]]


def test_racks_make_smaller_groups() -> None:
    hosts = [[f"/r/n{n}"] for n in range(6)]

    assert groups(hosts, 400) == [[0, 1, 2], [3, 4, 5]]


def test_splits_without_hosts_are_grouped_last_and_apart() -> None:
    assert groups([[], ["z"], [], ["z"]], 200) == [[1, 3], [0, 2]]


def test_the_rest_of_a_rack_is_grouped_however_small() -> None:
    assert groups([["/r/a"], ["/q/b"]], 1000) == [[1], [0]]


def test_no_group_holds_more_splits_than_allowed() -> None:
    assert groups([["a"]] * 5, 1000, 2) == [[0, 1], [2, 3], [4]]
