"""Binding a filter to columns: names, literals, and refusals."""

from __future__ import annotations

import math
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pydantic import TypeAdapter

from windrow_core.models import FilterTree
from windrow_service.filters.bind import bind
from windrow_service.filters.errors import InvalidFilterError
from windrow_service.filters.sql import parse_sql
from windrow_service.filters.tree import to_tree
from windrow_service.planner.pruning.expressions import (
    And,
    Comparison,
    Expression,
    In,
    IsNull,
    Not,
    Or,
    StartsWith,
    always,
    never,
)

TREES: TypeAdapter[Any] = TypeAdapter(FilterTree)
TYPES = {
    "i": pa.int32(),
    "tiny": pa.int8(),
    "u": pa.uint8(),
    "x": pa.float64(),
    "f": pa.float32(),
    "m": pa.decimal128(5, 2),
    "l": pa.int64(),
    "wide": pa.decimal128(38, 10),
    "s": pa.string(),
    "code": pa.dictionary(pa.int32(), pa.string()),
    "b": pa.bool_(),
    "d": pa.date32(),
    "ts": pa.timestamp("us", "UTC"),
    "ntz": pa.timestamp("us"),
    "raw": pa.binary(),
    "tags": pa.list_(pa.string()),
    "Region": pa.string(),
    "case": pa.int32(),
    "CASE": pa.int32(),
}
LONG = Decimal("12345678901234567890.0123456789")


def within(column: str, low: int, high: int) -> Expression:
    return And((Comparison("ge", column, low), Comparison("le", column, high)))


def bound(text: str) -> Expression:
    return bind(parse_sql(text), TYPES)


