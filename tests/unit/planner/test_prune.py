"""Pruning: files that must be pruned, conditions that are certain, and residual filters."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from windrow_core.files.rows import inventory_schema
from windrow_service.filters.bind import bind
from windrow_service.filters.sql import parse_sql
from windrow_service.planner.pruning.expressions import And, Comparison, Expression, In, Not
from windrow_service.planner.pruning.prune import Pruning, prune, residuals

TYPES: dict[str, pa.DataType] = {
    "i": pa.int32(),
    "x": pa.float64(),
    "f": pa.float32(),
    "s": pa.string(),
    "d": pa.date32(),
    "m": pa.decimal128(5, 2),
    "wide": pa.decimal128(38, 10),
    "b": pa.bool_(),
    "ts": pa.timestamp("us", "UTC"),
    "ns": pa.timestamp("ns"),
    "secs": pa.timestamp("s"),
    "u": pa.uint64(),
    "l": pa.int64(),
    "raw": pa.binary(),
    "ntz": pa.timestamp("us"),
}
ROWS = 10
LOCAL_NOON = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - a time without a zone
NOON = LOCAL_NOON.replace(tzinfo=timezone.utc)


def files(
    *stats: dict[str, Any],
    partition: list[dict[str, Any]] | None = None,
    partition_types: dict[str, pa.DataType] | None = None,
    sees_nan: bool = True,
) -> pa.Table:
    """Return files of ten rows; a column's statistics are (min, max) or (min, max, nulls)."""
    count = len(partition) if partition is not None else len(stats)
    schema = inventory_schema(pa.schema(list(TYPES.items())), pa.schema(partition_types or {}))
    records = [
        {
            "path": f"f{at}",
            "size_bytes": 1,
            "mtime_ns": 1,
            "row_count": ROWS,
            "hosts": [],
            "delete_count": 0,
            "delete_bytes": 0,
            "row_group_offsets": [4],
            "stats_see_nan": sees_nan,
            "partition": partition[at] if partition is not None else {},
            "stats": {
                name: dict(zip(("min", "max", "null_count"), (*bounds, 0), strict=False))
                for name, bounds in (stats[at] if at < len(stats) else {}).items()
            },
        }
        for at in range(count)
    ]
    return pa.Table.from_pylist(records, schema)


def expression(text: str, types: dict[str, pa.DataType] = TYPES) -> Expression:
    return bind(parse_sql(text), types)


def verdict(table: pa.Table, text: str, types: dict[str, pa.DataType] = TYPES) -> str:
    """Return whether no row of the only file matches, all rows do, or some may."""
    pruning = prune(table, expression(text, types))
    if not pruning.survives[0]:
        return "none"
    return "some" if pruning.open[0] else "all"


def stamp(text: str, unit: str) -> Any:
    return np.datetime64(text, unit)


