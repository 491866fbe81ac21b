"""JSON made column by column equals JSON made value by value."""

from __future__ import annotations

import json
import math
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from tests.support.laws import examples
from windrow_service.wire.groups import json_texts

# The bounds of st.datetimes must be naive.
EARLY, LATE = datetime(1700, 1, 1), datetime(2262, 1, 1)  # noqa: DTZ001
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
VALUES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.int32(), st.integers(-5, 5)),
    (pa.string(), TEXTS | st.sampled_from(['"', "\\", "\n", "a\x00b", "é", "plain", "\u2028"])),
    (pa.bool_(), st.booleans()),
    (pa.float64(), st.floats()),
    (pa.date32(), st.dates(date(1600, 1, 1), date(9999, 1, 1))),
    (pa.decimal128(10, 2), st.decimals(-999, 999, places=2)),
    (pa.timestamp("us"), st.datetimes(EARLY, LATE)),
    (
        pa.timestamp("us", "UTC"),
        st.datetimes(EARLY, LATE, timezones=st.just(timezone.utc)),
    ),
    (pa.binary(), st.binary(max_size=3).filter(lambda raw: raw.isascii())),
]


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    type_, value = draw(st.sampled_from(VALUES))
    shape = draw(st.sampled_from(["plain", "list", "struct", "list of structs"]))
    one = st.none() | value
    if shape == "list":
        type_, one = pa.list_(type_), st.none() | st.lists(one, max_size=3)
    elif shape != "plain":
        names = draw(st.lists(TEXTS, unique=True, max_size=3))
        type_ = pa.struct([(name, type_) for name in names])
        one = st.none() | st.fixed_dictionaries(dict.fromkeys(names, one))
        if shape == "list of structs":
            type_, one = pa.list_(type_), st.none() | st.lists(one, max_size=3)
    values = draw(st.lists(one, max_size=5))
    begin = draw(st.integers(0, len(values)))
    return pa.array(values, type_).slice(begin)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


@examples(135)
@given(columns())
def test_json_of_columns_equals_json_of_single_values(column: pa.Array) -> None:
    texts = json_texts(column).to_pylist()

    expected = [to_json(value, inf_nan_mode="strings") for value in column.to_pylist()]
    assert len(texts) == len(expected)
    for text, one in zip(texts, expected, strict=True):
        assert same(json.loads(text), json.loads(one))


def test_decimals_and_special_floats_have_exact_texts() -> None:
    assert json_texts(pa.array([Decimal("1.50"), None])).to_pylist() == ['"1.50"', "null"]
    assert json_texts(pa.array([float("nan"), float("inf")])).to_pylist() == ['"NaN"', '"Infinity"']