def refusal(text: str) -> InvalidFilterError:
    with pytest.raises(InvalidFilterError) as caught:
        bound(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("i > 1.5", Comparison("gt", "i", 1)),
        ("i >= 1.5", Comparison("gt", "i", 1)),
        ("i < 1.5", Comparison("le", "i", 1)),
        ("i <= -1.5", Comparison("le", "i", -2)),
        ("i = 1.0", Comparison("eq", "i", 1)),
        ("i = '1'", Comparison("eq", "i", 1)),
        ("i = '01'", Comparison("eq", "i", 1)),
        ("i = 1.5", never("i")),
        ("i <> 1.5", always("i")),
        ("tiny < 128", always("tiny")),
        ("tiny <= 127", Comparison("le", "tiny", 127)),
        ("tiny = 128", never("tiny")),
        ("tiny > -129", always("tiny")),
        ("u < -1", never("u")),
        ("i > 1e300", never("i")),
        ("i > 1e-999999999", Comparison("gt", "i", 0)),
        ("i IN (3, 1, 1.0, 2.5, NULL)", In("i", (1, 3), True)),
        ("i IN (3, '1', '3', NULL)", In("i", (1, 3), True)),
        ("i IN (1.5, 2.5)", never("i")),
        ("i IN (1.5, NULL)", Comparison("eq", "i", None)),
        ("i NOT IN (1, NULL)", Not(In("i", (1,), True))),
        ("i = NULL", Comparison("eq", "i", None)),
        (
            "i BETWEEN 0.5 AND 2",
            And((Comparison("gt", "i", 0), Comparison("le", "i", 2))),
        ),
        (
            "i > 0 AND (i < 5 AND i BETWEEN 1 AND 2)",
            And(
                (
                    Comparison("gt", "i", 0),
                    Comparison("lt", "i", 5),
                    Comparison("ge", "i", 1),
                    Comparison("le", "i", 2),
                )
            ),
        ),
        ("i = 3 OR i = 1 OR i = 3", In("i", (1, 3))),
        ("i = 3 OR i = 3", Comparison("eq", "i", 3)),
        ("i <> 3 AND i <> 1", Not(In("i", (1, 3)))),
        ("i = 3 AND i = 1", And((Comparison("eq", "i", 3), Comparison("eq", "i", 1)))),
        ("x = 'NaN' OR x = 2 OR x = 1", In("x", (1.0, 2.0, math.nan))),
        (
            "i = 3 OR s = 'a' OR i = NULL OR i = 1 OR s = 'b'",
            Or((In("i", (1, 3)), In("s", ("a", "b")), Comparison("eq", "i", None))),
        ),
        ("x = 1", Comparison("eq", "x", 1.0)),
        ("x = -0.0", Comparison("eq", "x", 0.0)),
        ("x < 'Infinity'", Comparison("lt", "x", float("inf"))),
        ("f = 0.1", Comparison("eq", "f", 0.1)),
        ("m = 1.1", Comparison("eq", "m", Decimal("1.10"))),
        ("m = '1.100'", Comparison("eq", "m", Decimal("1.10"))),
        ("m >= 1.005", Comparison("gt", "m", Decimal("1.00"))),
        ("m <> 1.005", always("m")),
        ("m < 1000", always("m")),
        ("m = 0.12345678901234567890123456789", never("m")),
        ("wide = 12345678901234567890.0123456789", Comparison("eq", "wide", LONG)),
        ("wide IN (12345678901234567890.0123456789)", In("wide", (LONG,))),
        ("wide >= 12345678901234567890.0123456789", Comparison("ge", "wide", LONG)),
        ("wide < -12345678901234567890.0123456789", Comparison("lt", "wide", LONG.copy_negate())),
        ("l = 9.007199254740993e15", within("l", 2**53, 2**53 + 1)),
        ("l > 9.007199254740993e15", Comparison("gt", "l", 2**53 + 1)),
        ("l < 9.007199254740993e15", Comparison("lt", "l", 2**53)),
        ("l IN (1, 9.007199254740993e15)", Or((In("l", (1,)), within("l", 2**53, 2**53 + 1)))),
        ("l IN (9007199254740993, NULL)", In("l", (2**53 + 1,), True)),
        ("s = 'a'", Comparison("eq", "s", "a")),
        ("code = 'a'", Comparison("eq", "code", "a")),
        ("code LIKE 'a%'", StartsWith("code", "a")),
        ("b = TRUE", Comparison("eq", "b", True)),
        ("b = 'False'", Comparison("eq", "b", False)),
        ("d = '2026-01-31'", Comparison("eq", "d", date(2026, 1, 31))),
        ("d = DATE '0001-01-01'", Comparison("eq", "d", date(1, 1, 1))),
        (
            "ts = '2026-01-31T01:30:00.5+02:00'",
            Comparison("eq", "ts", datetime(2026, 1, 30, 23, 30, 0, 500_000, timezone.utc)),
        ),
        (
            "ts = TIMESTAMP '2026-01-31 12:00Z'",
            Comparison("eq", "ts", datetime(2026, 1, 31, 12, tzinfo=timezone.utc)),
        ),
        (
            "ntz = '2026-01-31 12:00:00.000001000'",
            Comparison("eq", "ntz", datetime(2026, 1, 31, 12, 0, 0, 1)),  # noqa: DTZ001
        ),
        ("ntz = DATE '2026-01-31'", Comparison("eq", "ntz", datetime(2026, 1, 31))),  # noqa: DTZ001
        ("raw IS NULL", IsNull("raw")),
        ("tags IS NOT NULL", Not(IsNull("tags"))),
        ("region = 'a'", Comparison("eq", "Region", "a")),
        ("`CASE` = 1", Comparison("eq", "CASE", 1)),
    ],
)
def test_a_literal_becomes_a_value_of_its_column(text: str, expression: Expression) -> None:
    assert bound(text) == expression


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("i = 1 AND regoin = 'a'", 11, "no column 'regoin': did you mean Region?"),
        ("zzz = 1", 1, "no column 'zzz': the table has i, tiny, u,"),
        ("`cAsE` = 1", 1, "may be case or CASE"),
        ("s = 5", 5, "column 's' is a string, and 5 is not: quote it: '5'"),
        ("s IN ('a', 5)", 12, "quote it: '5'"),
        ("s = TRUE", 5, "quote it: 'true'"),
        ("s > DATE '2026-01-31'", 5, "quote it: '2026-01-31'"),
        ("s = 0.12345678901234567890", 5, "quote it"),
        ("i = 'x'", 5, "column 'i' is an integer, and 'x' is not: write a number"),
        ("i = '1.5'", 5, "is an integer, and '1.5' is not"),
        ("i = TRUE", 5, "is an integer, and TRUE is not"),
        ("m = 'x'", 5, "is a decimal, and 'x' is not"),
        ("x = 'x'", 5, "is a floating-point number, and 'x' is not"),
        ("x = 1e400", 5, "out of range"),
        ("i < 1e999999999", 5, "out of range"),
        ("i IN ('x', 1e0)", 7, "is an integer, and 'x' is not"),
        ("f = 16777217", 5, "Spark 3 and Spark 4 compare differently"),
        ("l < 9223372036854775807.5", 5, "leave the condition out"),
        ("f = '0.1'", 5, "write it without quotes and with a decimal point"),
        ("f IN ('0.5')", 7, "write its numbers without quotes"),
        ("i IN ('01')", 7, "write its numbers without quotes"),
        ("i IN ('1', 1.5)", 7, "may compare a list with '1' as text"),
        ("m = 0.123456789012345678901234567890123456", 5, "need more than 38 digits"),
        ("b = 1", 5, "write TRUE or FALSE"),
        ("d = '2026-02-30'", 5, "write an existing day as 'YYYY-MM-DD'"),
        ("d = '2026-1-5'", 5, "write an existing day as 'YYYY-MM-DD'"),
        ("d = TIMESTAMP '2026-01-31 00:00:00'", 5, "write an existing day"),
        ("d = 20260131", 5, "write an existing day"),
        ("ts = '2026-01-31T12:00:00'", 6, "it needs an offset from UTC"),
        ("ts = DATE '2026-01-31'", 6, "'2026-01-31T12:00:00Z'"),
        ("ts = '0001-01-01T00:00:00+01:00'", 6, "no such time exists"),
        ("ts = '2026-01-31T25:00:00Z'", 6, "no such time exists"),
        ("ts = '2026-01-31T12:00:00.0000001Z'", 6, "use at most microseconds"),
        ("ntz = '2026-01-31T12:00:00Z'", 7, "leave out the offset"),
        ("ntz = 5", 7, "write it as '2026-01-31T12:00:00'"),
        ("raw = 'a'", 7, "as X'00FF'"),
        ("raw = 5", 7, "as X'00FF'"),
        ("s = X'00'", 5, "quote it"),
        ("tags = 'a'", 8, "only IS [NOT] NULL can be planned"),
        ("i LIKE '1%'", 8, "LIKE needs a string"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_at_its_position(
    text: str, column: int, says: str
) -> None:
    error = refusal(text)

    assert says in str(error)
    assert error.column == column


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        ({"op": "eq", "column": "cuontry", "value": 1}, "no column 'cuontry'"),
        ({"op": "eq", "column": "i", "value": True}, "TRUE is not"),
        ({"op": "eq", "column": "s", "value": "\ud800"}, "not valid Unicode"),
        ({"op": "starts_with", "column": "s", "prefix": "\ud800"}, "not valid Unicode"),
        ({"op": "starts_with", "column": "i", "prefix": "1"}, "LIKE needs a string"),
    ],
)
def test_a_tree_is_refused_without_a_position(tree: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidFilterError, match=says) as caught:
        bind(TREES.validate_python(tree), TYPES)

    assert (caught.value.text, caught.value.line, caught.value.column) == (None, None, None)


