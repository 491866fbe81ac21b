"""Partition values have the JSON form that Iceberg's specification gives examples of."""

from __future__ import annotations

import json
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from windrow_service.iceberg.single_values import json_writer


@pytest.mark.parametrize(
    ("type_", "raw", "text"),
    [
        ("boolean", True, "true"),
        ("int", 34, "34"),
        ("long", -(2**63), "-9223372036854775808"),
        ("float", 1.0, "1.0"),
        ("double", float("-inf"), '"-inf"'),
        ("decimal(9, 2)", (1420).to_bytes(2, "big"), '"14.20"'),
        ("decimal(38, 0)", (-(10**37)).to_bytes(16, "big", signed=True), f'"-1{"0" * 37}"'),
        ("date", 17486, '"2017-11-16"'),
        ("time", 81_068_123_456, '"22:31:08.123456"'),
        ("timestamp", 1_510_871_468_123_456, '"2017-11-16T22:31:08.123456"'),
        ("timestamptz", 1_510_871_468_000_000, '"2017-11-16T22:31:08.000000+00:00"'),
        ("timestamp", -1, '"1969-12-31T23:59:59.999999"'),
        ("timestamp_ns", 1_510_871_468_123_456_789, '"2017-11-16T22:31:08.123456789"'),
        ("timestamptz_ns", -1, '"1969-12-31T23:59:59.999999999+00:00"'),
        ("string", 'ice"berg\n', '"ice\\"berg\\n"'),
        ("uuid", UUID(int=2**100).bytes, f'"{UUID(int=2**100)}"'),
        ("fixed[4]", b"\x00\x01\x02\xff", '"000102FF"'),
        ("binary", b"", '""'),
        ("binary", None, "null"),
        ("decimal(9, 2)", None, "null"),
    ],
)
def test_values_are_written_as_in_icebergs_specification(
    type_: str, raw: object, text: str
) -> None:
    assert json_writer(type_)(raw) == text


@examples(60)
@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
def test_all_digits_of_decimals_are_written(unscaled: int, scale: int) -> None:
    raw = unscaled.to_bytes(17, "big", signed=True)

    text = json.loads(json_writer(f"decimal(38, {scale})")(raw))

    sign, digits, exponent = Decimal(text).as_tuple()
    assert "E" not in text
    assert exponent == -scale
    assert int("".join(map(str, digits))) * (-1 if sign else 1) == unscaled


@pytest.mark.parametrize(
    "type_", ["", "variant", "struct<1: a: optional int>", "geometry", "decimal(9, 1000000000)"]
)
def test_types_that_no_partition_has_are_refused(type_: str) -> None:
    with pytest.raises(ValueError, match="a partition has values of type"):
        json_writer(type_)


@pytest.mark.parametrize("raw", ["9" * 20, b"7", 1e300])
def test_whole_numbers_are_not_made_of_other_values(raw: object) -> None:
    with pytest.raises(TypeError):
        json_writer("int")(raw)
