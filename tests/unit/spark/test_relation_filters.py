"""Spark's filters as a tree: literals of every type, and filters that are left to Spark."""

from __future__ import annotations

from typing import Any

import pytest

from windrow_spark.relation.filters import weakened


def compared(column: str, value: Any) -> dict[str, Any]:
    return {"op": "eq", "column": column, "value": value}


@pytest.mark.parametrize(
    ("type_", "value", "literal"),
    [
        ("boolean", False, False),
        ("tinyint", -128, -128),
        ("bigint", 2**63 - 1, 2**63 - 1),
        ("float", 0.10000000149011612, 0.10000000149011612),
        ("double", -0.0, -0.0),
        ("double", "NaN", "NaN"),
        ("double", "-Infinity", "-Infinity"),
        ("decimal(38,10)", "1234567890123456789012345678.0123456789", None),
        ("string", "a`b", "a`b"),
        ("char(3)", "ab ", "ab "),
        ("binary", "00ff", "00ff"),
        ("date", 0, "1970-01-01"),
        ("date", -719_162, "0001-01-01"),
        ("timestamp", 1, "1970-01-01T00:00:00.000001Z"),
        ("timestamp_ntz", -1, "1969-12-31T23:59:59.999999"),
    ],
)
def test_a_value_is_written_as_the_coordinator_reads_it(
    type_: str, value: Any, literal: Any
) -> None:
    expected = value if literal is None else literal
    assert weakened([compared("c", value)], {"c": type_}) == [
        {"op": "eq", "column": "c", "value": expected}
    ]


@pytest.mark.parametrize(
    ("type_", "tree"),
    [
        ("array<int>", compared("c", "[1]")),
        ("interval day", compared("c", 5)),
        ("date", compared("c", -719_163)),
        ("date", compared("c", 10_000_000)),
        ("timestamp", compared("c", 2**63 - 1)),
        ("string", compared("c", "\ufffd")),
        ("binary", {"op": "starts_with", "column": "c", "prefix": "61"}),
        ("int", compared("other", 1)),
        ("int", {"op": "in", "column": "c", "values": []}),
        ("int", {"op": "in", "column": "c", "values": list(range(10_001))}),
        ("int", {"op": None}),
        ("int", {"op": "not", "arg": {"op": None}}),
    ],
)
def test_filters_without_an_exact_translation_are_left_to_spark(
    type_: str, tree: dict[str, Any]
) -> None:
    assert weakened([tree, {"op": "is_null", "column": "c"}], {"c": type_}) == [
        {"op": "is_null", "column": "c"}
    ]


def test_nested_conditions_become_one_level() -> None:
    deep = compared("c", 0)
    for number in range(1, 200):
        deep = {"op": "or", "args": [deep, compared("c", number)]}

    (tree,) = weakened([deep], {"c": "int"})

    assert tree["op"] == "or"
    assert [arg["value"] for arg in tree["args"]] == list(range(200))
