"""The layout of a file says what readers other than Windrow's need to know of its footer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.files.shapes import (
    MAP_KEY_VALUE,
    Element,
    in_two_levels,
    renamed,
    reshape,
)
from tests.unit.inventory.files import take_inline
from windrow_core.files import layouts
from windrow_core.files.layouts import Layout


def layouts_in(folder: Path) -> list[Layout | None]:
    column = take_inline(str(folder)).files["layout"]
    return [Layout.of_text(text) for text in column.to_pylist()]


def write(path: Path, columns: dict[str, pa.Array], **options: Any) -> None:
    pq.write_table(pa.table(columns), path, **options)


def test_a_layout_has_names_as_the_file_spells_them_and_types_as_it_stores_them(
    tmp_path: Path,
) -> None:
    moment = pa.array([0], pa.timestamp("us", tz="UTC"))
    nested = pa.array([[{"n": 1}]], pa.list_(pa.struct([("n", pa.int8())])))
    write(tmp_path / "a", {"Id": pa.array([1]), "at": moment, "l": nested})
    write(tmp_path / "b", {"id": pa.array([1]), "at": moment}, use_deprecated_int96_timestamps=True)

    first, second = layouts_in(tmp_path)

    assert first is not None
    assert second is not None
    assert first.columns == {
        "Id": "int64",
        "at": "timestamp[us, tz=UTC]",
        "l": ["list", ["element", ["struct", ["n", "int8"]]]],
    }
    assert second.columns == {"id": "int64", "at": layouts.INT96}
    assert not (first.has_ids)
    assert not (first.is_old)
    assert not (first.has_duplicates)


def test_a_layout_tells_of_field_ids_and_of_old_calendars(tmp_path: Path) -> None:
    with_id = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "7"})])
    pq.write_table(pa.table([pa.array([1])], with_id), tmp_path / "a")
    for name, key, value in (
        ("b", "org.apache.spark.legacyDateTime", ""),
        ("c", "org.apache.spark.version", "2.4.8"),
        ("d", "org.apache.spark.version", "3.5.1"),
    ):
        schema = pa.schema([("id", pa.int64())], {key: value})
        pq.write_table(pa.table([pa.array([1])], schema), tmp_path / name)

    all_layouts = layouts_in(tmp_path)

    assert [one and one.has_ids for one in all_layouts] == [True, False, False, False]
    assert [one and one.is_old for one in all_layouts] == [False, True, True, False]


def test_a_layout_that_is_too_long_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a", {"id": pa.array([1])})
    monkeypatch.setattr(layouts, "MAX_LAYOUT_CHARACTERS", 10)

    assert layouts_in(tmp_path) == [None]


def test_a_layout_has_the_field_ids_of_each_column_at_all_depths(tmp_path: Path) -> None:
    def field(name: str, number: int | None, type_: pa.DataType) -> pa.Field:
        ids = None if number is None else {"PARQUET:field_id": str(number)}
        return pa.field(name, type_, metadata=ids)

    struct = pa.struct([field("x", 3, pa.int64()), field("y", None, pa.int64())])
    schema = pa.schema([field("a", 1, pa.int64()), field("s", 2, struct)])
    pq.write_table(pa.table([[1], [{"x": 1, "y": 2}]], schema), tmp_path / "f")

    (text,) = take_inline(str(tmp_path)).files["layout"].to_pylist()

    layout = Layout.of_text(text)
    assert layout is not None
    assert layout.has_ids
    assert layout.ids == {"a": [1, []], "s": [2, [[3, []], [None, []]]]}
    assert layouts.is_layout(text)
    for harmed in ('["1",[]]', "[1]", "[true,[]]", "[1,[[1]]]", "[1,[[3,[]]]]", "[1,[]],[1,[]]"):
        assert not layouts.is_layout(text.replace("[1,[]]", harmed))
    assert not layouts.is_layout(text.replace(",[null,[]]", ""))


def test_field_ids_have_the_shape_of_lists_and_maps(tmp_path: Path) -> None:
    types = (pa.list_(pa.int64()), pa.map_(pa.string(), pa.list_(pa.int64())))
    number = {"PARQUET:field_id": "1"}
    schema = pa.schema(
        [pa.field(f"c{at}", type_, metadata=number) for at, type_ in enumerate(types)]
    )
    pq.write_table(schema.empty_table(), tmp_path / "f")

    (text,) = take_inline(str(tmp_path)).files["layout"].to_pylist()

    assert layouts.is_layout(text)


def test_a_layout_has_the_shapes_of_lists_and_maps_as_the_file_has_them(tmp_path: Path) -> None:
    not_null = pa.list_(pa.field("element", pa.int64(), nullable=False))
    schema = pa.schema([("n", pa.int64()), ("l", not_null), ("m", pa.map_(pa.string(), not_null))])
    pq.write_table(schema.empty_table(), tmp_path / "f")

    def change(root: Element) -> None:
        _, two_levels, map_ = root.children
        in_two_levels()(two_levels)
        renamed("map", "k")(map_)
        map_.annotate(MAP_KEY_VALUE)

    reshape(tmp_path / "f", change)

    (text,) = take_inline(str(tmp_path)).files["layout"].to_pylist()

    layout = Layout.of_text(text)
    assert layout is not None
    element = ["element", "required", ""]
    value = ["value", "optional", "list", ["list", "repeated", "", element]]
    assert layout.shapes == {
        "l": ["l", "optional", "list", ["array", "repeated", ""]],
        "m": [
            "m",
            "optional",
            "map_key_value",
            ["map", "repeated", "", ["k", "required", ""], value],
        ],
    }
    assert not layout.miscounts
    assert layouts.is_layout(text)
    for harmed in ('["l"', '["l","twice",""', '["l","optional","set"', '["l","optional","list",1'):
        assert not layouts.is_layout(text.replace('["l","optional","list"', harmed))
