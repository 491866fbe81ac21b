"""Filters of other engines: what they rule out, and what they do not."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from windrow_core.files.types import TIMESTAMP, TIMESTAMP_NTZ
from windrow_service.engines.filters import read_engine_filter
from windrow_service.filters.errors import InvalidFilterError
from windrow_service.filters.limits import FilterLimits
from windrow_service.filters.tree import to_tree

TYPES = {
    "i": pa.int32(),
    "s": pa.string(),
    "d": pa.date32(),
    "t": TIMESTAMP,
    "n": TIMESTAMP_NTZ,
    "f": pa.float32(),
    "x": pa.float64(),
    "m": pa.decimal128(9, 2),
    "b": pa.binary(),
    "l": pa.list_(pa.int64()),
}
LIMITS = FilterLimits(max_nodes=2_000, max_depth=90)
DAY = date(2026, 11, 1)
AT = datetime(2026, 11, 1, 12, tzinfo=timezone.utc)


def read(tree: Any) -> tuple[Any, bool]:
    """Return a filter as Windrow's JSON, and whether it is exact."""
    one = read_engine_filter(tree, TYPES, LIMITS)
    is_plain = isinstance(one.outcome, bool)
    return one.outcome if is_plain else to_tree(one.outcome), one.is_exact  # type: ignore[arg-type]


def compared(kind: str, column: str, value: Any) -> dict[str, Any]:
    return {"type": kind, "term": column, "value": value}


def joined(kind: str, *sides: Any) -> Any:
    """Join conditions as engines do: two at a time."""
    tree = sides[0]
    for side in sides[1:]:
        tree = {"type": kind, "left": tree, "right": side}
    return tree


@pytest.mark.parametrize(
    ("column", "sent", "value"),
    [
        ("i", 5, 5),
        ("s", "a", "a"),
        ("d", "2026-11-01", "2026-11-01"),
        ("d", DAY.toordinal() - date(1970, 1, 1).toordinal(), "2026-11-01"),
        ("t", "2026-11-01T12:00:00+00:00", "2026-11-01T12:00:00Z"),
        ("t", int(AT.timestamp()) * 10**6, "2026-11-01T12:00:00Z"),
        ("t", "2026-11-01T12:00:00", "2026-11-01T12:00:00Z"),
        ("n", "2026-11-01T12:00:00.5", "2026-11-01T12:00:00.500000"),
        ("n", int(AT.timestamp()) * 10**6, "2026-11-01T12:00:00"),
        ("m", "1.50", str(Decimal("1.5").quantize(Decimal("0.01")))),
        ("b", "00FF", "00ff"),
        ("I", 5, 5),
    ],
)
def test_literals_come_as_texts_or_as_engines_keep_them(column: str, sent: Any, value: Any) -> None:
    tree = {"op": "le", "column": column.lower(), "value": value}

    assert read(compared("lt-eq", column, sent)) == (tree, True)
    assert read(compared("lt-eq", column, {"type": "literal", "value": sent})) == (tree, True)
    reference = {"type": "reference", "name": column}
    assert read({"type": "lt-eq", "left": reference, "right": sent}) == (tree, True)


