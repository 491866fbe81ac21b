"""A packed batch holds the values of its Arrow batch, wherever that lies in its buffers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from hypothesis import example, given
from hypothesis import strategies as st

from windrow_tables.executor.packing import is_packable, packed

_DECIMALS = {4: pa.decimal128(9, 2), 16: pa.decimal128(18, 0), 36: pa.decimal128(38, 6)}
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    **{getattr(pa, f"int{n}")(): st.integers(-(2 ** (n - 1)), 2 ** (n - 1) - 1) for n in (8, 64)},
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(dt.timezone.utc)),
    pa.timestamp("us"): st.datetimes(),
    pa.string(): st.text(max_size=5),
    pa.binary(): st.binary(max_size=5),
    **{
        type_: st.integers(-(10**digits), 10**digits).map(
            lambda unscaled, scale=type_.scale: Decimal(unscaled).scaleb(-scale)
        )
        for digits, type_ in _DECIMALS.items()
    },
}


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    """Draw a batch of a few columns, usually from the middle of a longer one."""
    length = draw(st.integers(1, 40))
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4))
    columns = [
        pa.array(
            draw(
                st.lists(
                    st.none() | VALUES[type_] if draw(st.booleans()) else VALUES[type_],
                    min_size=length,
                    max_size=length,
                )
            ),
            type_,
        )
        for type_ in types
    ]
    start = draw(st.integers(0, length - 1))
    whole = pa.RecordBatch.from_arrays(columns, [str(i) for i in range(len(columns))])
    return whole.slice(start, draw(st.integers(1, length - start)))


def read_back(content: bytes, types: list[pa.DataType]) -> Iterator[pa.Array]:
    """Yield the columns of a packed batch, as the docstring of `packed` describes it."""
    head = np.frombuffer(content, np.int32, 1 + 4 * len(types))
    at = head.nbytes
    for type_, (bit, *sizes) in zip(types, head[1:].reshape(-1, 4).tolist(), strict=True):
        validity, offsets, values = (
            None if size < 0 else content[(at := at + size) - size : at] for size in sizes
        )
        rows = int(head[0])
        present = np.ones(rows, bool) if validity is None else bits(validity, bit, rows)
        assert values is not None
        yield pa.array(
            (value if there else None)
            for value, there in zip(plain(type_, rows, bit, offsets, values), present, strict=True)
        ).cast(type_)
    assert at == len(content)


def bits(content: bytes, first: int, rows: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    unpacked = np.unpackbits(np.frombuffer(content, np.uint8), bitorder="little")
    return unpacked[first : first + rows].astype(bool)


def plain(
    type_: pa.DataType, rows: int, bit: int, offsets: bytes | None, values: bytes
) -> list[Any]:
    """Return the values of a column; those that are null may be anything."""
    if pt.is_boolean(type_):
        return list(bits(values, bit, rows).tolist())
    if offsets is None:
        assert len(values) == rows * type_.byte_width
        return list(pa.Array.from_buffers(type_, rows, [None, pa.py_buffer(values)]).to_pylist())
    ends = np.frombuffer(offsets, np.int32)
    ends = ends - ends[0]
    found = [values[a:b] for a, b in pairwise(ends)]
    assert ends[-1] == len(values)
    return [one.decode() for one in found] if pt.is_string(type_) else found


@example(pa.RecordBatch.from_pydict({"s": pa.array(["", None, ""])}))
@example(pa.RecordBatch.from_pydict({"b": pa.array([None] * 9, pa.bool_())}).slice(7))
@given(batches())
def test_a_packed_batch_holds_the_values_of_the_batch(batch: pa.RecordBatch) -> None:
    assert all(map(is_packable, batch.schema.types))

    found = list(read_back(packed(batch), batch.schema.types))

    assert found == batch.columns


def test_types_that_are_nested_or_have_no_layout_are_not_packed() -> None:
    for type_ in (
        pa.list_(pa.int32()),
        pa.struct([("a", pa.int32())]),
        pa.map_(pa.string(), pa.int32()),
        pa.null(),
        pa.large_string(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.uint32(),
        pa.decimal256(50, 2),
    ):
        assert not is_packable(type_)
