"""Laws of the residual filter, compared with an independent row-by-row evaluator."""

from __future__ import annotations

import json
import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_tables.executor.filters import columns_of, matching

SETTINGS = examples(100)

FLOATS = [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan]
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
LOCAL_EPOCH = EPOCH.replace(tzinfo=None)

# For each column: its Arrow type, values in rows, literals, and how JSON spells a literal.
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any], st.SearchStrategy[Any], Any]] = {
    "i": (
        pa.int8(),
        st.integers(-3, 3) | st.sampled_from([-128, 127]),
        st.integers(-3, 3) | st.sampled_from([-1000, 10**30, 127, -128]),
        lambda v: v,
    ),
    "f": (pa.float64(), st.sampled_from(FLOATS), st.sampled_from(FLOATS), lambda v: v),
    "g": (
        pa.float32(),
        st.sampled_from([0.5, -0.0, math.nan, float(pa.scalar(0.1, pa.float32()).as_py())]),
        st.sampled_from([0.1, 0.5, 0.0, math.nan]),
        lambda v: v,
    ),
    "s": (
        pa.string(),
        st.text("aé\uffff\U00010000", max_size=2),
        st.text("aé\uffff\U00010000", max_size=2),
        lambda v: v,
    ),
    "y": (pa.binary(), st.binary(max_size=2), st.binary(max_size=2), bytes.hex),
    "b": (pa.bool_(), st.booleans(), st.booleans(), lambda v: v),
    "d": (
        pa.decimal128(4, 2),
        st.decimals(-2, 2, places=2),
        st.decimals(-2, 2, places=3) | st.sampled_from([Decimal("1e9"), Decimal("-1e9")]),
        str,
    ),
    "t": (
        pa.date32(),
        st.integers(-2, 2).map(lambda n: date(1970, 1, 1) + timedelta(n)),
        st.integers(-2, 2).map(lambda n: date(1970, 1, 1) + timedelta(n)),
        date.isoformat,
    ),
    "z": (
        pa.timestamp("us", "UTC"),
        st.integers(-2, 2).map(lambda n: EPOCH + timedelta(microseconds=n)),
        st.integers(-2, 2).map(lambda n: EPOCH + timedelta(microseconds=n)),
        lambda v: v.isoformat().replace("+00:00", "Z"),
    ),
    "n": (
        pa.timestamp("us"),
        st.integers(-2, 2).map(lambda n: LOCAL_EPOCH + timedelta(microseconds=n)),
        st.integers(-2, 2).map(lambda n: LOCAL_EPOCH + timedelta(microseconds=n)),
        lambda v: v.isoformat(),
    ),
}
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]


def rows_strategy() -> st.SearchStrategy[list[dict[str, Any]]]:
    row = {name: st.none() | values for name, (_, values, _, _) in COLUMNS.items()}
    return st.lists(st.fixed_dictionaries(row), max_size=12)


@st.composite
def leaves(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a leaf of a filter, with literals as Python values."""
    name = draw(st.sampled_from(sorted(COLUMNS)))
    literal = COLUMNS[name][2]
    kinds = [*COMPARISONS, "in", "between", "is_null", "is_not_null"]
    op = draw(st.sampled_from([*kinds, "starts_with"] if name == "s" else kinds))
    leaf: dict[str, Any] = {"op": op, "column": name}
    if op in COMPARISONS:
        leaf["value"] = draw(st.none() | literal)
    elif op == "in":
        leaf["values"] = draw(st.lists(st.none() | literal, min_size=1, max_size=4))
    elif op == "between":
        leaf["low"], leaf["high"] = draw(st.none() | literal), draw(st.none() | literal)
    elif op == "starts_with":
        leaf["prefix"] = draw(literal)
    return leaf


TREES = st.recursive(
    leaves(),
    lambda inner: (
        st.builds(lambda a: {"op": "not", "arg": a}, inner)
        | st.builds(
            lambda op, args: {"op": op, "args": args},
            st.sampled_from(["and", "or"]),
            st.lists(inner, min_size=1, max_size=3),
        )
    ),
    max_leaves=6,
)


def written(tree: dict[str, Any]) -> dict[str, Any]:
    """Return the tree with its literals as JSON spells them."""
    out = dict(tree)
    if "arg" in tree:
        out["arg"] = written(tree["arg"])
    if "args" in tree:
        out["args"] = [written(arg) for arg in tree["args"]]
    if "column" in tree:
        write = COLUMNS[tree["column"]][3]
        for key in ("value", "low", "high"):
            if out.get(key) is not None:
                out[key] = write(out[key])
        if "values" in out:
            out["values"] = [None if v is None else write(v) for v in out["values"]]
    return out


def rank(value: Any) -> Any:
    """Return a sort key in Spark's order: NaN is greater than all other floats."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    if isinstance(value, str):
        return value.encode()
    return value


def compare(op: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    a, b = rank(left), rank(right)
    answers: dict[str, bool] = {
        "eq": a == b,
        "ne": a != b,
        "lt": a < b,
        "le": a <= b,
        "gt": a > b,
        "ge": a >= b,
    }
    return answers[op]


def negate(value: bool | None) -> bool | None:
    return None if value is None else not value


def every(values: list[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def evaluate(tree: dict[str, Any], row: dict[str, Any]) -> bool | None:
    op = tree["op"]
    if op == "not":
        return negate(evaluate(tree["arg"], row))
    if op == "and":
        return every([evaluate(arg, row) for arg in tree["args"]])
    if op == "or":
        return negate(every([negate(evaluate(arg, row)) for arg in tree["args"]]))
    value = row[tree["column"]]
    if op == "is_null":
        return value is None
    if op == "is_not_null":
        return value is not None
    if op == "starts_with":
        return None if value is None else bool(value.startswith(tree["prefix"]))
    if op == "in":
        return negate(every([compare("ne", value, other) for other in tree["values"]]))
    if op == "between":
        return every([compare("ge", value, tree["low"]), compare("le", value, tree["high"])])
    return compare(op, value, tree["value"])


@SETTINGS
@given(rows_strategy(), TREES)
def test_a_filter_gives_each_row_the_same_value_as_sql(
    rows: list[dict[str, Any]], tree: dict[str, Any]
) -> None:
    schema = pa.schema([(name, type_) for name, (type_, _, _, _) in COLUMNS.items()])
    table = pa.Table.from_pylist(rows, schema)
    sent = json.loads(json.dumps(written(tree)))

    answer = matching(sent, table)

    assert answer.to_pylist() == [evaluate(tree, row) for row in rows]


@SETTINGS
@given(TREES)
def test_a_filter_can_be_evaluated_with_only_the_columns_it_names(tree: dict[str, Any]) -> None:
    sent = written(tree)
    names = sorted(columns_of(sent))

    table = pa.table({name: pa.array([None], COLUMNS[name][0]) for name in names})

    assert len(matching(sent, table)) == 1
