"""Which files Spark's own reader reads, and the groups of the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from tests.support.plans.plans import plan_of
from windrow_calls.plans import SplitPlan
from windrow_spark.hadoop import hadoop_path
from windrow_spark.relation.cost import Fractions, Way, fractions_of, native_files
from windrow_spark.relation.division import Division, Reader, divide

NUMBERS = Fractions(1, 0)
CHEAP_FILES = Way(scan_s=0.5, file_s=0.001, number_mb_s=0.1, text_mb_s=0.2)
CHEAP_BYTES = Way(scan_s=0.0, file_s=0.01, number_mb_s=0.001, text_mb_s=0.002)
MB = 10**6


def marked(sizes: list[int], *, slots: int = 1, fractions: Fractions = NUMBERS) -> list[bool]:
    able = np.ones(len(sizes), np.bool_)
    marks = native_files(np.array(sizes), able, fractions, slots, CHEAP_FILES, CHEAP_BYTES)
    return [bool(mark) for mark in marks]


def test_small_files_go_in_groups_and_large_ones_to_sparks_reader() -> None:
    sizes = [10_000] * 1000 + [100 * MB]
    assert marked(sizes) == [False] * 1000 + [True]
    # If few of their bytes are requested, large files count as small ones.
    assert marked(sizes, fractions=Fractions(0.0001, 0)) == [False] * 1001


def test_a_few_files_are_read_the_way_the_others_are() -> None:
    assert marked([10_000] * 3 + [100 * MB]) == [True] * 4
    assert marked([10_000] * 3) == [True] * 3
    assert marked([10_000] * 1000) == [False] * 1000


def test_the_longer_a_store_takes_to_answer_the_larger_are_the_files_of_sparks_reader() -> None:
    sizes = np.array([2**power * 1000 for power in range(20)])
    able = np.ones(len(sizes), np.bool_)
    limits = [
        int(sizes[native_files(sizes, able, NUMBERS, 1, request_s=seconds)].min())
        for seconds in (0.0, 0.001, 0.02)
    ]
    assert limits == sorted(limits)
    assert limits[0] < limits[2]


def test_files_that_must_stay_in_groups_do() -> None:
    able = np.array([False, True])
    marks = native_files(
        np.array([MB, 100 * MB]), able, Fractions(1, 0), 1, CHEAP_FILES, CHEAP_BYTES
    )
    assert marks.tolist() == [False, True]


def test_requested_columns_are_a_share_of_the_stored_ones() -> None:
    stored = [pa.int64(), pa.string(), pa.list_(pa.int64())]
    fractions = fractions_of([pa.int64()], stored)
    assert 0 < fractions.numbers < 0.5
    assert fractions.text == 0
    assert sum(
        (fractions_of(stored, stored).numbers, fractions_of(stored, stored).text)
    ) == pytest.approx(1)
    assert fractions_of([], []) == Fractions(0, 0)


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine files of ids, of which every third holds them as int32."""
    location = tmp_path_factory.mktemp("division")
    for number in range(9):
        type_ = pa.int32() if number % 3 == 2 else pa.int64()
        path = location / f"ds={number % 2}" / f"part-{number}.parquet"
        path.parent.mkdir(exist_ok=True)
        table = pa.table({"id": pa.array(range(40 * number + 1), type_)})
        pq.write_table(table, path, row_group_size=30)
    return location


def is_native(path: str) -> bool | None:
    """Return the value of `native` that a coordinator would give a file at `location`."""
    return {0: True, 1: True, 2: False}[int(path[-9]) % 3]


def divided(
    plan: SplitPlan,
    reader: Reader = "native",
    *,
    filtered: bool = False,
    home: str | None = "file:",
) -> Division:
    return divide(
        plan,
        reader,
        home=home,
        filtered=filtered,
        output=[pa.int64()],
        types=[pa.int64()],
    )


