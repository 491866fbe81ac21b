"""How many partitions Spark's own reader makes of files."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_spark.relation.native_packing import partition_count, partitions_of

MB = 10**6


def sizes_of(*sizes: int) -> npt.NDArray[np.int64]:
    return np.array(sizes, np.int64)


def files_per_slot(sizes: npt.NDArray[np.int64], slots: int) -> list[int]:
    """Return how many splits each slot reads if it takes the next partition once it is free."""
    ends, counts = [0] * slots, [0] * slots
    for splits, size_bytes in partitions_of(sizes, partition_count(sizes, slots)):
        slot = ends.index(min(ends))
        ends[slot] += size_bytes
        counts[slot] += splits
    return sorted(counts)


def test_slots_read_as_many_files_of_one_size_as_others() -> None:
    random = np.random.default_rng(0)
    for count, slots in ((10, 2), (16, 2), (100, 2), (64, 8)):
        sizes = 64 * MB + random.integers(-10_000, 10_000, count)
        assert files_per_slot(sizes, slots) == [count // slots] * slots


def test_a_few_large_files_are_cut_so_that_all_slots_read() -> None:
    assert [splits for splits, _ in partitions_of(sizes_of(100 * MB), 2)] == [1, 1]
    most = max(size for _, size in partitions_of(sizes_of(*[100 * MB] * 3), 4))
    assert most == 75 * MB


@pytest.mark.parametrize("size_bytes", [0, 1, 3])
def test_files_of_a_few_bytes_are_not_cut_into_nothing(size_bytes: int) -> None:
    assert partition_count(sizes_of(size_bytes), 8) == max(1, size_bytes)


@examples(100)
@given(
    st.lists(st.integers(0, 2_000 * MB), min_size=1, max_size=40),
    st.integers(1, 50),
)
def test_partitions_are_those_of_sparks_loop(sizes: list[int], count: int) -> None:
    assert list(partitions_of(sizes_of(*sizes), count)) == packed_by_a_loop(sizes, count)


def packed_by_a_loop(sizes: list[int], count: int) -> list[tuple[int, int]]:
    """Pack files as Spark's `FilePartition.getFilePartitions` does."""
    most = max(1, min(512 * 2**20, sum(sizes) // count))
    splits = [min(most, size - at) for size in sizes for at in range(0, size, most)]
    partitions: list[tuple[int, int]] = []
    number = size_bytes = 0
    for split in sorted(splits, reverse=True):
        if number and size_bytes + split > most:
            partitions.append((number, size_bytes))
            number = size_bytes = 0
        number, size_bytes = number + 1, size_bytes + split
    return [*partitions, (number, size_bytes)] if number else partitions
