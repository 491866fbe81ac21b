"""Figures of files in packs are those of their values, or unknown."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_core.files.figures import FIGURE, SPARK_TYPE
from windrow_tables.merging.physical import physical_schema
from windrow_tables.merging.sources import Heads
from windrow_tables.packs.contents import Content, columns_of
from windrow_tables.packs.figures import columns_with_figures, figures_of

EPOCH = dt.date(1970, 1, 1)
FIRST_DAY = dt.date(1582, 10, 15)
LARGEST = 2**62


def whole(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "tinyint": (pa.int8(), whole(8)),
    "smallint": (pa.int16(), whole(16)),
    "int": (pa.int32(), whole(32)),
    "bigint": (pa.int64(), whole(64)),
    "date": (pa.date32(), st.dates()),
    "decimal(4,2)": (pa.decimal128(4, 2), st.decimals(-99, 99, places=2)),
    "decimal(18,0)": (pa.decimal128(18, 0), st.decimals(-(10**17), 10**17, places=0)),
}
OTHERS = {
    "unsigned": pa.array([1], pa.uint32()),
    "long decimal": pa.array([Decimal(1)], pa.decimal128(19, 0)),
    "double": pa.array([0.5]),
    "moment": pa.array([1], pa.timestamp("us")),
    "list": pa.array([[1]]),
}


def number(value: Any, type_: pa.DataType) -> int:
    if isinstance(value, dt.date):
        return (value - EPOCH).days
    return int(value.scaleb(type_.scale)) if isinstance(value, Decimal) else int(value)


def stored(columns: dict[str, pa.Array], **options: Any) -> tuple[pa.Table, pa.Schema]:
    """Return rows as a file stores them, and its columns as Arrow sees them."""
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, **options)
    content = Content.of(sink.getvalue(), Heads())
    return content.rows_of(physical_schema(content.head)), columns_of(sink.getvalue())


@examples(100)
@given(data=st.data())
def test_figures_are_those_of_values_or_unknown(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(TYPES)))
    type_, values = TYPES[name]
    files = data.draw(st.lists(st.lists(st.none() | values, max_size=6), min_size=1, max_size=5))
    as_integers = data.draw(st.booleans())
    tables = [
        stored({"a": pa.array(one, type_)}, store_decimal_as_integer=as_integers) for one in files
    ]

    columns = columns_with_figures(tables[0][1])
    figures = figures_of([rows for rows, _ in tables], columns)

    assert [field.metadata[SPARK_TYPE].decode() for field in columns.values()] == [name]
    for one, figure in zip(files, figures["a"].to_pylist(), strict=True):
        numbers = [number(value, type_) for value in one if value is not None]
        if figure is None:
            is_old = name == "date" and min(numbers) < (FIRST_DAY - EPOCH).days
            assert is_old or max(map(abs, numbers)) * len(numbers) >= LARGEST * (1 - 2**-50)
            continue
        assert figure["count"] == len(numbers)
        bounds = (min(numbers), max(numbers), sum(numbers)) if numbers else (None, None, None)
        assert (figure["least"], figure["greatest"], figure["total"]) == bounds
        assert name != "date" or not numbers or min(numbers) >= (FIRST_DAY - EPOCH).days


def test_columns_of_other_types_and_of_names_that_differ_by_case_have_none() -> None:
    _, schema = stored({**OTHERS, "a": pa.array([1]), "A": pa.array([1]), "b": pa.array([1])})

    columns = columns_with_figures(schema)

    assert [field.name for field in columns.values()] == ["b"]


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("tinyint", pa.array([300], pa.int32())),
        ("smallint", pa.array([-(2**15) - 1], pa.int32())),
        ("decimal(4,2)", pa.array([10_000], pa.int32())),
        ("decimal(18,0)", pa.array([10**18], pa.int64())),
        ("decimal(18,0)", pa.array([Decimal(10**30)], pa.decimal128(38, 0))),
    ],
)
def test_numbers_that_their_type_does_not_have_have_no_figures(
    type_: str, values: pa.Array
) -> None:
    field = pa.field("a", FIGURE, metadata={SPARK_TYPE: type_})

    figures = figures_of([pa.table({"0": values})], {0: field})

    assert figures["a"].to_pylist() == [None]
