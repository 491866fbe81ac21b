"""Whatever a refresh accepts can be read, with the values that were written."""

from __future__ import annotations

import tempfile
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from tests.support.tables.published import read_in_full
from tests.unit.inventory.files import take_inline
from windrow_core.files.errors import UnreadableTypeError

UTC = datetime(2026, 11, 1, tzinfo=timezone.utc)

# Two values and a null of each type that Arrow writes to Parquet.
LEAVES = [
    pa.nulls(3),
    pa.array([True, None, False]),
    pa.array([1, None, 0], pa.bool8()),
    *(pa.array([1, None, 2], getattr(pa, f"{sign}int{n}")()) for sign in ("", "u") for n in (8, 16, 32, 64)),
    pa.array([0.5, None, -2], pa.float16()),
    pa.array([0.5, None, -2], pa.float32()),
    pa.array([0.5, None, -2]),
    *(pa.array(["a", None, "é"], type_) for type_ in (pa.string(), pa.large_string())),
    *(pa.array([b"a", None, b"\xff"], type_) for type_ in (pa.binary(), pa.large_binary(), pa.binary(1))),
    pa.array(["a", None, "a"]).dictionary_encode(),
    pa.array([7, None, 7]).dictionary_encode(),
    pa.array(["{}", None, "[]"], pa.json_()),
    pa.array([b"0" * 16, None, b"1" * 16], pa.uuid()),
    pa.array([date(1600, 1, 1), None, date(9999, 12, 31)]),
    pa.array([date(1970, 1, 2), None, date(2026, 11, 1)], pa.date64()),
    *(pa.array([1, None, -1], pa.int64()).cast(pa.duration(unit)) for unit in ("s", "ms", "us", "ns")),
    *(pa.array([UTC.replace(tzinfo=None), None, None], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")),
    *(pa.array([UTC, None, None], pa.timestamp(unit, "Asia/Tokyo")) for unit in ("s", "ms", "us", "ns")),
    pa.array([Decimal("1.25"), None, Decimal("-1.25")], pa.decimal32(5, 2)),
    pa.array([Decimal("1.25"), None, Decimal("-1.25")], pa.decimal64(15, 2)),
    pa.array([Decimal("1.25"), None, Decimal("-1.25")], pa.decimal128(38, 2)),
    pa.array([Decimal("1.25"), None, Decimal("-1.25")], pa.decimal256(30, 2)),
    pa.array([Decimal(10) ** 50, None, None], pa.decimal256(76, 0)),
    pa.array([1, None, 2], pa.time32("s")),
    pa.array([1, None, 2], pa.time64("ns")),
]  # fmt: skip

# Arrow does not write these within nested types.
VIEWS = [
    pa.array(["a", None, "é"], pa.string_view()),
    pa.array([b"a", None, b""], pa.binary_view()),
]


def lists(of: pa.Array) -> list[pa.Array]:
    """Return lists of the values, of every list type that Arrow has."""
    offsets = pa.array([0, 1, 1, len(of)], pa.int32())
    null = pa.array([False, True, False])
    plain = pa.ListArray.from_arrays(offsets, of, mask=null)
    sizes = pa.array([1, 0, len(of) - 1], pa.int32())
    views = pa.ListViewArray.from_arrays(pa.array([0, 1, 1], pa.int32()), sizes, of, mask=null)
    large = pa.LargeListArray.from_arrays(offsets.cast(pa.int64()), of, mask=null)
    return [plain, large, views, pa.FixedSizeListArray.from_arrays(of, 1)]


def nested(inner: st.SearchStrategy[pa.Array]) -> st.SearchStrategy[pa.Array]:
    keys = pa.array(["k", "l", "m"])
    offsets = pa.array([0, 1, 1, 3], pa.int32())
    return st.one_of(
        inner.flatmap(lambda of: st.sampled_from(lists(of))),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda many: pa.StructArray.from_arrays(
                many, [f"f{n}" for n in range(len(many))], mask=pa.array([False, True, False])
            )
        ),
        inner.map(lambda of: pa.MapArray.from_arrays(offsets, keys, of)),
    )


COLUMNS = st.lists(
    st.sampled_from(VIEWS) | st.recursive(st.sampled_from(LEAVES), nested, max_leaves=3),
    max_size=25,
)


def plain(values: pa.Array) -> list[Any]:
    """Return the values as Spark should see them, converted one by one."""
    type_ = values.type
    if isinstance(type_, pa.BaseExtensionType):
        return plain(values.storage)
    if pt.is_duration(type_):
        return list(values.cast(pa.int64()).to_pylist())
    if pt.is_float16(type_):
        return [None if v is None else float(np.float32(v)) for v in values.to_pylist()]
    if pt.is_timestamp(type_) and type_.unit == "ns":
        return list(values.cast(pa.timestamp("us", type_.tz)).to_pylist())
    if pt.is_struct(type_):
        fields = [plain(values.field(n)) for n in range(type_.num_fields)]
        return [
            dict(zip(type_.names, row, strict=True)) if valid else None
            for valid, *row in zip(values.is_valid().to_pylist(), *fields, strict=True)
            for row in [row]
        ]
    if pt.is_map(type_):
        return [
            None if v.as_py() is None else list(zip(*map(plain, v.values.flatten()), strict=True))
            for v in values
        ]
    if pt.is_nested(type_):
        return [plain(v.values) if v.is_valid else None for v in values]
    return list(values.to_pylist())


@examples(25)
@given(COLUMNS)
def test_every_column_that_a_refresh_accepts_is_read_with_its_values(
    columns: list[pa.Array],
) -> None:
    table = pa.Table.from_arrays(columns, [f"c{n}" for n in range(len(columns))])
    refused: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        while True:
            pq.write_table(table, Path(folder) / "f.parquet")
            try:
                inventory = take_inline(folder)
                break
            except UnreadableTypeError as error:
                refused.append(error.type)
                table = table.drop_columns([error.column])

        got = read_in_full(folder, inventory, inventory.data_schema)

    assert all("time" in type_ or "decimal256(76, 0)" in type_ for type_ in refused)
    assert got.num_rows == (3 if table.num_columns else 0)
    for name in table.column_names:
        assert got[name].to_pylist() == plain(table[name].combine_chunks()), table[name].type


def test_a_list_view_keeps_values_after_an_empty_list(tmp_path: Path) -> None:
    views = pa.array([[1], None, [], [2, 3]], pa.list_view(pa.int32()))
    pq.write_table(pa.table({"v": views}), tmp_path / "f.parquet")
    inventory = take_inline(str(tmp_path))

    got = read_in_full(str(tmp_path), inventory, inventory.data_schema)

    assert got["v"].to_pylist() == [[1], None, [], [2, 3]]
