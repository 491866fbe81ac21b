"""Widening of types and values."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from windrow_tables.executor.conversions import convert, widens

UTC = pa.timestamp("us", "UTC")
NTZ = pa.timestamp("us")
local = datetime.fromisoformat

WIDER: list[tuple[pa.Array, pa.DataType, list[Any]]] = [
    (pa.array([-128, None], pa.int8()), pa.int16(), [-128, None]),
    (pa.array([2**31 - 1], pa.int32()), pa.int64(), [2**31 - 1]),
    (pa.array([2**31 - 1], pa.int32()), pa.float64(), [2.0**31 - 1]),
    (pa.array([-(2**31)], pa.int32()), pa.decimal128(12, 2), [Decimal("-2147483648.00")]),
    (pa.array([2**63 - 1], pa.int64()), pa.decimal128(19, 0), [Decimal(2**63 - 1)]),
    (pa.array([255], pa.uint8()), pa.int16(), [255]),
    (pa.array([2**32 - 1], pa.uint32()), pa.int64(), [2**32 - 1]),
    (pa.array([2**64 - 1], pa.uint64()), pa.decimal128(20, 0), [Decimal(2**64 - 1)]),
    (pa.array([0.5], pa.float32()), pa.float64(), [0.5]),
    (pa.array([Decimal("1.25")], pa.decimal128(5, 2)), pa.decimal128(7, 4), [Decimal("1.2500")]),
    (pa.array([date(1, 1, 1)]), NTZ, [local("0001-01-01")]),
    (pa.array(["a", None, "a"]).dictionary_encode(), pa.string(), ["a", None, "a"]),
    (pa.array(["é"], pa.large_string()), pa.string(), ["é"]),
    (pa.array([b"x"], pa.binary(1)), pa.binary(), [b"x"]),
    (pa.array(["é".encode()]), pa.string(), ["é"]),
    (pa.array([None, None], pa.null()), pa.date32(), [None, None]),
    # Times before 1970 are rounded down as well, not towards zero.
    (pa.array([-1, 1999, None], pa.timestamp("ns")), NTZ, [
        local("1969-12-31T23:59:59.999999"), local("1970-01-01T00:00:00.000001"), None,
    ]),
    (pa.array([[1], None, []], pa.list_(pa.int8())), pa.list_(pa.int64()), [[1], None, []]),
    (pa.array([[1, 2]], pa.list_(pa.int8(), 2)), pa.list_(pa.int64()), [[1, 2]]),
    (pa.array([[1], None, [], [3, 4]], pa.list_view(pa.int8())), pa.list_(pa.int64()), [
        [1], None, [], [3, 4],
    ]),
    # Types that only Arrow's own schema in a footer states, and Spark does not know.
    (pa.array([5, None], pa.duration("ms")), pa.int64(), [5, None]),
    (pa.array([0.5, None], pa.float16()), pa.float32(), [0.5, None]),
    (pa.array(["{}", None], pa.json_()), pa.string(), ["{}", None]),
    (pa.array([b"0" * 16, None], pa.uuid()), pa.binary(), [b"0" * 16, None]),
    (pa.array([1, None], pa.bool8()), pa.int8(), [1, None]),
    (pa.ListArray.from_arrays([0, 1], pa.array([b"0" * 16], pa.uuid())), pa.list_(pa.binary()), [
        [b"0" * 16],
    ]),
    (
        pa.array([{"A": 1, "b": "x"}, None], pa.struct([("A", pa.int8()), ("b", pa.string())])),
        pa.struct([("c", pa.int32()), ("a", pa.int32())]),
        [{"c": None, "a": 1}, None],
    ),
    (
        pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32())),
        pa.map_(pa.string(), pa.float64()),
        [[("k", 1.0)], None],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "target", "expected"), WIDER, ids=[f"{v.type} to {t}" for v, t, _ in WIDER]
)
def test_a_type_that_widens_keeps_its_values(
    values: pa.Array, target: pa.DataType, expected: list[Any]
) -> None:
    assert widens(values.type, target)

    converted = convert(values, target)

    assert converted.type == target
    assert converted.to_pylist() == expected
    converted.validate(full=True)


@pytest.mark.parametrize("case", range(len(WIDER)))
def test_a_slice_is_converted_like_the_rows_it_shows(case: int) -> None:
    values, target, expected = WIDER[case]
    repeated = pa.concat_arrays([values.slice(0, 0), values, values])

    converted = convert(repeated.slice(len(values) - 1), target)

    assert converted.to_pylist() == [*expected[-1:], *expected]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.int64(), pa.int32()),
        (pa.int64(), pa.float64()),
        (pa.int32(), pa.decimal128(9, 0)),
        (pa.uint32(), pa.int32()),
        (pa.int8(), pa.uint16()),
        (pa.float64(), pa.float32()),
        (pa.float64(), pa.int64()),
        (pa.int32(), pa.string()),
        (pa.string(), pa.int32()),
        (pa.decimal128(5, 2), pa.decimal128(6, 4)),
        (pa.decimal128(5, 2), pa.decimal128(7, 1)),
        (pa.date32(), UTC),
        (NTZ, UTC),
        (UTC, NTZ),
        (UTC, pa.date32()),
        (pa.bool_(), pa.int32()),
        (pa.list_(pa.string()), pa.list_(pa.int32())),
        (pa.list_(pa.int32()), pa.int32()),
        (pa.struct([("a", pa.string())]), pa.struct([("a", pa.int32())])),
        (pa.struct([("aB", pa.int8()), ("Ab", pa.int8())]), pa.struct([("ab", pa.int8())])),
        (pa.map_(pa.string(), pa.string()), pa.map_(pa.string(), pa.int32())),
    ],
    ids=str,
)
def test_a_type_that_could_lose_a_value_does_not_widen(
    source: pa.DataType, target: pa.DataType
) -> None:
    assert not widens(source, target)