@pytest.mark.parametrize(
    ("stats", "text", "expected"),
    [
        ({"i": (3, 7)}, "i = 2", "none"),
        ({"i": (3, 7)}, "i = 5", "some"),
        ({"i": (5, 5)}, "i = 5", "all"),
        ({"i": (5, 5)}, "i <> 5", "none"),
        ({"i": (3, 7)}, "i <> 8", "all"),
        ({"i": (3, 7)}, "i < 3", "none"),
        ({"i": (3, 7)}, "i <= 3", "some"),
        ({"i": (3, 7)}, "i < 8", "all"),
        ({"i": (3, 7)}, "i <= 7", "all"),
        ({"i": (3, 7)}, "i > 7", "none"),
        ({"i": (3, 7)}, "i >= 7", "some"),
        ({"i": (3, 7)}, "i >= 3", "all"),
        ({"i": (3, 7)}, "i > 2.5", "all"),
        ({"i": (3, 7)}, "i BETWEEN 3 AND 7", "all"),
        ({"i": (3, 7)}, "i BETWEEN 8 AND 9", "none"),
        ({"i": (3, 7)}, "NOT i BETWEEN 3 AND 7", "none"),
        ({"i": (3, 7)}, "i = 5.5", "none"),
        ({"i": (3, 7)}, "i < 10000000000", "all"),
        ({"i": (3, 7)}, "i IN (1, 2, 8)", "none"),
        ({"i": (3, 7)}, "i IN (1, 4, 8)", "some"),
        ({"i": (3, 5)}, "i IN (1, 3, 4, 5, 9)", "all"),
        ({"i": (3, 5)}, "i NOT IN (1, 3, 4, 5, 9)", "none"),
        ({"i": (3, 7)}, "i NOT IN (1, 2)", "all"),
        ({"i": (3, 7)}, "i NOT IN (1, 2, NULL)", "none"),
        ({"i": (3, 7)}, "i IN (5, NULL)", "some"),
        ({"i": (3, 7)}, "i = NULL", "none"),
        ({"i": (3, 7)}, "NOT i = NULL", "none"),
        ({"i": (3, 7)}, "i IS NULL", "none"),
        ({"i": (3, 7)}, "i IS NOT NULL", "all"),
        ({"i": (3, 7, 2)}, "i IS NULL", "some"),
        ({"i": (3, 7, 2)}, "i >= 3", "some"),
        ({"i": (3, 7, 2)}, "NOT i >= 3", "none"),
        ({"i": (3, 7, None)}, "i >= 3", "some"),
        ({"i": (None, None, ROWS)}, "i IS NULL", "all"),
        ({"i": (None, None, ROWS)}, "i = 5 OR i <> 5", "none"),
        ({"i": (None, None, ROWS)}, "i = 5 OR i IS NULL", "all"),
        ({"i": (None, None, 0)}, "i = 5", "some"),
        ({"i": (None, 7)}, "i > 7", "none"),
        ({"i": (None, 7)}, "i = 3", "some"),
        ({"i": (3, None)}, "i < 3", "none"),
        ({}, "i = 5", "some"),
        ({}, "i IS NULL", "some"),
        ({"i": (3, 7), "s": ("a", "b")}, "i = 9 OR s = 'c'", "none"),
        ({"i": (3, 7), "s": ("a", "b")}, "i = 9 OR s <= 'b'", "all"),
        ({"i": (3, 7), "s": ("a", "b")}, "i >= 3 AND s <= 'b'", "all"),
        ({"i": (3, 7), "s": ("a", "b")}, "NOT (i >= 3 AND s = 'a')", "some"),
        ({"i": (3, 7), "s": ("a", "b")}, "NOT (i >= 3 AND s <= 'b')", "none"),
        ({"s": ("abc", "abd")}, "s LIKE 'ab%'", "all"),
        ({"s": ("abc", "abd")}, "s LIKE 'abc%'", "some"),
        ({"s": ("abc", "abd")}, "s LIKE 'abe%'", "none"),
        ({"s": ("abc", "abd")}, "s LIKE 'aa%'", "none"),
        ({"s": ("abc", "abd")}, "s LIKE '%'", "all"),
        ({"s": ("abc", "abd")}, "s NOT LIKE 'ab%'", "none"),
        ({"s": ("abc", "abd", 1)}, "s LIKE 'ab%'", "some"),
        ({"s": ("y", "z")}, "s < 'é'", "all"),
        ({"s": ("\uffff", "\uffff")}, "s < '\U0010ffff'", "all"),
        ({"s": ("a", "c")}, "s IN ('0', 'b')", "some"),
        ({"s": ("a", "c")}, "s IN ('0', 'd')", "none"),
        ({"s": ("a", "a")}, "s IN ('0', 'a')", "all"),
        ({"m": (-1, 1)}, "m > 1.005", "none"),
        ({"m": (-1, 1)}, "m <= 1.005", "all"),
        ({"m": (-1, 1)}, "m IN (-2, 0, 2)", "some"),
        ({"m": (1, 1)}, "m IN (-2, 1.00)", "all"),
        ({"m": (-1, 1)}, "m IN (-2, 2)", "none"),
        ({"wide": (10**27, 10**27)}, "wide = 1000000000000000000000000000", "all"),
        ({"wide": (10**27, 10**27)}, "wide > 1000000000000000000000000000", "none"),
        ({"b": (False, False)}, "b = TRUE", "none"),
        ({"b": (False, True)}, "b IN (TRUE, FALSE)", "all"),
        ({"u": (2**64 - 1, 2**64 - 1)}, "u >= 18446744073709551615", "all"),
        ({"u": (0, 2**64 - 1)}, "u IN (0, 18446744073709551615)", "some"),
        ({"l": (-(2**63), 2**63 - 1)}, "l IN (-9223372036854775808, 9223372036854775807)", "some"),
        ({"l": (2**53, 2**53)}, "l < 9007199254740993", "all"),
        ({"raw": (b"\x01", b"\x7f")}, "raw = X'80'", "none"),
        ({"raw": (b"\x01", b"\x7f")}, "raw > X'00'", "all"),
        ({"raw": (b"\x01", b"\x7f")}, "raw < X'0100'", "some"),
        ({"raw": (b"\x01", b"\x7f")}, "raw IN (X'', X'80', X'FF')", "none"),
        ({"raw": (b"\x7f", b"\xff")}, "raw BETWEEN X'7F' AND X'FF'", "all"),
        ({"raw": (b"a", b"a")}, "raw <> X'61'", "none"),
        ({"raw": (None, None, ROWS)}, "raw IS NOT NULL", "none"),
        # A writer that truncates bounds rounds the upper one up: no value need equal it.
        ({"s": ("abc", "abd")}, "s = 'abd'", "some"),
        ({"s": ("abc", "abd")}, "s >= 'abd'", "some"),
        ({"s": ("abc", "abd")}, "s > 'abd'", "none"),
        ({"s": ("abc", "abd")}, "s >= 'abc'", "all"),
        ({"s": ("abc", "abd")}, "NOT s > 'abd'", "all"),
        ({"b": (True, True)}, "b = TRUE", "all"),
        ({"b": (False, True)}, "b <> TRUE", "some"),
        ({"b": (False, True, 1)}, "NOT b IN (TRUE, FALSE)", "none"),
        ({"i": (None, None, ROWS)}, "i NOT IN (1, 2)", "none"),
        ({"i": (None, None, ROWS)}, "NOT i IS NULL", "none"),
        # Neither side is certain alone, and pruning does not consider them together.
        ({"i": (3, 7, 2)}, "i IS NULL OR i >= 3", "some"),
        ({"i": (3, 7, 2)}, "i IS NOT NULL AND i > 7", "none"),
        ({"i": (3, 7, None)}, "i IS NULL", "some"),
        ({"i": (3, 7), "x": (1.0, 2.0)}, "NOT (i < 3 OR x < 1)", "all"),
        ({"i": (3, 7), "x": (1.0, 2.0)}, "NOT (i >= 3 OR x < 1)", "none"),
        ({"ts": (NOON, NOON)}, "ts = '2026-01-01T13:00:00+01:00'", "all"),
        ({"ts": (NOON, NOON)}, "ts < '2026-01-01T12:00:00Z'", "none"),
        ({"ntz": (LOCAL_NOON, LOCAL_NOON)}, "ntz = '2026-01-01 12:00:00'", "all"),
        ({"ntz": (LOCAL_NOON, LOCAL_NOON)}, "ntz > '2026-01-01'", "all"),
        ({"ntz": (LOCAL_NOON, LOCAL_NOON)}, "ntz >= '2026-01-01T12:00:00.000001'", "none"),
        ({"d": (stamp("2026-01-01", "D"), stamp("2026-01-31", "D"))}, "d >= '2026-02-01'", "none"),
        ({"d": (stamp("2026-01-01", "D"), stamp("2026-01-31", "D"))}, "d < '2026-02-01'", "all"),
    ],
)
def test_bounds_decide_conditions_as_far_as_they_can(
    stats: dict[str, Any], text: str, expected: str
) -> None:
    stats = {
        name: tuple(v.item() if isinstance(v, np.datetime64) else v for v in bounds)
        for name, bounds in stats.items()
    }

    assert verdict(files(stats), text) == expected


