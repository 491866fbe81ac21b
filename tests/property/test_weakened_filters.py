"""A translated filter is TRUE for every row that Spark's filters keep."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_spark.executor.filters import matching
from windrow_spark.relation.filters import weakened

TYPES = {"i": "bigint", "s": "string", "odd name": "int"}
NUMBERS = st.none() | st.integers(-2, 2)
TEXTS = st.none() | st.sampled_from(["", "a", "ab", "b", "\ufffd", "é"])
ROWS = st.fixed_dictionaries({"i": NUMBERS, "s": TEXTS, "odd name": NUMBERS})

Row = dict[str, Any]
Filter = dict[str, Any]

LEAVES: st.SearchStrategy[Filter] = st.one_of(
    st.builds(
        lambda kind, value: {"kind": kind, "column": "i", "values": [value]},
        st.sampled_from(
            ["EqualTo", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual"]
        ),
        NUMBERS,
    ),
    st.builds(
        lambda column, value: {"kind": "EqualNullSafe", "column": column, "values": [value]},
        st.sampled_from(["i", "`odd name`"]),
        NUMBERS,
    ),
    st.builds(
        lambda values: {"kind": "In", "column": "i", "values": values},
        st.lists(NUMBERS, max_size=3),
    ),
    st.builds(
        lambda kind, column: {"kind": kind, "column": column},
        st.sampled_from(["IsNull", "IsNotNull"]),
        st.sampled_from(["i", "s", "`odd name`"]),
    ),
    st.builds(
        lambda kind, text: {"kind": kind, "column": "s", "values": [text]},
        st.sampled_from(["EqualTo", "StringStartsWith"]),
        TEXTS.filter(lambda text: text is not None),
    ),
    # Filters that only Spark can evaluate.
    st.sampled_from([{"kind": "StringContains"}, {"kind": "CollatedEqualTo"}]),
)
FILTERS: st.SearchStrategy[Filter] = st.recursive(
    LEAVES,
    lambda below: st.one_of(
        st.builds(
            lambda kind, left, right: {"kind": kind, "left": left, "right": right},
            st.sampled_from(["And", "Or"]),
            below,
            below,
        ),
        st.builds(lambda child: {"kind": "Not", "child": child}, below),
    ),
    max_leaves=8,
)


def true_in_spark(filter: Filter, row: Row, unknown: bool | None) -> bool | None:
    """Answer by SQL's three-valued logic; `unknown` is Spark's answer to other filters."""
    kind = filter["kind"]
    if kind == "Not":
        child = true_in_spark(filter["child"], row, unknown)
        return None if child is None else not child
    if kind in ("And", "Or"):
        sides = [true_in_spark(filter[side], row, unknown) for side in ("left", "right")]
        settles = kind == "Or"
        return settles if settles in sides else None if None in sides else not settles
    if "column" not in filter:
        return unknown
    value = row[filter["column"].strip("`")]
    if kind in ("IsNull", "IsNotNull"):
        return (value is None) == (kind == "IsNull")
    given = filter["values"]
    if kind == "EqualNullSafe":
        return bool(value == given[0])
    if kind == "In":
        if not given:
            return False
        found = value is not None and value in given
        return True if found else None if value is None or None in given else False
    if value is None or given[0] is None:
        return None
    answers: dict[str, bool] = {
        "EqualTo": value == given[0],
        "StringStartsWith": str(value).startswith(str(given[0])),
    }
    if isinstance(value, int):
        answers |= {
            "LessThan": value < given[0],
            "LessThanOrEqual": value <= given[0],
            "GreaterThan": value > given[0],
            "GreaterThanOrEqual": value >= given[0],
        }
    return answers[kind]


@given(
    filters=st.lists(FILTERS, min_size=1, max_size=3),
    rows=st.lists(ROWS, min_size=1, max_size=8),
    unknown=st.sampled_from([True, False, None]),
)
@examples(300)
def test_no_row_that_spark_keeps_is_lost_to_a_translated_filter(
    filters: list[Filter], rows: list[Row], unknown: bool | None
) -> None:
    schema = pa.schema([("i", pa.int64()), ("s", pa.string()), ("odd name", pa.int32())])
    table = pa.Table.from_pylist(rows, schema=schema)
    kept = [all(true_in_spark(one, row, unknown) for one in filters) for row in rows]

    for tree in weakened(filters, TYPES):
        answers = matching(tree, table).to_pylist()
        lost = [row for row, k, a in zip(rows, kept, answers, strict=True) if k and a is not True]
        assert lost == [], tree


@given(filter=FILTERS, row=ROWS)
@examples(300)
def test_a_filter_without_unknown_parts_is_translated_whole(filter: Filter, row: Row) -> None:
    def is_known(one: Filter) -> bool:
        below = [one[side] for side in ("left", "right", "child") if side in one]
        return "column" in one or (bool(below) and all(map(is_known, below)))

    def is_sure(one: Filter) -> bool:
        below = [one[side] for side in ("left", "right", "child") if side in one]
        values = one.get("values", ["a value"])
        return bool(values) and "\ufffd" not in values and all(map(is_sure, below))

    if not (is_known(filter) and is_sure(filter)):
        return
    schema = pa.schema([("i", pa.int64()), ("s", pa.string()), ("odd name", pa.int32())])
    (tree,) = weakened([filter], TYPES)

    answer = matching(tree, pa.Table.from_pylist([row], schema=schema)).to_pylist()

    assert answer == [true_in_spark(filter, row, None)]
