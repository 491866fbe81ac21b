"""A translated filter is TRUE for every row that Spark's filters keep."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_spark.relation.filters import weakened
from windrow_tables.executor.filters import matching

TYPES = {"i": "bigint", "s": "string", "odd name": "int"}
NUMBERS = st.none() | st.integers(-2, 2)
TEXTS = st.none() | st.sampled_from(["", "a", "ab", "b", "\ufffd", "é"])
ROWS = st.fixed_dictionaries({"i": NUMBERS, "s": TEXTS, "odd name": NUMBERS})

Row = dict[str, Any]
Filter = dict[str, Any]

LEAVES: st.SearchStrategy[Filter] = st.one_of(
    st.builds(
        lambda op, column, value: {"op": op, "column": column, "value": value},
        st.sampled_from(["eq", "lt", "le", "gt", "ge"]),
        st.sampled_from(["i", "`odd name`"]),
        NUMBERS,
    ),
    st.builds(
        lambda values: {"op": "in", "column": "i", "values": values},
        st.lists(NUMBERS, max_size=3),
    ),
    st.builds(
        lambda op, column: {"op": op, "column": column},
        st.sampled_from(["is_null", "is_not_null"]),
        st.sampled_from(["i", "s", "`odd name`"]),
    ),
    st.builds(
        lambda text: {"op": "eq", "column": "s", "value": text},
        TEXTS.filter(lambda text: text is not None),
    ),
    st.builds(
        lambda text: {"op": "starts_with", "column": "s", "prefix": text},
        TEXTS.filter(lambda text: text is not None),
    ),
    # A filter that only Spark can evaluate.
    st.just({"op": None}),
)
FILTERS: st.SearchStrategy[Filter] = st.recursive(
    LEAVES,
    lambda below: st.one_of(
        st.builds(
            lambda op, left, right: {"op": op, "args": [left, right]},
            st.sampled_from(["and", "or"]),
            below,
            below,
        ),
        st.builds(lambda arg: {"op": "not", "arg": arg}, below),
    ),
    max_leaves=8,
)


def below(filter: Filter) -> list[Filter]:
    return [filter["arg"]] if "arg" in filter else list(filter.get("args", []))


def true_in_spark(filter: Filter, row: Row, unknown: bool | None) -> bool | None:
    """Answer by SQL's three-valued logic; `unknown` is Spark's answer to other filters."""
    op = filter["op"]
    sides = [true_in_spark(one, row, unknown) for one in below(filter)]
    if op == "not":
        return None if sides[0] is None else not sides[0]
    if op in ("and", "or"):
        settles = op == "or"
        return settles if settles in sides else None if None in sides else not settles
    if op is None:
        return unknown
    value = row[filter["column"].strip("`")]
    if op in ("is_null", "is_not_null"):
        return (value is None) == (op == "is_null")
    if op == "in":
        given = filter["values"]
        if not given:
            return False
        found = value is not None and value in given
        return True if found else None if value is None or None in given else False
    given = filter["prefix" if op == "starts_with" else "value"]
    if value is None or given is None:
        return None
    answers: dict[str, bool] = {"eq": value == given}
    if isinstance(value, int):
        answers |= {
            "lt": value < given,
            "le": value <= given,
            "gt": value > given,
            "ge": value >= given,
        }
    else:
        answers["starts_with"] = str(value).startswith(str(given))
    return answers[op]


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
    def is_sure(one: Filter) -> bool:
        literals = one.get("values", [one.get("value", one.get("prefix"))])
        certain = one["op"] is not None and bool(literals) and "\ufffd" not in literals
        return certain and all(map(is_sure, below(one)))

    if not is_sure(filter):
        return
    schema = pa.schema([("i", pa.int64()), ("s", pa.string()), ("odd name", pa.int32())])
    (tree,) = weakened([filter], TYPES)

    answer = matching(tree, pa.Table.from_pylist([row], schema=schema)).to_pylist()

    assert answer == [true_in_spark(filter, row, None)]
