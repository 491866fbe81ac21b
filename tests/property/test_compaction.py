"""Compaction ends: rewritten files are not worth rewriting again."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tables.inventories import inventory
from windrow_service.planner.upkeep.compaction import (
    Candidates,
    CompactionPolicy,
    find_candidates,
    page_of,
)
from windrow_service.planner.upkeep.value_folders import Homes

DS = pa.schema([("ds", pa.string())])
TARGET = 1_000_000
ROW_BYTES = 10

SIZES = st.lists(st.integers(1, 2 * TARGET) | st.integers(1, TARGET // 10), max_size=40)
TABLES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), SIZES), max_size=6)
POLICIES = st.builds(
    CompactionPolicy,
    target_bytes=st.just(TARGET),
    min_files=st.integers(2, 6),
    min_small_ratio=st.sampled_from([0.0, 0.5]),
    worth_reads=st.sampled_from([100, 10**9]),
    max_bytes=st.sampled_from([TARGET, 5 * TARGET, 2**60]),
    max_files=st.sampled_from([7, 10**6]),
    below_bytes=st.none() | st.integers(1, TARGET),
)
UNBOUNDED = st.builds(
    CompactionPolicy,
    target_bytes=st.just(TARGET),
    min_files=st.integers(2, 6),
    min_small_ratio=st.just(0.0),
    worth_reads=st.just(10**9),
    max_bytes=st.just(2**60),
    max_files=st.just(10**6),
    below_bytes=st.none() | st.integers(1, TARGET),
)

# Folder, bucket, bytes.
File = tuple[str, int, int]


def files_in(tables: list[tuple[int, int, list[int]]]) -> list[File]:
    return [(f"ds={day}", bucket, size) for day, bucket, sizes in tables for size in sizes]


def inventory_of(files: list[File]) -> pa.Table:
    table = inventory(
        [size for _, _, size in files],
        paths=[f"{folder}/f{n:06d}" for n, (folder, _, _) in enumerate(files)],
        buckets=[bucket for _, bucket, _ in files],
    )
    rows = pa.array([-(-size // ROW_BYTES) for _, _, size in files], pa.int64())
    at = table.schema.get_field_index("row_count")
    return table.set_column(at, table.schema.field(at), rows).sort_by("path")


def judged(table: pa.Table, policy: CompactionPolicy) -> Candidates:
    return find_candidates(table, DS, joins=False, columns=1, is_bucketed=True, policy=policy)


def rewritten(table: pa.Table, found: Candidates, off: list[float]) -> list[File]:
    """Return the files after rewriting the chosen ones into files of uneven sizes."""
    gone = set(found.rows_of(found.chosen).tolist())
    sizes = table["size_bytes"].to_pylist()
    paths, buckets = table["path"].to_pylist(), table["bucket"].to_pylist()
    left = [
        (paths[row].rpartition("/")[0], buckets[row], sizes[row])
        for row in range(len(sizes))
        if row not in gone
    ]
    for at in found.chosen.tolist():
        weights = np.resize(np.array(off), found.becomes[at])
        parts = (found.size_bytes[at] * weights / weights.sum()).astype(int)
        folder = found.folders[at].as_py()
        left += [(folder, int(found.bucket[at]), max(size, 1)) for size in parts.tolist()]
    return left


# Relative sizes of the files of one key, which the hash makes uneven.
UNEVEN = st.lists(st.floats(0.9, 1.1), min_size=1, max_size=5)


@given(TABLES, UNBOUNDED, UNEVEN)
def test_a_second_run_has_nothing_to_do(
    tables: list[tuple[int, int, list[int]]], policy: CompactionPolicy, uneven: list[float]
) -> None:
    table = inventory_of(files_in(tables))
    found = judged(table, policy)

    after = inventory_of(rewritten(table, found, uneven))

    assert len(after) == len(table) - int((found.files - found.becomes)[found.chosen].sum())
    assert len(judged(after, policy).chosen) == 0


@given(TABLES, POLICIES, UNEVEN)
def test_partial_runs_come_to_an_end_and_each_leaves_fewer_files(
    tables: list[tuple[int, int, list[int]]], policy: CompactionPolicy, uneven: list[float]
) -> None:
    table = inventory_of(files_in(tables))
    while len((found := judged(table, policy)).chosen):
        after = inventory_of(rewritten(table, found, uneven))
        assert len(after) < len(table)
        table = after


@given(TABLES, POLICIES)
def test_every_small_file_is_in_exactly_one_candidate_and_no_other_file_is(
    tables: list[tuple[int, int, list[int]]], policy: CompactionPolicy
) -> None:
    table = inventory_of(files_in(tables))

    found = judged(table, policy)

    sizes = table["size_bytes"].to_pylist()
    small = [row for row, size in enumerate(sizes) if size < policy.small_bytes]
    everything = found.rows_of(np.arange(len(found)))
    assert sorted(everything.tolist()) == small
    assert found.files.sum() == len(small)
    where = Counter(
        (path.rpartition("/")[0], bucket)
        for path, bucket in zip(table["path"].to_pylist(), table["bucket"].to_pylist(), strict=True)
    )
    paths = table["path"].to_pylist()
    for at in range(len(found)):
        rows = found.rows_of(np.array([at])).tolist()
        folder, bucket = found.folders[at].as_py(), int(found.bucket[at])
        assert {paths[row].rpartition("/")[0] for row in rows} <= {folder}
        assert found.all_files[at] == where[folder, bucket]
        assert found.size_bytes[at] == sum(sizes[row] for row in rows)
        assert len(rows) <= policy.max_files
        assert len(rows) == 1 or found.size_bytes[at] <= policy.max_bytes


@given(TABLES, POLICIES, st.integers(1, 4))
def test_all_pages_together_hold_the_chosen_partitions(
    tables: list[tuple[int, int, list[int]]], policy: CompactionPolicy, most: int
) -> None:
    found = judged(inventory_of(files_in(tables)), policy)

    pages: list[int] = []
    while len(page := page_of(found, len(pages), max_candidates=most, policy=policy)):
        assert len(page) <= most
        pages += page.tolist()

    assert pages == found.chosen.tolist()


SPELLED = st.dictionaries(
    st.sampled_from(["k=9", "k=09", "k=+9", "K=009", "k=1", "k=01", "k=2"]),
    st.lists(st.integers(1, 2 * TARGET), min_size=1, max_size=4),
    min_size=1,
)


@given(SPELLED, POLICIES, st.booleans())
def test_folders_of_one_value_become_one_and_then_stay(
    folders: dict[str, list[int]], policy: CompactionPolicy, as_doubles: bool
) -> None:
    type_ = pa.float64() if as_doubles else pa.int32()
    partition = pa.schema([("k", type_)])

    def compacted(files: list[File]) -> tuple[pa.Table, Candidates]:
        table = inventory_of(files)
        values = [int(path.split("/")[0][2:]) for path in table["path"].to_pylist()]
        struct = pa.StructArray.from_arrays([pa.array(values, type_)], names=["k"])
        at = table.schema.get_field_index("partition")
        table = table.set_column(at, "partition", struct)
        found = find_candidates(table, partition, columns=1, is_bucketed=False, policy=policy)
        return table, found

    files = [(folder, 0, size) for folder, sizes in folders.items() for size in sizes]
    table, found = compacted(files)
    left = rewritten(table, found, [1.0])
    homes = {int(folder[2:]): folder for folder, _, _ in left}
    assert sorted(homes.values()) == sorted({folder for folder, _, _ in left})
    for value, home in homes.items():
        same = {folder: sizes for folder, sizes in folders.items() if int(folder[2:]) == value}
        assert home in same
        if len(same) == 1:
            continue
        spelled_alike = [folder for folder in same if folder.startswith("k=")]
        most = max(len(same[folder]) for folder in spelled_alike or same)
        assert len(same[home]) == most

    # Folders that are joined once need not be joined again.
    _, again = compacted(left)
    assert set(again.folders.to_pylist()) <= set(homes.values())


def test_the_signs_of_zero_and_files_in_folders_below_are_not_joined() -> None:
    folders = ["k=-0.0", "k=0", "k=0.0", "k=0/sub", "k=NaN", "k=nan"]
    table = inventory_of([(folder, 0, 10) for folder in folders])
    numbers = pa.array([-0.0, 0.0, 0.0, 0.0, float("nan"), float("nan")])
    struct = pa.StructArray.from_arrays([numbers], names=["k"])
    by_path = dict(zip(folders, struct.to_pylist(), strict=True))
    values = [by_path[path.rpartition("/")[0]] for path in table["path"].to_pylist()]
    at = table.schema.get_field_index("partition")
    table = table.set_column(at, "partition", pa.array(values, struct.type))

    homes = Homes.of(table, pa.schema([("k", pa.float64())]))

    names = homes.names.to_pylist()
    home = {name: names[at] for name, at in zip(names, homes.of_folder.tolist(), strict=True)}
    assert home == {
        "k=-0.0": "k=-0.0",
        "k=0": "k=0",
        "k=0.0": "k=0",
        "k=0/sub": "k=0/sub",
        "k=NaN": "k=NaN",
        "k=nan": "k=NaN",
    }
