"""Laws of numbered partitions: the distinct values in order, and plans of any set of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_core.files.rows import inventory_schema, rows_of
from windrow_service.inventory.manifests.live_files import merge_files
from windrow_service.planner.plan import plan_groups
from windrow_service.planner.policy import Policy
from windrow_service.planner.pruning.partitions import IN_PARTITIONS, Numbering, PartitionTuples

EARLY, LATE = map(datetime.fromisoformat, ("1900-01-01", "2026-01-01"))
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [-128, -1, 0, 127],
    pa.int64(): [-(2**63), 0, 5, 2**63 - 1],
    pa.bool_(): [False, True],
    pa.string(): ["", "10", "9", "B", "a", "é", "\U0001f600"],
    pa.binary(): [b"", b"\x00", b"a", b"\xff"],
    pa.float32(): [-math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, math.nan],
    pa.float64(): [-1e300, -0.0, 0.0, 5e-324, math.inf, math.nan],
    pa.decimal128(10, 2): [Decimal("-1.50"), Decimal("0.00"), Decimal("10.00")],
    pa.date32(): [date(1, 1, 1), date(1969, 12, 31), date(2026, 11, 25)],
    pa.timestamp("us"): [EARLY, LATE, LATE + timedelta(microseconds=1)],
    pa.timestamp("us", "UTC"): [
        EARLY.replace(tzinfo=timezone.utc),
        LATE.replace(tzinfo=timezone.utc),
    ],
    pa.null(): [],
}


def rank(type_: pa.DataType, value: Any) -> int:
    """Return the position of a value among those of its type; null comes first."""
    if value is None:
        return -1
    return [str(one) for one in VALUES[type_]].index(str(value))


@st.composite
def manifests(draw: st.DrawFn) -> tuple[pa.Schema, list[tuple[pa.Table, np.ndarray]]]:
    """Draw partition columns, and manifests with the positions of rows that are gone."""
    types = draw(st.lists(st.sampled_from(list(VALUES)), max_size=3))
    schema = pa.schema([(f"p{at}", type_) for at, type_ in enumerate(types)])
    columns = inventory_schema(pa.schema([]), schema)
    result = []
    for number in range(draw(st.integers(0, 4))):
        count = draw(st.integers(1, 8))
        partition = [
            {field.name: draw(st.sampled_from([None, *VALUES[field.type]])) for field in schema}
            for _ in range(count)
        ]
        deletes = draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
        rows = draw(st.lists(st.none() | st.integers(0, 2**40), min_size=count, max_size=count))
        sizes = draw(st.lists(st.integers(0, 2**55), min_size=count, max_size=count))
        given_columns = {
            "path": pa.array([f"{number}/{at}" for at in range(count)]),
            "size_bytes": pa.array(sizes, pa.int64()),
            "row_count": pa.array(rows, pa.int64()),
            "delete_count": pa.array(deletes, pa.int32()),
            "partition": pa.array(partition, columns.field("partition").type),
            "stats": pa.array([{}] * count, pa.struct([])),
        }
        gone = draw(st.sets(st.integers(0, count - 1), max_size=count - 1))
        table = rows_of(given_columns, columns, count)
        result.append((table, np.array(sorted(gone), np.int32)))
    return schema, result


def live_rows(all_manifests: Sequence[tuple[pa.Table, np.ndarray]]) -> list[dict[str, Any]]:
    return [
        row
        for files, gone in all_manifests
        for at, row in enumerate(files.to_pylist())
        if at not in gone
    ]


def key_of(schema: pa.Schema, row: dict[str, Any]) -> tuple[int, ...]:
    return tuple(rank(field.type, row["partition"][field.name]) for field in schema)


@examples(60)
@given(manifests())
def test_partitions_are_the_distinct_values_in_order_with_the_figures_of_their_files(
    drawn: tuple[pa.Schema, list[tuple[pa.Table, np.ndarray]]],
) -> None:
    schema, all_manifests = drawn
    rows = live_rows(all_manifests)
    keys = [key_of(schema, row) for row in rows]
    sizes: Counter[tuple[int, ...]] = Counter()
    counts: dict[tuple[int, ...], list[int | None]] = {}
    for key, row in zip(keys, rows, strict=True):
        sizes[key] += row["size_bytes"]
        counts.setdefault(key, []).append(None if row["delete_count"] else row["row_count"])

    tuples = [PartitionTuples.of(files, gone) for files, gone in all_manifests]
    numbering = Numbering.of(tuples, schema)

    expected = sorted(set(keys))
    assert numbering.partitions.schema.names == [*schema.names, *FIGURE_NAMES]
    values = numbering.partitions.to_pylist()
    assert [key_of(schema, {"partition": one}) for one in values] == expected
    assert [one["file_count"] for one in values] == [keys.count(key) for key in expected]
    assert [one["size_bytes"] for one in values] == [sizes[key] for key in expected]
    assert [one["row_count"] for one in values] == [
        None if None in counts[key] else sum(count or 0 for count in counts[key])
        for key in expected
    ]
    assert numbering.memory_bytes >= 0
    # Whatever else a manifest has, its partitions have the same order.
    for one in tuples:
        assert all(len(column) == len(one.file_count) for column in one.columns)


FIGURE_NAMES = ["file_count", "size_bytes", "row_count"]


@examples(60)
@given(manifests(), st.data())
def test_a_plan_of_some_partitions_has_their_files_and_no_others(
    drawn: tuple[pa.Schema, list[tuple[pa.Table, np.ndarray]]], data: st.DataObject
) -> None:
    schema, all_manifests = drawn
    tuples = [PartitionTuples.of(files, gone) for files, gone in all_manifests]
    numbering = Numbering.of(tuples, schema)
    edges = sorted(data.draw(st.sets(st.integers(0, len(numbering)))))
    ranges = list(zip(edges[::2], edges[1::2], strict=False))
    numbers = {number for first, end in ranges for number in range(first, end)}

    flags = numbering.flags(ranges)
    needs = numbering.manifests(flags)
    tables, removals = [], []
    for at, (files, gone) in enumerate(all_manifests):
        if needs[at]:
            is_in = numbering.files(at, tuples[at].code, flags)
            tables.append(files.append_column(IN_PARTITIONS, pa.array(is_in)))
            removals.append(gone)

    rows = live_rows(all_manifests)
    order = sorted({key_of(schema, row) for row in rows})
    expected = {row["path"] for row in rows if order.index(key_of(schema, row)) in numbers}
    planned = set()
    if tables:
        plan = plan_groups(merge_files(tables, removals), None, Policy())
        planned = set(plan.files["path"].take(pa.array(plan.splits.file)).to_pylist())
        pruned = plan.pruning.pruned["partition"].files
        assert pruned == len(plan.files) - len(expected)
    # A manifest is read only for a file that is wanted.
    assert {path.split("/")[0] for path in expected} == {
        files["path"][0].as_py().split("/")[0] for files in tables
    }
    assert planned == expected
