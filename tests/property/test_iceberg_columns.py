"""Iceberg's field ids decide which column of a file is which, however names came about."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable, Table
from pyiceberg.types import (
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from tests.support.laws import examples
from tests.support.plans.group_reads import read
from tests.support.tables.iceberg import Here, catalog_in
from windrow_service.iceberg.paths import TableFolders
from windrow_service.iceberg.reading import read_table

# Names that writers keep, that they replace (`unit_x20price`), and what they replace them by.
NAMES = ["a", "unit price", "unit_x20price", "e-mail", "2nd", "_2nd", "a.b", "größe", "日本", "_"]
# PyIceberg refuses two columns whose names become the same.
_WRITTEN = {"unit price": "unit_x20price", "2nd": "_2nd"}
_WIDER = {IntegerType: LongType, FloatType: DoubleType}


def _written(name: str) -> str:
    return _WRITTEN.get(name, name)


def _names(most: int) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(NAMES), min_size=1, max_size=most, unique_by=_written)


def _type(draw: Callable[[Any], Any], ids: Iterator[int], depth: int) -> IcebergType:
    kinds = ["int", "float", "string"]
    kind = draw(st.sampled_from(kinds + (["struct", "list", "map"] if depth < 2 else [])))
    if kind == "struct":
        names = draw(_names(2))
        return StructType(*(_field(draw, ids, name, depth + 1) for name in names))
    if kind == "list":
        return ListType(next(ids), _type(draw, ids, depth + 1), element_required=False)
    if kind == "map":
        key, value = next(ids), next(ids)
        return MapType(key, StringType(), value, _type(draw, ids, depth + 1), value_required=False)
    return {"int": IntegerType(), "float": FloatType(), "string": StringType()}[kind]


def _field(draw: Callable[[Any], Any], ids: Iterator[int], name: str, depth: int) -> NestedField:
    return NestedField(next(ids), name, _type(draw, ids, depth), required=False)


def _structs(
    path: tuple[str, ...], type_: IcebergType
) -> Iterator[tuple[tuple[str, ...], tuple[NestedField, ...]]]:
    """Yield the fields of structs at all depths, with the paths that schema updates take."""
    if isinstance(type_, StructType):
        yield path, type_.fields
        for field in type_.fields:
            yield from _structs((*path, field.name), field.field_type)
    elif isinstance(type_, ListType):
        yield from _structs((*path, "element"), type_.element_type)
    elif isinstance(type_, MapType):
        yield from _structs((*path, "value"), type_.value_type)


def _evolve(draw: Callable[[Any], Any], table: Table, step: str) -> None:
    path, fields = draw(st.sampled_from(list(_structs((), table.schema().as_struct()))))
    one = draw(st.sampled_from(fields))
    names = {_written(field.name) for field in fields}
    other = draw(st.sampled_from([name for name in NAMES if _written(name) not in names]))
    target = (*path, one.name)
    with table.update_schema() as update:
        if step == "add":
            update.add_column((*path, other), _type(draw, count(1), 1))
        elif step == "rename":
            update.rename_column(target, other)
        elif step == "drop" and len(fields) > 1:
            update.delete_column(target)
        elif step == "widen" and type(one.field_type) in _WIDER:
            update.update_column(target, _WIDER[type(one.field_type)]())
        elif step == "move":
            update.move_first(target)
    if step == "drop" and len(fields) > 1 and draw(st.booleans()):
        # The same name, but another column.
        with table.update_schema() as update:
            update.add_column(target, one.field_type)


def _value(type_: pa.DataType, numbers: Iterator[int]) -> Any:
    number = next(numbers)
    if number % 5 == 0:
        return None
    if pt.is_struct(type_):
        return {field.name: _value(field.type, numbers) for field in type_}
    if pt.is_list(type_) or pt.is_large_list(type_):
        return [_value(type_.value_type, numbers) for _ in range(number % 3)]
    if pt.is_map(type_):
        return [(f"k{at}", _value(type_.item_type, numbers)) for at in range(number % 3)]
    if pt.is_string(type_) or pt.is_large_string(type_):
        return f"text {number}"
    return number


def _append(table: Table, numbers: Iterator[int]) -> None:
    schema = table.schema().as_arrow()
    columns = [
        pa.array([_value(field.type, numbers) for _ in range(2)], field.type) for field in schema
    ]
    table.append(pa.table(columns, schema=schema))


def _without_history(path: str) -> str:
    """Write metadata that holds only the current schema, as upgrades and expiry leave it."""
    stated = json.loads(Path(path).read_text())
    current = stated["current-schema-id"]
    schema = next(one for one in stated["schemas"] if one["schema-id"] == current)
    schema["schema-id"] = 0
    stated |= {"schemas": [schema], "current-schema-id": 0}
    if "schema" in stated:
        stated["schema"] = schema
    for snapshot in stated["snapshots"]:
        snapshot.pop("schema-id", None)
    written = path.replace(".metadata.json", "-short.metadata.json")
    Path(written).write_text(json.dumps(stated))
    return written


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _plain(rows: Sequence[dict[str, Any]]) -> list[str]:
    return sorted(repr(row) for row in rows)


@examples(40, deadline=None)
@given(st.data(), st.sampled_from(["1", "2"]))
def test_files_of_all_times_have_the_rows_that_pyiceberg_reads(
    data: st.DataObject, version: str
) -> None:
    ids, numbers = count(1), count(1)
    names = data.draw(_names(3))
    schema = Schema(*(_field(data.draw, ids, name, 0) for name in names))
    steps = st.sampled_from(["append", "add", "rename", "drop", "widen", "move"])
    with _folder() as folder:
        table = catalog_in(folder).create_table(
            "ns.t", schema, properties={"format-version": version}
        )
        _append(table, numbers)
        for step in data.draw(st.lists(steps, max_size=6)):
            if step == "append":
                _append(table, numbers)
            else:
                _evolve(data.draw, table, step)
        _append(table, numbers)
        metadata = table.metadata_location.removeprefix("file://")
        if data.draw(st.booleans()):
            metadata = _without_history(metadata)
        home = table.location().removeprefix("file://")

        found = read_table(TableFolders(home, ()), {"metadata": metadata}, None, None, Here())
        rows = read(Path(home), found.files["path"].to_pylist(), found.data_schema)

        wanted = StaticTable.from_metadata(metadata).scan().to_arrow()
        assert _plain(rows) == _plain(wanted.to_pylist())
