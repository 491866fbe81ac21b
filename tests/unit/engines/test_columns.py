"""Columns as Iceberg's: ids that stay, and names under which files have them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import parse_mapping_from_json
from pyiceberg.types import NestedField

from tests.support.laws import examples
from windrow_core.files.file_fields import COLUMN_ID, NAMES_IN_FILES
from windrow_core.files.types import TIMESTAMP
from windrow_service.engines.columns import (
    ENTRIES,
    InnerNames,
    TableColumns,
    UnfitColumnError,
    joined_trees,
    mapped_fields,
    name_mapping,
    path_text,
)

NO_NAMES = InnerNames({})

TYPES = st.recursive(
    st.sampled_from([pa.int8(), pa.int64(), pa.string(), TIMESTAMP, pa.decimal128(38, 9)]),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(lambda type_: pa.map_(pa.string(), type_)),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda types: pa.struct([(f"f{at}", type_) for at, type_ in enumerate(types)])
        ),
    ),
    max_leaves=5,
)
COLUMNS = st.dictionaries(st.text(min_size=1, max_size=5).map(str.lower), TYPES, max_size=6)


@examples(50)
@given(COLUMNS)
def test_ids_depend_on_names_alone(columns: dict[str, pa.DataType]) -> None:
    one = TableColumns.of(pa.schema(list(columns.items())), pa.schema([]))
    others = list(reversed(columns.items()))[:3]
    other = TableColumns.of(
        pa.schema(
            [(name.upper(), type_) for name, type_ in others if name.upper().lower() == name]
        ),
        pa.schema([("new", pa.int32())]),
    )

    schema = Schema.model_validate(one.as_schema())
    ids = [field.field_id for field in schema.fields]
    assert len(set(ids)) == len(ids)
    assert schema.highest_field_id == one.last_id
    assert all(one.ids[name] == id_ for name, id_ in other.ids.items() if name != "new")


def test_the_mapping_has_all_spellings_and_columns_that_the_table_lacks() -> None:
    nested = pa.list_(pa.struct([("x", pa.int64())]))
    columns = TableColumns.of(
        pa.schema([("Id", pa.int64()), ("n", nested)]), pa.schema([("ds", pa.date32())])
    )

    mapping = name_mapping(columns.fields, {"id": ["ID", "id"], "other": ["Other"]}, {}, NO_NAMES)

    by_names = {tuple(one.names): one for one in parse_mapping_from_json(json.dumps(mapping)).root}
    assert set(by_names) == {("ID", "Id", "id"), ("n",), ("ds",), ("Other",)}
    assert by_names["ID", "Id", "id"].field_id == columns.ids["id"]
    assert by_names["Other",].field_id not in columns.ids.values()
    (element,) = by_names["n",].fields
    assert element.names == ["element"]
    assert [one.names for one in element.fields] == [["x"]]


def test_types_that_iceberg_lacks_are_refused_by_name() -> None:
    with pytest.raises(UnfitColumnError, match=r"column 'a\.element' is of type null"):
        TableColumns.of(pa.schema([("a", pa.list_(pa.null()))]), pa.schema([]))
    with pytest.raises(UnfitColumnError, match="partition column 'p' is of type double"):
        TableColumns.of(pa.schema([]), pa.schema([("p", pa.float64())]))


def test_small_integers_are_ints() -> None:
    columns = TableColumns.of(pa.schema([("a", pa.int8())]), pa.schema([("b", pa.int16())]))

    fields = [NestedField.model_validate(field) for field in columns.fields]
    assert [str(field.field_type) for field in fields] == ["int", "int"]


def mapped(name: str, number: int | None, type_: pa.DataType | None = None) -> pa.Field:
    ids = {} if number is None else {COLUMN_ID: str(number)}
    names = {NAMES_IN_FILES: json.dumps([f"col-{name}"])}
    return pa.field(name, type_ or pa.int64(), metadata={**names, **ids})


def test_columns_of_deltas_column_mapping_have_the_ids_of_the_log_at_all_depths() -> None:
    struct = pa.struct([mapped("x", 3)])
    data = pa.schema([mapped("a", 1), mapped("l", 2, pa.list_(struct))])

    columns = TableColumns.of(data, pa.schema([("p", pa.int32())]))

    assert columns.names == {1: "col-a", 2: "col-l", 3: "col-x"}
    assert columns.ids["a"] == 1
    (_, of_list) = mapped_fields(columns.fields, columns.names, {}, {}, NO_NAMES)
    (element,) = of_list["fields"]
    assert (of_list["field-id"], of_list["names"]) == (2, ["col-l"])
    assert element["names"] == ["element"]
    assert element["fields"] == [{"field-id": 3, "names": ["col-x"]}]
    assert len(columns.all_ids) == 5


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([mapped("a", None)], "refresh the table in full"),
        ([mapped("a", 1), mapped("b", 1)], "has the id 1"),
        ([mapped("a", 1, pa.struct([mapped("x", 1)]))], "has the id 1"),
        ([mapped("a", 0)], "has the id 0"),
        ([mapped("a", 2**31 - 1)], "has the id 2147483647"),
        ([mapped("a", 1), mapped("A", 2)], "a name in files that another one has"),
    ],
)
def test_mappings_in_which_a_column_is_not_one_alone_are_refused(
    fields: list[pa.Field], words: str
) -> None:
    with pytest.raises(UnfitColumnError, match=words):
        TableColumns.of(pa.schema(fields), pa.schema([]))


def test_mappings_have_what_lies_in_columns_that_the_table_lacks() -> None:
    within = joined_trees([{"o": {"x": {}}}, {"o": {"x": {"element": {}}, "y": {}}}])
    data = pa.schema([("id", pa.int64())])
    plain = TableColumns.of(data, pa.schema([]))
    with_ids = TableColumns.of(pa.schema([mapped("id", 1)]), pa.schema([]))
    spellings = {"o": ["O"], "id": ["id"]}

    for mapping in (
        name_mapping(plain.fields, spellings, within, NO_NAMES),
        mapped_fields(
            with_ids.fields, with_ids.names, {"o": ["O"], "col-id": ["col-id"]}, within, NO_NAMES
        ),
    ):
        assert parse_mapping_from_json(json.dumps(mapping))
        (x, y) = mapping[0]["fields"]
        assert (mapping[0]["names"], x["names"], y["names"]) == (["O"], ["x"], ["y"])
        assert x["fields"][0]["names"] == ["element"]
        assert len({mapping[0]["field-id"], x["field-id"], y["field-id"]}) == 3
        assert len(mapping) == 2


def test_the_mapping_has_the_names_that_files_use_in_lists_and_maps() -> None:
    fields = [("l", pa.list_(pa.int64())), ("m", pa.map_(pa.string(), pa.list_(pa.int64())))]
    columns = TableColumns.of(pa.schema(fields), pa.schema([]))
    by_path = {
        path_text(("l", "element")): ["array", "list"],
        path_text(("m", ENTRIES)): ["key_value", "map"],
        path_text(("m", "value", "element")): ["bag"],
    }

    of_lists, of_map = name_mapping(columns.fields, {}, {}, InnerNames(by_path))
    _, for_duckdb = name_mapping(columns.fields, {}, {}, InnerNames(by_path, with_groups=True))

    (element,) = of_lists["fields"]
    assert element["names"] == ["array", "element", "list"]
    key, value = of_map["fields"]
    assert (key["names"], value["names"]) == (["key"], ["value"])
    assert value["fields"][0]["names"] == ["bag", "element"]
    assert for_duckdb["fields"] == [key, value, {"names": ["map"], "fields": [key, value]}]
    assert InnerNames(by_path).has_groups
    assert not NO_NAMES.has_groups