@pytest.mark.parametrize(
    "condition",
    [
        compared("eq", "nested.field", 1),
        compared("eq", "none", 1),
        compared("eq", "i", "5"),
        compared("eq", "i", True),
        compared("eq", "s", 5),
        compared("eq", "d", "yesterday"),
        compared("eq", "d", 10**12),
        compared("eq", "t", 10**30),
        compared("eq", "m", "much"),
        compared("eq", "x", 10**400),
        # Some engines round it to the column's type, and others do not.
        compared("eq", "f", 0.1),
        compared("eq", "l", 1),
        compared("eq", "i", None),
        compared("eq", "i", {"type": "apply"}),
        compared("eq", "i", [1]),
        {"type": "is-null", "term": "l"},
        {"type": "eq", "term": {"type": "transform", "transform": "day", "term": "t"}, "value": 1},
        {"type": "in", "term": "i", "values": []},
        {"type": "in", "term": "i", "values": [1, "x"]},
        {"type": "in", "term": "i"},
        {"type": "eq", "term": "i"},
        {"type": "newer-than", "term": "i"},
    ],
)
def test_what_cannot_be_turned_rules_nothing_out(condition: Any) -> None:
    known = compared("gt", "i", 1)
    tree = {"op": "gt", "column": "i", "value": 1}

    assert read(condition) == (True, False)
    assert read({"type": "not", "child": condition}) == (True, False)
    assert read(joined("and", condition, known)) == (tree, False)
    assert read(joined("or", condition, known)) == (True, False)


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (compared("not-eq", "i", 5), "i <> 5 or i is null"),
        ({"type": "not", "child": compared("eq", "i", 5)}, "i <> 5 or i is null"),
        ({"type": "not", "child": compared("not-eq", "i", 5)}, "i = 5"),
        ({"type": "not", "child": compared("lt", "i", 5)}, "i >= 5"),
        ({"type": "not-in", "term": "i", "values": [2, 1]}, "not i in (1, 2) or i is null"),
        (compared("not-starts-with", "s", "a"), "not s starts with a or s is null"),
        ({"type": "not-nan", "term": "x"}, "x <> NaN or x is null"),
        ({"type": "not", "child": {"type": "not-null", "term": "i"}}, "i is null"),
        (
            {
                "type": "not",
                "child": joined("or", compared("lt", "i", 1), compared("eq", "s", "a")),
            },
            "i >= 1 and (s <> a or s is null)",
        ),
    ],
)
def test_null_satisfies_what_it_may_satisfy_for_some_engine(tree: Any, text: str) -> None:
    shown, is_exact = read(tree)

    assert _words(shown) == text
    assert is_exact == ("<>" not in text and "not " not in text)


def test_comparisons_of_floats_are_never_exact() -> None:
    assert read(compared("gt", "x", 1))[1] is False
    assert read(compared("gt", "f", 0.5))[1] is False


@pytest.mark.parametrize(
    ("tree", "outcome"),
    [
        (True, (True, True)),
        (False, (False, True)),
        ({"type": "false"}, (False, True)),
        ({"type": "not", "child": False}, (True, True)),
        (joined("and", True, True), (True, True)),
        (joined("or", compared("eq", "i", 1), True), (True, True)),
        (joined("and", compared("eq", "none", 1), False), (False, True)),
        (joined("or", compared("eq", "none", 1), True), (True, True)),
    ],
)
def test_true_and_false_decide_what_they_decide(tree: Any, outcome: tuple[bool, bool]) -> None:
    assert read(tree) == outcome


def test_a_chain_of_conditions_is_one_level_however_it_is_nested() -> None:
    chain = joined("and", *(compared("not-eq", "i", at) for at in range(900)))

    assert len(read(chain)[0]["args"]) == 900


def _deep(levels: int) -> Any:
    tree = compared("eq", "i", 1)
    for _ in range(levels):
        tree = {"type": "not", "child": tree}
    return tree


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (_deep(10_000), "nested more than 90 levels"),
        (joined("or", *[compared("eq", "i", 1)] * 3_000), "more than 2,000 conditions"),
        (5, "no predicate"),
        ({"term": "i"}, "no predicate"),
        ({"type": "not"}, "no predicate"),
        ({"type": "and", "left": True}, "no predicate"),
        ([], "no predicate"),
    ],
)
def test_what_is_too_large_or_no_filter_is_refused(tree: Any, words: str) -> None:
    with pytest.raises(InvalidFilterError, match=words):
        read(tree)


def _words(tree: Any) -> str:
    op = tree["op"]
    if op in ("and", "or"):
        sides = map(_words, tree["args"])
        return f" {op} ".join(f"({one})" if " or " in one and op == "and" else one for one in sides)
    if op == "not":
        return f"not {_words(tree['arg'])}"
    signs = {"eq": "=", "ne": "<>", "ge": ">="}
    if op in signs:
        return f"{tree['column']} {signs[op]} {tree['value']}"
    if op == "in":
        return f"{tree['column']} in ({', '.join(map(json.dumps, tree['values']))})"
    if op == "starts_with":
        return f"{tree['column']} starts with {tree['prefix']}"
    return f"{tree['column']} {op.replace('_', ' ')}"
