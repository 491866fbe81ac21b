"""Streams of published inventories: those of the client are read, damaged ones refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from windrow_calls.snapshots import change_stream, inventory_stream
from windrow_service.inventory.errors import InvalidInventoryError
from windrow_service.inventory.published.arrow_streams import read_stream

MIB = 2**20
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
COLUMNS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.integers(0, 2**63 - 1)),
    (pa.int32(), st.integers(0, 5)),
    (pa.bool_(), st.booleans()),
    (pa.null(), st.none()),
    (pa.string(), TEXTS),
    (pa.large_string(), TEXTS),
    (pa.string_view(), TEXTS),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.dictionary(pa.int8(), pa.string()), TEXTS),
    (pa.decimal128(9, 2), st.decimals(-99, 99, places=2)),
    (pa.timestamp("us", "UTC"), st.integers(0, 2**40)),
    (pa.list_(pa.string()), st.lists(TEXTS, max_size=3)),
    (pa.list_(pa.dictionary(pa.int8(), pa.string())), st.lists(TEXTS, max_size=3)),
    (
        pa.struct([("x", pa.struct([("min", pa.int8()), ("max", pa.int8())]))]),
        st.fixed_dictionaries({"x": st.none() | st.fixed_dictionaries({"min": st.integers(0, 9)})}),
    ),
]


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    count = draw(st.integers(0, 6))
    columns: dict[str, pa.Array] = {"path": pa.array([f"{n}" for n in range(count)], pa.string())}
    for at, (type_, values) in enumerate(draw(st.lists(st.sampled_from(COLUMNS), max_size=4))):
        drawn = draw(st.lists(values | st.none(), min_size=count, max_size=count))
        columns[f"c{at}"] = pa.array(drawn, type_)
    return pa.table(columns)


@given(tables(), st.booleans())
def test_data_that_the_client_sends_is_read_unchanged(table: pa.Table, as_change: bool) -> None:
    stream = change_stream(table, ["gone"]) if as_change else inventory_stream(table)

    read = read_stream(stream, MIB)

    assert read.slice(0, len(table)).select(table.column_names).to_pydict() == table.to_pydict()


@given(tables(), st.data())
def test_a_damaged_stream_is_refused_or_read_within_the_bound(
    table: pa.Table, data: st.DataObject
) -> None:
    damaged = bytearray(inventory_stream(table))
    places = st.tuples(st.integers(0, len(damaged) - 1), st.integers(0, 255))
    for at, byte in data.draw(st.lists(places, min_size=1, max_size=6)):
        damaged[at] = byte

    try:
        read = read_stream(bytes(damaged[: data.draw(st.integers(1, len(damaged)))]), MIB)
    except InvalidInventoryError:
        return
    assert read.nbytes <= MIB
