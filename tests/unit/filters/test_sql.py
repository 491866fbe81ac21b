"""Parsing SQL text: supported filters, and refusals of everything else."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from pydantic import TypeAdapter

from windrow_core.models import Filter, FilterTree
from windrow_service.filters.errors import InvalidFilterError
from windrow_service.filters.sql import parse_sql

TREES: TypeAdapter[Any] = TypeAdapter(FilterTree)


def tree_of(text: str) -> dict[str, Any]:
    tree: dict[str, Any] = TREES.dump_python(parse_sql(text).tree)
    return tree


def compared(op: str, value: object, column: str = "x") -> dict[str, object]:
    return {"op": op, "column": column, "value": value}


def refusal(text: str, **limits: int) -> InvalidFilterError:
    with pytest.raises(InvalidFilterError) as caught:
        parse_sql(text, **limits)
    return caught.value


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("x = 1", compared("eq", 1)),
        ("x == 1", compared("eq", 1)),
        ("x <> 1", compared("ne", 1)),
        ("x != 1", compared("ne", 1)),
        ("5 < x", compared("gt", 5)),
        ("5 >= x", compared("le", 5)),
        ("(x) = (1)", compared("eq", 1)),
        ("x = -1", compared("eq", -1)),
        ("x = +1", compared("eq", 1)),
        ("x = .5", compared("eq", 0.5)),
        ("x = -.5", compared("eq", -0.5)),
        ("x = 5.", compared("eq", 5.0)),
        ("x = 1.5e3", compared("eq", 1500.0)),
        ("x = 007", compared("eq", 7)),
        ("x = 123456789012345678901234567890", compared("eq", 123456789012345678901234567890)),
        ("x = 0.12345678901234567890", compared("eq", "0.12345678901234567890")),
        ("x = 'it\\'s'", compared("eq", "it's")),
        ('x = "it\'s"', compared("eq", "it's")),
        ("x = 'C:\\\\d'", compared("eq", "C:\\d")),
        ("x = TRUE", compared("eq", True)),
        ("x = NULL", compared("eq", None)),
        ("x >= DATE '2026-01-31'", compared("ge", "2026-01-31")),
        ("x >= CAST('2026-01-31' AS DATE)", compared("ge", "2026-01-31")),
        ("x < timestamp '2026-01-31 12:00:00'", compared("lt", "2026-01-31 12:00:00")),
        ("x < cast('2026-01-31T12:00Z' as timestamp)", compared("lt", "2026-01-31T12:00Z")),
        ("`two words` = 1", compared("eq", 1, "two words")),
        ("`a``b` = 1", compared("eq", 1, "a`b")),
        ("date = '2026-01-31'", compared("eq", "2026-01-31", "date")),
        ("show = 1", compared("eq", 1, "show")),
        ("größe = 1", compared("eq", 1, "größe")),
        ("x IN (1, -2, NULL)", {"op": "in", "column": "x", "values": [1, -2, None]}),
        (
            "x NOT IN ('a')",
            {"op": "not", "arg": {"op": "in", "column": "x", "values": ["a"]}},
        ),
        ("x BETWEEN 1 AND 2", {"op": "between", "column": "x", "low": 1, "high": 2}),
        ("x IS NULL", {"op": "is_null", "column": "x"}),
        ("x IS NOT NULL", {"op": "is_not_null", "column": "x"}),
        ("x LIKE 'ab%'", {"op": "starts_with", "column": "x", "prefix": "ab"}),
        ("x LIKE 'ab%%'", {"op": "starts_with", "column": "x", "prefix": "ab"}),
        ("x LIKE '%'", {"op": "starts_with", "column": "x", "prefix": ""}),
        ("x LIKE 'ab'", compared("eq", "ab")),
        (r"x LIKE '10\%'", compared("eq", "10%")),
        (r"x LIKE 'a\_b%'", {"op": "starts_with", "column": "x", "prefix": "a_b"}),
        (r"x LIKE 'a\\\\b%'", {"op": "starts_with", "column": "x", "prefix": "a\\b"}),
        ("x LIKE 'a!%b%' ESCAPE '!'", {"op": "starts_with", "column": "x", "prefix": "a%b"}),
        (
            "x = 1 OR y = 2 AND NOT z = 3",
            {
                "op": "or",
                "args": [
                    compared("eq", 1),
                    {
                        "op": "and",
                        "args": [
                            compared("eq", 2, "y"),
                            {"op": "not", "arg": compared("eq", 3, "z")},
                        ],
                    },
                ],
            },
        ),
        ("x = 1 -- the rest\n", compared("eq", 1)),
        ("/* first */ x = 1", compared("eq", 1)),
    ],
)
def test_supported_filters_are_parsed(text: str, tree: dict[str, Any]) -> None:
    assert tree_of(text) == tree


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("", 1, "the filter is empty"),
        ("x = ", 4, "ends unexpectedly"),
        ("x = 1 y", 7, "unexpected 'y'"),
        ("x = 1; y = 2", 6, "unexpected ';'"),
        ("x = 'abc", 5, "the ' here is never closed"),
        ("x = 1 /* and", 7, "the /* here is never closed"),
        ("(x = 1", 7, "ends unexpectedly"),
        ("x IN (1, 2", 11, "ends unexpectedly"),
        ("x IN ()", 7, "at least one value"),
        ("x IN (SELECT 1)", 7, "subquery"),
        ("x IN (y)", 7, "expected a literal value"),
        (
            "x LIKE '%b'",
            8,
            "only LIKE 'prefix%' can be planned; apply the rest with DataFrame.filter",
        ),
        ("x LIKE 'a_b'", 8, "only LIKE 'prefix%' can be planned"),
        ("x LIKE 'a%b'", 8, "only LIKE 'prefix%' can be planned"),
        (r"x LIKE 'a\\b'", 8, "must be followed by _, % or itself"),
        ("x LIKE 5", 8, "a pattern in quotes"),
        ("x LIKE 'a' ESCAPE 'ab'", 19, "ESCAPE needs one character"),
        ("x ILIKE 'a%'", 3, "unexpected 'ILIKE'"),
        ("x <=> 1", 3, "unexpected '<=>'"),
        ("x IS TRUE", 6, "only IS NULL and IS NOT NULL"),
        ("upper(x) = 'A'", 1, "the function upper() cannot be planned"),
        ("x + 1 > 2", 3, "unexpected '+'"),
        ("x > 1 + 1", 7, "unexpected '+'"),
        ("x = - -1", 7, "expected a literal number"),
        ("x = y", 3, "two columns are compared"),
        ("1 = 1", 3, "two values are compared"),
        ("x = (y = 1)", 5, "a condition cannot be compared"),
        ("5 IN (1)", 1, "expected a column on the left"),
        ("x", 1, "'x' is not a condition"),
        ("y = 1 AND x", 11, "'x' is not a condition"),
        ("TRUE", 1, "a value is not a condition"),
        ("s.t.x = 1", 2, "a qualified name or a nested field"),
        ("x[0] = 1", 2, "unexpected '['"),
        ("x = 5L", 5, "without a suffix"),
        ("x = 1e", 5, "is not a number"),
        ("x = 'a' 'b'", 9, "two strings follow each other"),
        ("X'1F'", 1, "a value is not a condition"),
        ("CAST(x AS DATE) = '2026-01-31'", 6, "only CAST('…' AS DATE)"),
        ("CAST('1' AS INT) = x", 13, "only CAST('…' AS DATE)"),
        ("`` = 1", 1, "the name is empty"),
        ("ds >= 2026-11-01", 7, "put a date or time in quotes: '2026-11-01'"),
        ("ds IN (2026-11-01)", 8, "in quotes: '2026-11-01'"),
        ("ts BETWEEN 2026-11-01T06:00 AND 1", 12, "in quotes: '2026-11-01T06:00'"),
        ("CASE WHEN x THEN 1 END = 1", 1, "unexpected 'CASE'"),
    ],
)
def test_unsupported_filters_are_refused_at_the_position_of_the_fault(
    text: str, column: int, says: str
) -> None:
    error = refusal(text)

    assert says in str(error)
    assert (error.line, error.column) == (1, column)


def test_the_message_shows_the_line_with_a_caret_under_the_fault() -> None:
    error = refusal("ds >= '2026-01-01' AND\n  name LIKE '%x' AND\n  y = 1")

    assert str(error) == (
        "only LIKE 'prefix%' can be planned; apply the rest with DataFrame.filter\n"
        "line 2, column 13:\n"
        "    name LIKE '%x' AND\n"
        "              ^"
    )


def test_a_long_line_is_shown_around_the_fault() -> None:
    error = refusal("x = 1 AND " * 500 + "y LIKE '%' || 'b' AND " + "x = 1 AND " * 500)

    *_, line, caret = str(error).splitlines()
    assert len(line) < 120
    assert line[len(caret) - 1] == "|"


def test_an_error_survives_pickling() -> None:
    error = refusal("x LIKE '%b'")

    again = pickle.loads(pickle.dumps(error))

    assert (str(again), again.offset, again.reason) == (str(error), error.offset, error.reason)


@pytest.mark.parametrize("depth", [100, 10_000_000], ids=["limited", "almost-unlimited"])
@pytest.mark.parametrize(
    "text",
    [
        "(" * 20_000 + "x = 1" + ")" * 20_000,
        "(" * 20_000,
        "NOT " * 20_000 + "x = 1",
        "x IN (" + "(" * 20_000,
        "x = 1 AND (y = 2 OR " * 9_000 + "x = 1" + ")" * 9_000,
    ],
    ids=["parentheses", "open", "not", "in", "alternating"],
)
def test_deep_nesting_is_refused_whatever_the_limit(text: str, depth: int) -> None:
    assert "levels deep" in str(refusal(text, max_depth=depth, max_nodes=10_000_000))


def test_depth_counts_levels_of_the_tree() -> None:
    text = "x = 1 AND NOT (y = 1 OR z = 1)"

    parse_sql(text, max_depth=4)

    assert "more than 3 levels" in str(refusal(text, max_depth=3))


def test_too_many_conditions_are_refused() -> None:
    text = " OR ".join(f"x = {number}" for number in range(10))

    parse_sql(text, max_nodes=11)

    assert "more than 9 conditions" in str(refusal(text, max_nodes=9))


def test_many_conditions_in_a_row_are_not_deep() -> None:
    text = " AND ".join(f"x <> {number}" for number in range(1_900))

    assert len(tree_of(text)["args"]) == 1_900


def test_two_lists_of_the_largest_size_fit_into_one_filter() -> None:
    one = ", ".join(f"'{number:036}'" for number in range(10_000))
    text = f"a IN ({one}) AND b NOT IN ({one})"

    TypeAdapter[Filter](Filter).validate_python(text)
    in_a, not_in_b = tree_of(text)["args"]

    assert (len(in_a["values"]), len(not_in_b["arg"]["values"])) == (10_000, 10_000)


@pytest.mark.parametrize("token", ["(", "a ", "'' ", "- ", "/**/"])
def test_a_text_of_too_many_tokens_is_refused_before_it_is_split(token: str) -> None:
    assert "more than 200,000 words and symbols" in str(refusal(token * 200_001))


def test_a_list_may_hold_ten_thousand_values_and_no_more() -> None:
    values = ", ".join(map(str, range(10_000)))

    assert len(tree_of(f"x IN ({values})")["values"]) == 10_000
    assert "10,000 values" in str(refusal(f"x IN ({values}, 1)"))