@examples(60, deadline=None)
@given(groups=st.integers(1, 9), by_row_group=st.booleans(), parallelism=st.integers(1, 4))
def test_every_file_is_read_one_way_and_every_split_of_the_others_once(
    location: Path, groups: int, by_row_group: bool, parallelism: int
) -> None:
    info, table = plan_of(
        location,
        {"id": "bigint"},
        partition={"ds": "int"},
        group_count=groups,
        by_row_group=by_row_group,
        native=is_native,
    )
    options = info.options.model_copy(update={"parallelism": parallelism})
    plan = SplitPlan(info.model_copy(update={"options": options}), table)
    division = divided(plan)

    native = set(division.native["path"].to_pylist())
    assert native == {f"ds={n % 2}/part-{n}.parquet" for n in range(9) if n % 3 < 2}
    every = [split for group in table["splits"].to_pylist() for split in group]
    left = [split for group in division.grouped["splits"].to_pylist() for split in group]
    key = repr
    assert sorted(left, key=key) == sorted((s for s in every if s["path"] not in native), key=key)
    assert division.grouped.schema.equals(table.schema)
    for group in division.grouped.to_pylist():
        assert group["size_bytes"] == sum(split["length"] for split in group["splits"]) > 0


def test_files_that_need_a_filter_or_a_cache_of_their_own_stay_in_groups(location: Path) -> None:
    residual = {"op": "gt", "column": "id", "value": 3}
    info, groups = plan_of(location, {"id": "bigint"}, residual=residual, native=is_native)
    plan = SplitPlan(info, groups)
    assert len(divided(plan).native) == 6
    assert len(divided(plan, filtered=True).native) == 0
    cached = plan.groups.append_column("cached_on", pa.array(["host", *[None] * 1]))
    assert 0 < len(divided(SplitPlan(plan.info, cached)).native) < 6
    assert divided(plan, "grouped").grouped is plan.groups


def test_files_are_divided_without_being_opened(location: Path) -> None:
    info, groups = plan_of(location, {"id": "bigint"}, native=is_native)
    elsewhere = info.model_copy(update={"location": "/nowhere"})
    assert len(divided(SplitPlan(elsewhere, groups)).native) == 6


def test_files_without_a_native_mark_stay_in_groups(location: Path) -> None:
    info, groups = plan_of(location, {"id": "bigint"})
    division = divided(SplitPlan(info, groups))
    assert division.grouped is groups
    assert "for 9 it is not known whether both readers agree: refresh the table" in division.reason
    splits = groups["splits"].combine_chunks()
    names = [field.name for field in splits.values.type if field.name != "native"]
    older = pa.StructArray.from_arrays([splits.values.field(name) for name in names], names)
    lists = pa.ListArray.from_arrays(splits.offsets, older)
    at = groups.column_names.index("splits")
    by_older_coordinator = groups.set_column(at, "splits", lists)
    assert len(divided(SplitPlan(info, by_older_coordinator)).native) == 0


def test_remote_files_go_to_sparks_reader_where_its_hadoop_has_their_store(location: Path) -> None:
    info, groups = plan_of(location, {"id": "bigint"}, native=is_native)
    remote = SplitPlan(info.model_copy(update={"location": "s3://bucket/table"}), groups)

    there = divided(remote, home="s3a://bucket/table")
    missing = divided(remote, home=None)

    assert len(there.native) == 6
    assert len(missing.native) == 0
    assert missing.reason == "Spark's Hadoop has no file system for s3://"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("ds=1/a b.parquet", "s3a://bucket/t/ds=1/a b.parquet"),
        ("s3://other/x", "s3a://other/x"),
        ("gs://other/x", None),
        ("/data/x", None),
    ],
)
def test_paths_of_an_inventory_become_those_of_hadoop(path: str, expected: str | None) -> None:
    assert hadoop_path("s3://bucket/t", "s3a://bucket/t", path) == expected
    local = {"ds=1/a b.parquet": "file:///t/ds=1/a b.parquet", "/data/x": "file:///data/x"}
    assert hadoop_path("/t", "file:///t", path) == local.get(path)