@pytest.mark.parametrize("op", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("value", [1.5, -2.5, 3.0, 1e300])
def test_a_tree_accepts_numbers_as_text(op: str, value: float) -> None:
    tree = {"op": op, "column": "i", "value": value}

    as_text = bind(TREES.validate_python(tree | {"value": str(value)}), TYPES)

    assert as_text == bind(TREES.validate_python(tree), TYPES)


def test_a_tree_that_is_too_large_is_refused() -> None:
    leaf = {"op": "is_null", "column": "i"}
    wide = TREES.validate_python({"op": "or", "args": [leaf] * 5})
    deep = TREES.validate_python({"op": "not", "arg": {"op": "not", "arg": leaf}})

    bind(wide, TYPES, max_nodes=6)
    bind(deep, TYPES, max_depth=3)

    with pytest.raises(InvalidFilterError, match="more than 5 conditions"):
        bind(wide, TYPES, max_nodes=5)
    with pytest.raises(InvalidFilterError, match="more than 2 levels"):
        bind(deep, TYPES, max_depth=2)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("d IN ('2026-01-31')", ["2026-01-31"]),
        ("ts IN ('2026-01-31T12:00:00.50+00:00')", ["2026-01-31T12:00:00.500000Z"]),
        ("ntz IN ('2026-01-31')", ["2026-01-31T00:00:00"]),
        ("m IN (1, -0.5, NULL)", ["-0.50", "1.00", None]),
        ("x IN (2, 'NaN', '-inf', 'inf')", ["-Infinity", 2.0, "Infinity", "NaN"]),
        ("i IN (3, 2)", [2, 3]),
    ],
)
def test_a_tree_holds_values_in_a_normal_form(text: str, values: list[Any]) -> None:
    assert to_tree(bound(text))["values"] == values


def test_a_conjunction_too_long_for_the_wire_is_nested_and_flattened_again() -> None:
    expression = And(tuple(Comparison("gt", "i", number) for number in range(20_001)))

    tree = to_tree(expression)

    assert [len(part["args"]) for part in tree["args"]] == [10_000, 10_000, 1]
    assert bind(TREES.validate_python(tree), TYPES, max_nodes=30_000) == expression


def test_binary_is_written_in_hexadecimal_digits() -> None:
    assert bound("raw = X'00fF'") == Comparison("eq", "raw", b"\x00\xff")
    assert bound("raw IN (x'1', X'')") == In("raw", (b"", b"\x01"))
