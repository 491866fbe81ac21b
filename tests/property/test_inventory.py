"""Laws of inventories: nothing is lost, and the result does not depend on its history."""

from __future__ import annotations

import string
import tempfile
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from tests.unit.inventory.files import as_previous, paths_column, take_inline, touch, write
from windrow_core.files.rows import inventory_schema
from windrow_core.files.schema import widen
from windrow_core.files.types import spark_type
from windrow_service.inventory.listing.partitions import partition_columns
from windrow_service.inventory.manifests.encoding import decode_manifest, encode_manifest
from windrow_service.inventory.spark_types import arrow_type

NTZ = datetime(1970, 1, 1)  # noqa: DTZ001
UTC = datetime(1970, 1, 1, tzinfo=timezone.utc)
MICROSECONDS = st.integers(-(10**15), 10**15)

VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-(2**7), 2**7 - 1),
    pa.uint32(): st.integers(0, 2**32 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.string(): st.text(max_size=5),
    pa.binary(): st.binary(max_size=5),
    pa.date32(): st.dates(),
    pa.decimal128(38, 3): st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda unscaled: Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -3))
    ),
    pa.timestamp("us"): MICROSECONDS.map(lambda us: NTZ + timedelta(microseconds=us)),
    pa.timestamp("ms", "UTC"): MICROSECONDS.map(
        lambda us: UTC + timedelta(milliseconds=us // 1000)
    ),
}

SCALARS = [
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "void",
    "decimal(5,2)",
    "decimal(38,10)",
]
TYPES = st.recursive(
    st.sampled_from(SCALARS).map(arrow_type),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        st.builds(pa.map_, inner.filter(lambda key: key != pa.null()), inner),
        st.dictionaries(st.text(min_size=1, max_size=3), inner, min_size=1, max_size=3).map(
            lambda fields: pa.struct(list(fields.items()))
        ),
    ),
    max_leaves=5,
)


@examples(50)
@given(st.data())
def test_bounds_include_every_value(data: st.DataObject) -> None:
    type_ = data.draw(st.sampled_from(list(VALUES)))
    values = data.draw(st.lists(st.none() | VALUES[type_], max_size=12))
    row_group_size = data.draw(st.integers(1, 5))
    column = pa.array(values, type_)

    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), "f", {"c": column}, row_group_size=row_group_size)
        (file,) = take_inline(folder).files.to_pylist()

    stats = file["stats"]["c"]
    assert file["row_count"] == len(values)
    assert len(file["row_group_offsets"]) == max(1, -(-len(values) // row_group_size))
    assert stats["null_count"] in (None, values.count(None))
    for value in column.to_pylist():
        is_nan = value != value
        if value is not None and stats["min"] is not None and not is_nan:
            assert stats["min"] <= value <= stats["max"]
        if is_nan and stats["min"] is not None:
            assert not file["stats_see_nan"]


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["write", "remove"]),
        st.integers(0, 3),
        st.sampled_from(["a", "b"]),
        st.lists(st.none() | st.integers(-5, 5), min_size=1, max_size=4),
    ),
    max_size=6,
)


