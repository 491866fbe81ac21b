"""Buckets rule out the partitions that PyIceberg's own hashes rule out."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import types
from pyiceberg.transforms import BucketTransform

from tests.support.laws import examples
from windrow_core.files.file_fields import FIELD_ID
from windrow_service.iceberg.buckets import matches
from windrow_service.iceberg.manifests import ManifestTask
from windrow_service.iceberg.metadata import PartitionField
from windrow_service.planner.pruning.expressions import And, Comparison, In, IsNull, Not, Or

COUNT = 16
DAYS = st.dates(date(1600, 1, 1))
TIMES = st.datetimes(datetime.fromisoformat("1600-01-01"), datetime.fromisoformat("3000-01-01"))
VALUES: dict[str, tuple[pa.DataType, types.PrimitiveType, st.SearchStrategy[Any]]] = {
    "int": (pa.int32(), types.IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), types.LongType(), st.integers(-(2**63), 2**63 - 1)),
    "string": (pa.string(), types.StringType(), st.text()),
    "binary": (pa.binary(), types.BinaryType(), st.binary()),
    "date": (pa.date32(), types.DateType(), DAYS),
    "ntz": (pa.timestamp("us"), types.TimestampType(), TIMES),
    "time": (
        pa.timestamp("us", tz="UTC"),
        types.TimestamptzType(),
        TIMES.map(lambda one: one.replace(tzinfo=timezone.utc)),
    ),
    "decimal": (
        pa.decimal128(38, 2),
        types.DecimalType(38, 2),
        st.integers(-(10**38) + 1, 10**38 - 1).map(
            lambda one: Decimal((int(one < 0), tuple(map(int, str(abs(one)))), -2))
        ),
    ),
}


def task(type_: pa.DataType, count: int = COUNT) -> ManifestTask:
    """Return a manifest of a table with two columns `x` and `y`, of which `x` has buckets."""
    fields = [
        pa.field(name, one, metadata={FIELD_ID: str(number).encode()})
        for number, (name, one) in enumerate((("y", pa.int64()), ("x", type_)), 1)
    ]
    spec = (
        PartitionField(1000, 1, "identity", "long"),
        PartitionField(1001, 2, f"bucket[{count}]", "int"),
    )
    return ManifestTask(
        path="m",
        length=1,
        spec_id=3,
        spec=spec,
        sequence_number=0,
        snapshot_id=None,
        columns=pa.schema(fields),
        partition_columns=(),
    )


KEYS = [*(f"3:7,{number}" for number in range(COUNT)), "3:7,null"]


def bucket_of(value: Any, type_: types.PrimitiveType) -> int:
    bucket = BucketTransform(COUNT).transform(type_)(_internal(value))
    assert bucket is not None
    return bucket


def _internal(value: Any) -> Any:
    if isinstance(value, datetime):
        since = value.replace(tzinfo=timezone.utc) - datetime(1970, 1, 1, tzinfo=timezone.utc)
        return (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
    return value.toordinal() - date(1970, 1, 1).toordinal() if isinstance(value, date) else value


@pytest.mark.parametrize("kind", VALUES)
@examples(20)
@given(st.data())
def test_a_value_is_in_the_bucket_that_pyiceberg_puts_it_in(kind: str, data: st.DataObject) -> None:
    arrow, iceberg, values = VALUES[kind]
    one, other = data.draw(values), data.draw(values)

    single = matches(task(arrow), KEYS, Comparison("eq", "x", one))
    several = matches(task(arrow), KEYS, In("x", (one, other)))

    assert single is not None
    assert several is not None
    assert single.nonzero()[0].tolist() == [bucket_of(one, iceberg)]
    if isinstance(one, Decimal):
        # The same number, written with more digits.
        longer = Decimal((*one.as_tuple()[:1], (*one.as_tuple()[1], 0), -3))
        again = matches(task(arrow), KEYS, Comparison("eq", "x", longer))
        assert again is not None
        assert again.tolist() == single.tolist()
    assert set(several.nonzero()[0].tolist()) == {bucket_of(v, iceberg) for v in (one, other)}


def test_only_what_names_values_or_null_rules_buckets_out() -> None:
    of_longs = task(pa.int64())
    seven, eight = (Comparison("eq", "x", value) for value in (7, 8))
    some = {bucket_of(value, types.LongType()) for value in (7, 8)}
    everything = set(range(len(KEYS)))

    def places(expression: Any) -> set[int]:
        flags = matches(of_longs, KEYS, expression)
        assert flags is not None
        return set(flags.nonzero()[0].tolist())

    assert len(some) == 2
    assert places(IsNull("x")) == {COUNT}
    assert places(Or((seven, eight))) == some
    assert places(And((seven, eight))) == set()
    assert places(Or((seven, IsNull("x")))) == {bucket_of(7, types.LongType()), COUNT}
    for wide in (Comparison("lt", "x", 7), Not(seven), Comparison("eq", "y", 7)):
        assert places(wide) == everything
        assert places(And((seven, wide))) == places(seven)
        assert places(Or((seven, wide))) == everything


def test_without_buckets_there_is_nothing_to_say() -> None:
    plain = task(pa.int64())
    assert (
        matches(
            ManifestTask(
                path="m",
                length=1,
                spec_id=0,
                spec=(),
                sequence_number=0,
                snapshot_id=None,
                columns=plain.columns,
                partition_columns=(),
            ),
            ["0:"],
            Comparison("eq", "x", 1),
        )
        is None
    )


def test_no_buckets_rule_nothing_out() -> None:
    assert matches(task(pa.int64(), 0), ["3:7,0"], Comparison("eq", "x", 1)) is None
