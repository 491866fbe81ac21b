"""Reading and hashing of keys; tests/spark/test_write_predictions.py compares with Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from windrow_service.planner.writes.errors import InvalidKeysError, UnhashableTypeError
from windrow_service.planner.writes.key_values import column_of, numbered
from windrow_service.planner.writes.murmur3 import hash_columns, hash_int


def test_a_null_does_not_change_the_hash() -> None:
    nulls, texts = pa.array([None, None], pa.int32()), pa.array(["a", None])

    alone = hash_columns([texts], 2)

    assert hash_columns([nulls, texts], 2).tolist() == alone.tolist()
    assert alone[1] == 42


def test_columns_are_chained() -> None:
    texts, salts = pa.array(["2018-01-01"] * 3), np.arange(3, dtype=np.int32)

    chained = hash_int(salts, hash_columns([texts], 3))

    assert chained.tolist() == hash_columns([texts, pa.array(salts)], 3).tolist()
    assert len(set(chained.tolist())) == 3


def test_a_slice_hashes_like_its_rows() -> None:
    for column in (
        pa.array(["a", "bcdefg", None, "2018-01-01"]),
        pa.array([1, None, 3, 4], pa.decimal128(10, 2)),
        pa.array([1, None, 3, 4], pa.decimal128(30, 2)),
    ):
        assert hash_columns([column[1:]], 3).tolist() == hash_columns([column], 4)[1:].tolist()


@pytest.mark.parametrize("type_", [pa.binary(), pa.list_(pa.int32()), pa.timestamp("ns")])
def test_a_type_without_a_known_hash_is_refused(type_: pa.DataType) -> None:
    with pytest.raises(UnhashableTypeError, match=r"partition by a boolean, a number"):
        hash_columns([pa.nulls(2, type_)], 2)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (pa.int32(), 2**31),
        (pa.int32(), True),
        (pa.int64(), 1.5),
        (pa.int64(), "1"),
        (pa.bool_(), 1),
        (pa.string(), 5),
        (pa.string(), "x" * 5_000),
        (pa.string(), "\ud800"),
        (pa.date32(), "2018-02-30"),
        (pa.date32(), "20180101"),
        (pa.float64(), "1.5"),
        (pa.float64(), False),
        (pa.decimal128(5, 2), "1.234"),
        (pa.decimal128(5, 2), "1e400"),
        (pa.timestamp("us", tz="UTC"), "noon"),
        (pa.timestamp("us"), "2018-01-01T00:00:00Z"),
    ],
)
def test_a_value_that_does_not_fit_its_column_is_named(type_: pa.DataType, value: object) -> None:
    with pytest.raises(InvalidKeysError, match=r"key 1: .* of partition column 'part'"):
        column_of("part", type_, [None, value])


def test_values_are_converted_to_the_types_of_their_columns() -> None:
    assert column_of("d", pa.date32(), ["2018-01-01", None]).cast(pa.int32()).to_pylist() == [
        17532,
        None,
    ]
    assert column_of("d", pa.float64(), ["Infinity", 1]).to_pylist() == [float("inf"), 1.0]
    assert str(column_of("d", pa.decimal128(5, 2), ["1.5"])[0]) == "1.50"


def test_local_times_are_accepted_but_not_hashed() -> None:
    times = column_of("t", pa.timestamp("us", tz="UTC"), ["2018-01-01 10:00:00"])

    with pytest.raises(UnhashableTypeError):
        hash_columns([times], 1)


def test_equal_rows_get_equal_numbers_and_null_equals_null() -> None:
    first = pa.array(["a", None, "a", None, "b"])
    second = pa.array([1, 1, 1, 1, None])

    numbers, count = numbered([first, second], 5)

    assert count == 3
    assert numbers[0] == numbers[2]
    assert numbers[1] == numbers[3]
    assert len({*numbers.tolist()}) == 3
