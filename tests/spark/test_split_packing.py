"""Tasks of Spark's own reader end at about the same time, near the bytes that they read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from py4j.java_gateway import get_field
from pyspark.sql import SparkSession

from tests.support.laws import examples
from windrow_spark.relation.java_classes import prepare
from windrow_spark.relation.native import task_count
from windrow_spark.relation.scans import ANSWERS

pytestmark = pytest.mark.spark

MB = 10**6
HOSTS = ("a", "b", "c", "d")

# A split takes so much longer on a host that does not hold it.
AWAY = 1.25

# By less than this a task need not end sooner.
NEGLIGIBLE = 16 * 2**20

Split = tuple[int, Sequence[str]]


def packed(
    spark: SparkSession, splits: Sequence[Split], tasks: int, executors: Sequence[str] = ()
) -> list[tuple[str, list[int]]]:
    """Return the host and the splits of each task, in the order in which Spark starts them."""
    packing = prepare(spark, ANSWERS).loadClass("windrow.SplitPacking$Factory").newInstance()
    gateway: Any = spark.sparkContext._gateway
    jvm = gateway.jvm

    def texts(values: Sequence[str]) -> Any:
        array = gateway.new_array(jvm.String, len(values))
        for at, value in enumerate(values):
            array[at] = value
        return array

    sizes = gateway.new_array(jvm.long, len(splits))
    locations = gateway.new_array(jvm.String, len(splits), 0)
    for at, (size, hosts) in enumerate(splits):
        sizes[at] = size
        locations[at] = texts(hosts)
    objects = packing.packed(sizes, locations, tasks, texts(executors))
    return [(get_field(task, "host"), list(get_field(task, "splits"))) for task in objects]


def ends(splits: Sequence[Split], tasks: Sequence[tuple[str, list[int]]]) -> list[float]:
    """Return how long each task takes, in bytes of its own host that it could read until then."""
    return [
        sum(splits[at][0] * (1 if host in splits[at][1] or not host else AWAY) for at in positions)
        for host, positions in tasks
    ]


@examples(60)
@given(
    splits=st.lists(
        st.tuples(st.integers(0, 300 * MB), st.lists(st.sampled_from(HOSTS), unique=True)),
        min_size=1,
        max_size=30,
    ),
    tasks=st.integers(1, 12),
    executors=st.lists(st.sampled_from(HOSTS), unique=True),
)
def test_each_split_is_read_once_and_no_task_takes_much_longer_than_the_mean(
    spark: SparkSession, splits: list[Split], tasks: int, executors: list[str]
) -> None:
    reads = packed(spark, splits, tasks, executors)

    assert sorted(at for _, positions in reads for at in positions) == list(range(len(splits)))
    assert len(reads) <= tasks
    assert {host for host, _ in reads} <= {*(executors or HOSTS), ""}
    each = ends(splits, reads)
    assert each == sorted(each, reverse=True)
    sizes = [size for size, _ in splits]
    hosts = min(tasks, len(executors or {name for _, names in splits for name in names}) or 1)
    host = AWAY * (sum(sizes) / hosts + max(sizes)) + NEGLIGIBLE
    assert each[0] <= host / (tasks // hosts) + AWAY * max(sizes) + 1


def test_tasks_read_what_their_hosts_hold_if_hosts_hold_equally_much(spark: SparkSession) -> None:
    splits = [(64 * MB + at, [HOSTS[at % 3]]) for at in range(12)]

    reads = packed(spark, splits, 6)

    assert all(splits[at][1] == [host] for host, positions in reads for at in positions)
    assert [len(positions) for _, positions in reads] == [2] * 6


def test_a_host_that_holds_more_than_its_share_leaves_the_excess_to_others(
    spark: SparkSession,
) -> None:
    splits = [(100 * MB, ["a"])] * 6 + [(100 * MB, ["b"])] * 3

    reads = packed(spark, splits, 3, ["a", "b", "c"])

    assert sorted((host, len(positions)) for host, positions in reads) == [
        ("a", 3),
        ("b", 3),
        ("c", 3),
    ]


def test_copies_of_splits_let_tasks_be_even_and_at_home(spark: SparkSession) -> None:
    splits = [(64 * MB, ["a", "b"])] * 6 + [(64 * MB, ["a", "c"])] * 3

    reads = packed(spark, splits, 3)

    assert [len(positions) for _, positions in reads] == [3, 3, 3]
    assert all(host in splits[at][1] for host, positions in reads for at in positions)


def test_without_hosts_tasks_are_even(spark: SparkSession) -> None:
    splits: list[Split] = [(64 * MB + at % 3, []) for at in range(10)]

    assert [len(positions) for _, positions in packed(spark, splits, 2)] == [5, 5]


def test_hosts_beyond_the_number_of_tasks_are_those_with_fewest_bytes(spark: SparkSession) -> None:
    splits = [(64 * MB, ["a"]), (96 * MB, ["b"]), (32 * MB, ["c"])]

    assert {host for host, _ in packed(spark, splits, 2)} == {"a", "b"}


@pytest.mark.parametrize("size_bytes", [0, 1, 3])
def test_there_are_no_more_tasks_than_bytes(size_bytes: int) -> None:
    assert task_count(size_bytes, 8) == max(1, size_bytes)


def test_tasks_stay_below_their_most_bytes_and_their_numbers_are_few() -> None:
    counts = {task_count(gigabytes * 10**9, 8) for gigabytes in range(1, 1_000)}

    assert counts == {8 << doublings for doublings in range(10)}
    assert all(10**12 / task_count(10**12, slots) <= 256 * 2**20 for slots in (1, 7, 100))