@pytest.mark.parametrize(
    ("bounds", "text", "expected"),
    [
        ((3.0, 7.0), "x > 7", "some"),
        ((3.0, 7.0), "x >= 3", "all"),
        ((3.0, 7.0), "x < 3", "none"),
        ((3.0, 7.0), "x <= 7", "some"),
        ((3.0, 7.0), "x = 'NaN'", "some"),
        ((3.0, 7.0), "x <= 'NaN'", "all"),
        ((3.0, 7.0), "x > 'NaN'", "none"),
        ((3.0, 7.0), "x IN (8)", "none"),
        ((3.0, 7.0), "x IN (8, 'NaN')", "some"),
        ((3.0, 3.0), "x = 3", "some"),
        ((3.0, 3.0), "x IN (3)", "some"),
        ((3.0, 3.0), "x IN (3, 'NaN')", "all"),
        ((None, None, ROWS), "x > 7", "none"),
    ],
)
def test_a_file_whose_statistics_ignore_nan_may_hold_one(
    bounds: tuple[Any, ...], text: str, expected: str
) -> None:
    assert verdict(files({"x": bounds}, sees_nan=False), text) == expected


@pytest.mark.parametrize(
    ("bounds", "text", "expected"),
    [
        ((3.0, 7.0), "x > 7", "none"),
        ((3.0, 7.0), "x <= 7", "all"),
        ((3.0, 7.0), "x = 'NaN'", "none"),
        ((3.0, 3.0), "x IN (3, 'NaN')", "all"),
        ((-0.0, -0.0), "x = 0.0", "all"),
        ((0.0, 0.0), "x IN (-0.0)", "all"),
        ((0.0, 0.0), "x < -0.0", "none"),
        ((None, None, 0), "x = 'NaN'", "some"),
    ],
)
def test_a_file_whose_bounds_rule_out_nan_holds_none(
    bounds: tuple[Any, ...], text: str, expected: str
) -> None:
    assert verdict(files({"x": bounds}), text) == expected