@examples(40)
@given(CHANGES, st.lists(CHANGES, min_size=1, max_size=3))
def test_an_incremental_inventory_equals_one_from_scratch(
    first: list[Any], rounds: list[list[Any]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        location = Path(folder)
        # This file keeps both columns alive, as schemas never shrink.
        columns = {"x": pa.array([0], pa.int64()), "y": ["always"]}
        write(location, "k=0/always", columns)
        clock_ns = _apply(location, first, 1_000)
        inventory = take_inline(folder)
        for changes in rounds:
            clock_ns = _apply(location, changes, clock_ns)
            before = set(_keys(inventory.files))

            inventory = take_inline(folder, previous=as_previous(inventory))

            scratch = take_inline(folder)
            # Dictionaries may be in another order.
            assert encode_manifest(inventory.files) == encode_manifest(scratch.files)
            assert inventory.data_schema == scratch.data_schema
            assert inventory.added_count == len(set(_keys(inventory.files)) - before)
            assert inventory.removed_count == len(before - set(_keys(inventory.files)))
            assert inventory.footers_read == inventory.added_count


def _apply(location: Path, changes: list[Any], clock_ns: int) -> int:
    for what, key, name, values in changes:
        path = location / f"k={key}" / name
        if what == "remove":
            path.unlink(missing_ok=True)
            continue
        columns: dict[str, Any] = {"x": pa.array(values, pa.int32())}
        if name == "b":
            columns["y"] = [None if value is None else str(value) for value in values]
        clock_ns += 1
        touch(write(location, f"k={key}/{name}", columns), clock_ns)
    return clock_ns


def _keys(files: pa.Table) -> list[tuple[Any, ...]]:
    return list(
        zip(*(files[name].to_pylist() for name in ("path", "size_bytes", "mtime_ns")), strict=True)
    )


@st.composite
def inventories(draw: st.DrawFn, max_size: int = 30) -> pa.Table:
    paths = draw(
        st.sets(st.text(string.ascii_letters + "é/", min_size=1, max_size=4), max_size=max_size)
    )
    partition = {"d": pa.float64(), "s": pa.string(), "n": pa.decimal128(5, 2)}
    schema = inventory_schema(
        pa.schema([("x", pa.int32()), ("t", pa.string())]), pa.schema(list(partition.items()))
    )
    rows = [
        {
            "path": path,
            "size_bytes": draw(st.integers(0, 9)),
            "mtime_ns": 1,
            "row_count": 1,
            "bucket": draw(st.none() | st.integers(0, 3)),
            "hosts": [],
            "delete_count": 0,
            "delete_bytes": 0,
            "row_group_offsets": draw(st.lists(st.integers(4, 9), max_size=2)),
            "stats_see_nan": draw(st.booleans()),
            "grouped_columns": draw(st.none() | st.lists(st.sampled_from("xyz"), max_size=2)),
            "partition": {
                "d": draw(st.none() | st.floats(allow_nan=False)),
                "s": draw(st.none() | st.text(max_size=2)),
                "n": draw(st.none() | st.decimals(-9, 9, places=2)),
            },
            "stats": {
                "x": {"min": draw(st.none() | st.integers(0, 9)), "max": 9, "null_count": None},
                "t": {"min": None, "max": draw(st.none() | st.text(max_size=2)), "null_count": 0},
            },
        }
        for path in sorted(paths, key=str.encode)
    ]
    return pa.Table.from_pylist(rows, schema=schema)


@examples(25)
@given(inventories(), st.data())
def test_a_manifest_holds_its_rows_and_depends_on_nothing_else(
    files: pa.Table, data: st.DataObject
) -> None:
    encoded = encode_manifest(files)

    assert decode_manifest(encoded).equals(files)
    assert decode_manifest(encoded).schema == files.schema
    cut = data.draw(st.integers(0, files.num_rows))
    pieces = pa.concat_tables([files.slice(0, cut), files.slice(cut)])
    padded = pa.concat_tables([files, files]).combine_chunks().slice(files.num_rows)
    reread = decode_manifest(encoded)
    assert [encode_manifest(same) for same in (pieces, padded, reread)] == [encoded] * 3


@examples(65)
@given(TYPES)
def test_every_type_round_trips_through_text(type_: pa.DataType) -> None:
    assert arrow_type(spark_type(type_)) == type_


@examples(100)
@given(*[st.sampled_from(SCALARS).map(arrow_type)] * 2)
def test_widening_is_commutative_and_loses_nothing(one: pa.DataType, other: pa.DataType) -> None:
    wide = widen(one, other)

    assert wide == widen(other, one)
    if wide is not None:
        assert widen(wide, one) == wide
        assert widen(wide, other) == wide


@examples(35)
@given(st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=5))
def test_text_round_trips_through_folder_names(texts: list[str]) -> None:
    # Escapes every character that Hive escapes, and more: all ASCII that is not alphanumeric.
    def escape(text: str) -> str:
        return "".join(f"%{ord(c):02X}" if ord(c) < 128 and not c.isalnum() else c for c in text)

    paths = paths_column(*(f"s={escape(text)}/{number}" for number, text in enumerate(texts)))

    found = partition_columns(paths, pa.schema([("s", pa.string())]))

    assert found.values.field(0).to_pylist() == texts


@examples(35)
@given(st.lists(st.none() | st.integers(-(2**40), 2**40) | st.dates(), min_size=1, max_size=6))
def test_inferred_values_equal_those_that_were_written(values: list[int | date | None]) -> None:
    paths = paths_column(
        *(
            f"v={'__HIVE_DEFAULT_PARTITION__' if value is None else value}/{number}"
            for number, value in enumerate(values)
        )
    )

    found = partition_columns(paths).values.field(0)

    kinds = {type(value) for value in values if value is not None}
    expected: list[Any] = list(values)
    if len(kinds) == 2:
        expected = [None if value is None else str(value) for value in values]
    assert found.to_pylist() == expected
