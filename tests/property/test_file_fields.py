"""Columns are found by their ids, or by their names in files, however a table has evolved."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import examples
from tests.support.plans.group_reads import read
from windrow_core.files.file_fields import DEFAULT, FIELD_ID, NAMES_IN_FILES
from windrow_tables.executor.errors import TaskReadError, UnreadableFileError

NAMES = ["a", "b", "c", "A"]


@dataclass(frozen=True)
class Field:
    """A field of the model: a struct if it has `within`, and a list of such values if `is_list`."""

    id: int
    name: str
    physical: str
    within: tuple[Field, ...] = ()
    is_list: bool = False
    default: int | None = None

    def arrow(self, mode: str, *, in_file: bool) -> pa.Field:
        children = [child.arrow(mode, in_file=in_file) for child in self.within]
        type_ = pa.struct(children) if children else pa.int64()
        if self.is_list:
            # Ids of elements play no part, as a list has just one.
            type_ = pa.list_(pa.field("element", type_, metadata={FIELD_ID: str(1000 + self.id)}))
        metadata = {}
        if mode == "id":
            metadata[FIELD_ID] = str(self.id)
        elif not in_file:
            metadata[NAMES_IN_FILES] = json.dumps([self.physical])
        if not in_file and self.default is not None:
            metadata[DEFAULT] = str(self.default)
        name = self.physical if in_file and mode == "name" else self.name
        return pa.field(name, type_, metadata=metadata)

    def value(self, row: Any, mode: str, *, told: Any) -> Any:
        """Project a value, kept by ids, to this field and those within it."""
        if row is None:
            return None
        if self.is_list:
            return [replace(self, is_list=False).value(one, mode, told=told) for one in row]
        if not self.within:
            return row
        return {told(child): child.of(row, mode, told=told) for child in self.within}

    def of(self, row: dict[int, Any], mode: str, *, told: Any) -> Any:
        if self.id not in row:
            return self.default
        return self.value(row[self.id], mode, told=told)


@dataclass
class Table:
    """A table that evolves; `written` are the schema and rows of each file."""

    fields: tuple[Field, ...] = ()
    next_id: int = 1
    written: list[tuple[tuple[Field, ...], list[dict[int, Any]]]] = field(default_factory=list)

    def new(self, data: st.DataObject, taken: list[str], depth: int = 0) -> Field:
        at, self.next_id = self.next_id, self.next_id + 1
        name = data.draw(st.sampled_from([name for name in NAMES if name not in taken]))
        within: list[Field] = []
        if depth < 2 and data.draw(st.booleans()):
            for _ in range(data.draw(st.integers(1, 2))):
                within.append(self.new(data, [one.name for one in within], depth + 1))
        is_list = bool(within) and data.draw(st.booleans())
        default = data.draw(st.sampled_from([None, None, 7])) if not within else None
        return Field(at, name, f"p{at}", tuple(within), is_list, default)

    def evolved(
        self, data: st.DataObject, fields: tuple[Field, ...], depth: int = 0
    ) -> tuple[Field, ...]:
        step = data.draw(st.sampled_from(["add", "drop", "replace", "rename", "reorder", "within"]))
        names = [one.name for one in fields]
        at = data.draw(st.integers(0, len(fields) - 1))
        one = fields[at]
        if step == "add" and len(fields) < len(NAMES):
            return (*fields, self.new(data, names, depth))
        if step == "drop" and len(fields) > 1:
            return (*fields[:at], *fields[at + 1 :])
        if step == "replace":
            # Only its id, and its name in files, distinguish it from the field before.
            number, self.next_id = self.next_id, self.next_id + 1
            other = replace(one, id=number, physical=f"p{number}")
            return (*fields[:at], other, *fields[at + 1 :])
        if step == "rename" and len(fields) < len(NAMES):
            name = data.draw(st.sampled_from([name for name in NAMES if name not in names]))
            return (*fields[:at], replace(one, name=name), *fields[at + 1 :])
        if step == "within" and one.within:
            changed = replace(one, within=self.evolved(data, one.within, depth + 1))
            return (*fields[:at], changed, *fields[at + 1 :])
        return tuple(data.draw(st.permutations(fields)))


def rows_of(data: st.DataObject, fields: tuple[Field, ...]) -> dict[int, Any]:
    def value(one: Field) -> Any:
        if one.is_list:
            plain = replace(one, is_list=False)
            return [value(plain) for _ in range(data.draw(st.integers(0, 2)))]
        if one.within:
            return rows_of(data, one.within)
        return data.draw(st.integers(-5, 5))

    return {
        one.id: data.draw(st.none()) if data.draw(st.booleans()) else value(one) for one in fields
    }


@examples(150)
@given(st.data(), st.sampled_from(["id", "name"]))
def test_files_of_all_times_give_the_current_columns(data: st.DataObject, mode: str) -> None:
    table = Table()
    table.fields = (table.new(data, []),)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(data.draw(st.integers(1, 4))):
            for _ in range(data.draw(st.integers(0, 3))):
                table.fields = table.evolved(data, table.fields)
            rows = [rows_of(data, table.fields) for _ in range(data.draw(st.integers(1, 3)))]
            table.written.append((table.fields, rows))
        for at, (fields, rows) in enumerate(table.written):
            schema = pa.schema([one.arrow(mode, in_file=True) for one in fields])

            def physical(one: Field) -> str:
                return one.physical if mode == "name" else one.name

            held = [
                {physical(one): one.of(row, mode, told=physical) for one in fields} for row in rows
            ]
            pq.write_table(pa.Table.from_pylist(held, schema), folder / f"f{at}")
        today = pa.schema([one.arrow(mode, in_file=False) for one in table.fields])

        found = read(folder, [f"f{at}" for at in range(len(table.written))], today)

    wanted = [
        {one.name: one.of(row, mode, told=lambda child: child.name) for one in table.fields}
        for _, rows in table.written
        for row in rows
    ]
    assert found == wanted


def mapped(name: str, **metadata: str) -> pa.Schema:
    keys = {"id": FIELD_ID, "names": NAMES_IN_FILES, "default": DEFAULT}
    told = {keys[key]: value for key, value in metadata.items()}
    return pa.schema([pa.field(name, pa.int64(), metadata=told)])


def test_files_without_ids_are_read_by_the_names_of_the_log_or_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"old": [1]}), tmp_path / "f")

    assert read(tmp_path, ["f"], mapped("new", id="1", names='["older", "old"]')) == [{"new": 1}]
    with pytest.raises(UnreadableFileError, match="no ids to find column 'new' by"):
        read(tmp_path, ["f"], mapped("new", id="1"))


def test_two_columns_with_the_wanted_id_or_name_are_refused(tmp_path: Path) -> None:
    twice = pa.schema([pa.field(name, pa.int64(), metadata={FIELD_ID: "1"}) for name in "ab"])
    pq.write_table(pa.table({"a": [1], "b": [2]}, schema=twice), tmp_path / "f")

    for how in ({"id": "1"}, {"names": '["a", "b"]'}):
        with pytest.raises(TaskReadError):
            read(tmp_path, ["f"], mapped("a", **how))


DEFAULTS = [
    (pa.int32(), "34", 34),
    (pa.string(), '"x"', "x"),
    (pa.bool_(), "true", True),
    (pa.float64(), "1.5", 1.5),
    (pa.binary(), '"00ff"', b"\x00\xff"),
    (pa.date32(), '"2017-11-16"', "2017-11-16"),
    (pa.decimal128(9, 2), '"14.20"', "14.20"),
    (pa.timestamp("us"), '"2017-11-16T22:31:08.123456"', "2017-11-16 22:31:08.123456"),
    (
        pa.timestamp("us", "UTC"),
        '"2017-11-16T22:31:08.123456+00:00"',
        "2017-11-16 22:31:08.123456+00:00",
    ),
]


@pytest.mark.parametrize(("type_", "default", "value"), DEFAULTS, ids=lambda one: str(one))
def test_rows_of_files_without_a_column_have_its_default(
    tmp_path: Path, type_: pa.DataType, default: str, value: Any
) -> None:
    held = pa.schema([pa.field("k", pa.int64(), metadata={FIELD_ID: "1"})])
    pq.write_table(pa.table({"k": [1, 2]}, schema=held), tmp_path / "f")
    wanted = pa.schema([pa.field("d", type_, metadata={FIELD_ID: "2", DEFAULT: default})])

    for schema in (pa.schema([*held, *wanted]), wanted):
        found = [row["d"] for row in read(tmp_path, ["f"], schema)]
        assert [str(one) for one in found] == [str(value)] * 2


def within(id_: int, kind: str) -> pa.Schema:
    field = pa.field("a", pa.int64(), metadata={FIELD_ID: str(id_)})
    struct = pa.struct([field])
    type_ = {"struct": struct, "list": pa.list_(struct), "map": pa.map_(pa.int64(), struct)}[kind]
    return pa.schema([pa.field("s", type_, metadata={FIELD_ID: "1"})])


@pytest.mark.parametrize(
    ("kind", "held", "wanted"),
    [
        ("struct", {"a": 5}, {"a": None}),
        ("list", [{"a": 5}], [{"a": None}]),
        ("map", [(1, {"a": 5})], [(1, {"a": None})]),
    ],
)
def test_a_field_that_replaced_another_of_its_name_and_type_has_none_of_its_values(
    tmp_path: Path, kind: str, held: Any, wanted: Any
) -> None:
    pq.write_table(pa.Table.from_pylist([{"s": held}], within(2, kind)), tmp_path / "f")

    assert read(tmp_path, ["f"], within(3, kind)) == [{"s": wanted}]