def test_a_float_column_is_compared_as_double() -> None:
    tenth = float(np.float32(0.1))
    table = files({"f": (tenth, tenth)})

    assert verdict(table, "f = 0.1") == "none"
    assert verdict(table, "f > 0.1") == "all"


def test_bounds_that_are_nan_are_no_bounds() -> None:
    assert verdict(files({"x": (float("nan"), float("nan"))}), "x = 1") == "some"


@pytest.mark.parametrize(
    ("literal", "expected"),
    [("12:00:00.000001", "some"), ("12:00:00.000002", "some"), ("12:00:00.000003", "none")],
)
def test_nanoseconds_lie_between_two_microseconds(literal: str, expected: str) -> None:
    at = pa.scalar(np.datetime64("2026-01-01T12:00:00.000001500", "ns")).cast(pa.timestamp("ns"))
    table = files({})
    stats = pa.array(
        [{"ns": {"min": at.value, "max": at.value, "null_count": 0}}], table["stats"].type
    )
    table = table.set_column(
        table.schema.get_field_index("stats"), table.schema.field("stats"), stats
    )

    assert verdict(table, f"ns = '2026-01-01T{literal}'") == expected


def test_seconds_beyond_every_literal_are_still_in_order() -> None:
    table = files({})
    far = {"min": pa.scalar(2**62, pa.timestamp("s")).value, "max": 2**62, "null_count": 0}
    stats = pa.array([{"secs": far}], table["stats"].type)
    table = table.set_column(
        table.schema.get_field_index("stats"), table.schema.field("stats"), stats
    )

    assert verdict(table, "secs > '9999-12-31'") == "all"
    assert verdict(table, "secs < '9999-12-31'") == "none"


PARTITIONED = {"p": pa.string(), "q": pa.int32(), "r": pa.float64()} | TYPES


def partitioned(*values: dict[str, Any], stats: tuple[dict[str, Any], ...] = ()) -> pa.Table:
    types = {name: PARTITIONED[name] for name in ("p", "q", "r")}
    return files(*stats, partition=list(values), partition_types=types)


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        ({"p": "a"}, "p = 'a'", "all"),
        ({"p": "a"}, "p = 'b'", "none"),
        ({"p": "a"}, "p IN ('b', 'a')", "all"),
        ({"p": "a"}, "p IN ('b', 'c')", "none"),
        ({"p": "a"}, "p NOT IN ('b', NULL)", "none"),
        ({"p": "a"}, "p LIKE 'a%'", "all"),
        ({"p": "a"}, "p IS NULL", "none"),
        ({"p": None}, "p IS NULL", "all"),
        ({"p": None}, "p = 'a'", "none"),
        ({"p": None}, "NOT p = 'a'", "none"),
        ({"p": None}, "p IN ('a', 'b')", "none"),
        ({"q": 5}, "q > 4.5", "all"),
        ({"r": float("nan")}, "r = 'NaN'", "all"),
        ({"r": float("nan")}, "r > 5", "all"),
        ({"r": float("nan")}, "r < 5", "none"),
        ({"r": float("nan")}, "r IN (1, 2)", "none"),
        ({"r": 1.0}, "r IN (1, 'NaN')", "all"),
        ({"r": 1.0}, "r < 'NaN'", "all"),
        ({"p": "a"}, "p = 'a' AND i = 5", "some"),
        ({"p": "a"}, "p = 'b' AND i = 5", "none"),
        ({"p": "a"}, "p = 'a' OR i = 5", "all"),
    ],
)
def test_a_partition_value_decides_every_condition_on_it(
    value: dict[str, Any], text: str, expected: str
) -> None:
    assert verdict(partitioned(value), text, PARTITIONED) == expected


