"""Any type that Windrow writes in Spark SQL's syntax is read as the same type."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from windrow_core.files.type_texts import canonical_type
from windrow_core.files.types import spark_type
from windrow_service.inventory.spark_types import arrow_type

SCALARS = st.sampled_from(
    [
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.date32(),
        pa.timestamp("us", tz="UTC"),
        pa.timestamp("us"),
        pa.null(),
    ]
)
DECIMALS = st.integers(1, 38).flatmap(
    lambda digits: st.builds(pa.decimal128, st.just(digits), st.integers(0, digits))
)
NAMES = st.one_of(
    st.text(min_size=1, max_size=8).filter(lambda name: not name.isspace()),
    st.sampled_from(
        ["array", "struct", "not", "comment", "NULL", "decimal", "a b", "`", "''", '"']
    ),
)
TYPES = st.recursive(
    SCALARS | DECIMALS,
    lambda inner: st.one_of(
        inner.map(pa.list_),
        st.tuples(inner.filter(lambda key: not pa.types.is_null(key)), inner).map(
            lambda pair: pa.map_(*pair)
        ),
        st.lists(st.tuples(NAMES, inner), max_size=4).map(pa.struct),
    ),
    max_leaves=12,
)


@given(TYPES)
def test_a_type_is_read_as_it_was_written_with_any_blanks(
    type_: pa.DataType,
) -> None:
    text = spark_type(type_)

    assert arrow_type(text) == canonical_type(text) == type_
    assert arrow_type(f"  {text}\n") == type_
    if "`" not in text:
        spread = "".join(f"{mark} " if mark in "<>,:" else mark for mark in text)
        assert arrow_type(spread) == type_
