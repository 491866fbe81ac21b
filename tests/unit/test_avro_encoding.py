"""Avro files that are written from columns, read by another library."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_service.avro import encoding

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "s", "type": ["null", "string"]},
        {"name": "b", "type": "bytes"},
        {
            "name": "m",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "kv",
                    "fields": [
                        {"name": "key", "type": "int"},
                        {"name": "value", "type": "bytes"},
                    ],
                },
            },
        },
    ],
}
ROWS = st.tuples(
    st.integers(-(2**63), 2**63 - 1),
    st.none() | st.text(),
    st.binary(),
    st.none() | st.integers(-(2**31), 2**31 - 1),
    st.none() | st.binary(),
)


@examples(60)
@given(st.lists(ROWS, max_size=20))
def test_columns_are_read_as_the_rows_they_were(rows: list[tuple[Any, ...]]) -> None:
    numbers, texts, contents, small, others = zip(*rows, strict=True) if rows else [()] * 5
    fixed = encoding.fixed(np.array([one or 0 for one in small], np.int32))
    fixed = pa.array(
        [
            None if one is None else value
            for one, value in zip(small, fixed.to_pylist(), strict=True)
        ],
        pa.binary(),
    )
    maps = encoding.number_map(
        [(7, encoding.data(fixed)), (-300, encoding.data(pa.array(others, pa.binary())))],
        len(rows),
    )
    columns = [
        encoding.longs(np.array(numbers, np.int64)),
        encoding.optional(encoding.data(pa.array(texts, pa.string()))),
        encoding.data(pa.array(contents, pa.binary())),
        maps,
    ]

    joined = encoding.rows(columns)
    file = encoding.avro_file(SCHEMA, {"k": "é"}, [joined.slice(0, 3), joined.slice(3)])

    reader = fastavro.reader(io.BytesIO(file))
    assert list(reader) == [
        {
            "n": number,
            "s": text,
            "b": content,
            "m": [
                {"key": key, "value": value}
                for key, value in (
                    (7, None if one is None else one.to_bytes(4, "little", signed=True)),
                    (-300, other),
                )
                if value is not None
            ],
        }
        for number, text, content, one, other in rows
    ]
    assert reader.metadata["k"] == "é"