def pruned(pruning: Pruning) -> dict[str, int]:
    """Return how many files each step ruled out; every file here has one byte."""
    assert all(by.files == by.size_bytes for by in pruning.pruned.values())
    return {step: by.files for step, by in pruning.pruned.items() if by.files}


def test_pruned_files_are_counted_by_the_step_that_prunes_them() -> None:
    table = partitioned(
        {"p": "a"},
        {"p": "b"},
        {"p": "a"},
        {"p": "c"},
        stats=({"i": (1, 9)}, {"i": (1, 9)}, {"i": (6, 9)}, {"i": (6, 9)}),
    )

    pruning = prune(table, expression("p <> 'b' AND i < 5", PARTITIONED))

    assert pruning.survives.tolist() == [True, False, False, False]
    assert pruned(pruning) == {"partition": 1, "statistics": 2}


def test_a_condition_on_both_kinds_of_column_prunes_by_partition_if_that_is_enough() -> None:
    table = partitioned({"p": "a"}, {"p": "b"}, stats=({"i": (1, 3)}, {"i": (1, 3)}))

    pruning = prune(table, expression("p = 'a' AND i = 9 OR p = 'a' AND i = 8", PARTITIONED))

    assert pruned(pruning) == {"partition": 1, "statistics": 1}


def test_no_filter_prunes_nothing_and_leaves_no_residual_filter() -> None:
    table = files({"i": (1, 2)}, {})

    pruning = prune(table, None)

    assert pruning.survives.all()
    assert left(pruning, [[0], [1]]) == [None, None]


def test_pruning_no_files_leaves_no_files() -> None:
    pruning = prune(files({}).slice(0, 0), expression("i = 5 AND s IN ('a', 'b') AND x > 1"))

    assert pruning.survives.tolist() == []
    residual, filters = residuals(pruning, np.empty(0, np.int64), np.zeros(1, np.int64))
    assert (residual.tolist(), list(filters)) == ([], [])


def test_a_column_whose_name_looks_like_a_path_is_found() -> None:
    name = ".stats.[0]"
    schema = inventory_schema(pa.schema([(name, pa.int32())]), pa.schema({}))
    record = {
        "path": "f",
        "size_bytes": 1,
        "mtime_ns": 1,
        "row_count": 1,
        "hosts": [],
        "delete_count": 0,
        "delete_bytes": 0,
        "row_group_offsets": [4],
        "stats_see_nan": True,
        "partition": {},
        "stats": {name: {"min": 1, "max": 2, "null_count": 0}},
    }
    table = pa.Table.from_pylist([record], schema)

    assert not prune(table, Comparison("eq", name, 5)).survives[0]


def left(pruning: Pruning, groups: list[list[int]]) -> list[Expression | None]:
    """Return the residual filter of each group of files."""
    offsets = np.cumsum([0, *map(len, groups)])
    residual, filters = residuals(pruning, np.concatenate(groups), offsets)
    return [filters[at] for at in residual.tolist()]


def test_a_residual_filter_holds_the_conditions_not_certain_for_every_file_of_the_group() -> None:
    table = files(
        {"i": (5, 9), "s": ("a", "a")},
        {"i": (1, 9), "s": ("a", "a")},
        {"i": (5, 9), "s": ("a", "b")},
    )
    over, is_a = expression("i >= 5"), expression("s = 'a'")

    pruning = prune(table, expression("i >= 5 AND s = 'a'"))

    assert left(pruning, [[0], [1], [2], [0, 1], [1, 2], [0, 2]]) == [
        None,
        over,
        is_a,
        over,
        And((over, is_a)),
        is_a,
    ]


def test_groups_with_the_same_open_conditions_share_one_filter() -> None:
    table = files(*[{"i": (1, 9)}] * 4)

    pruning = prune(table, expression("i >= 5"))
    residual, filters = residuals(pruning, np.arange(4), np.arange(5))

    assert residual.tolist() == [0, 0, 0, 0]
    assert list(filters) == [expression("i >= 5")]


def test_no_condition_is_lost_if_there_are_more_than_fit_a_bit_mask() -> None:
    text = " AND ".join(f"i NOT IN ({number}, {number + 1000})" for number in range(100, 200))
    table = files({"i": (1, 9)}, {"i": (1, 150)}, {"i": (199, 199)})

    pruning = prune(table, expression(text))
    kept = left(pruning, [[0], [1]])

    assert pruning.survives.tolist() == [True, True, False]
    assert kept[0] is None
    assert isinstance(kept[1], And)
    lists = {Not(In("i", (number, number + 1000))) for number in range(100, 151)}
    assert lists <= set(kept[1].args)


@pytest.mark.parametrize("column", ["i", "s", "m"])
def test_a_list_of_ten_thousand_values_is_searched(column: str) -> None:
    if column == "i":
        stats = [{"i": (at * 10, at * 10 + 1)} for at in range(1_000)]
        values = [str(number) for number in range(5, 50_000, 5)]
        held = set(values)
        expected = [not held.isdisjoint({str(low), str(low + 1)}) for low in range(0, 10_000, 10)]
    elif column == "s":
        stats = [{"s": (f"k{at:05d}", f"k{at:05d}x")} for at in range(1_000)]
        values = [f"'k{number:05d}'" for number in range(0, 20_000, 2)]
        expected = [at % 2 == 0 for at in range(1_000)]
    else:
        stats = [{"m": (Decimal(at) / 2, Decimal(at) / 2)} for at in range(1_000)]
        values = [str(number) for number in range(-5_000, 5_000)]
        expected = [at % 2 == 0 for at in range(1_000)]

    pruning = prune(files(*stats), expression(f"{column} IN ({', '.join(values)})"))

    assert pruning.survives.tolist() == expected


def limited(row_counts: list[int], stats: list[dict[str, Any]], limit: int, text: str) -> list[int]:
    """Return which files a limit keeps."""
    table = files(*stats)
    at = table.schema.get_field_index("row_count")
    table = table.set_column(at, table.schema.field(at), pa.array(row_counts, pa.int64()))
    kept: list[int] = np.flatnonzero(prune(table, expression(text), limit=limit).survives).tolist()
    return kept


@pytest.mark.parametrize(
    ("limit", "kept"),
    # All rows of files 0, 2, 3 and 4 match (3 has none); some rows of files 1 and 5 may.
    [(1, [0]), (10, [0]), (11, [0, 2]), (15, [0, 2]), (16, [0, 2, 4]), (36, [0, 1, 2, 4, 5])],
)
def test_a_limit_keeps_the_first_certain_files_that_reach_it(limit: int, kept: list[int]) -> None:
    certain, open_ = {"i": (5, 9)}, {"i": (1, 9)}
    stats = [certain, open_, certain, certain, certain, open_]

    assert limited([10, 100, 5, 0, 20, 100], stats, limit, "i >= 5") == kept


def test_a_file_with_delete_files_is_not_certain_to_hold_its_rows() -> None:
    table = files({"i": (5, 9)}, {"i": (5, 9)})
    at = table.schema.get_field_index("delete_count")
    table = table.set_column(at, table.schema.field(at), pa.array([1, 0], pa.int32()))

    assert prune(table, None, limit=5).survives.tolist() == [False, True]
    assert prune(table, None, limit=11).survives.tolist() == [True, True]


def test_row_counts_whose_sum_overflows_still_reach_a_limit() -> None:
    assert limited([2**63 - 1] * 2, [{"i": (5, 9)}] * 2, 10**11, "i >= 5") == [0]
