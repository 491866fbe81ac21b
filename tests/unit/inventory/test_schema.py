"""Columns of files become columns of a table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.inventory.files import write
from windrow_core.files.errors import DuplicateColumnError, SchemaConflictError, UnreadableTypeError
from windrow_core.files.meanings import told_by_spark
from windrow_core.files.schema import (
    FileSchema,
    check_declared,
    file_schema,
    merge_schemas,
    widen,
)
from windrow_core.files.types import spark_type
from windrow_service.inventory.spark_types import arrow_type


def columns(**types: str) -> pa.Schema:
    return pa.schema([(name, arrow_type(type_)) for name, type_ in types.items()])


def as_text(schema: pa.Schema) -> dict[str, str]:
    return {field.name: spark_type(field.type) for field in schema}


@pytest.mark.parametrize(
    ("held", "type_"),
    [
        (pa.uint8(), "smallint"),
        (pa.uint16(), "int"),
        (pa.uint32(), "bigint"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.int8(), "tinyint"),
        (pa.float16(), "float"),
        (pa.large_string(), "string"),
        (pa.string_view(), "string"),
        (pa.large_binary(), "binary"),
        (pa.binary(2), "binary"),
        (pa.date64(), "date"),
        (pa.duration("s"), "bigint"),
        (pa.timestamp("ns"), "timestamp_ntz"),
        (pa.timestamp("s", "Europe/Paris"), "timestamp"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.decimal128(5, 2), "decimal(5,2)"),
        (pa.null(), "void"),
        (pa.large_list(pa.uint8()), "array<smallint>"),
        (pa.list_(pa.int32(), 2), "array<int>"),
        (pa.map_(pa.string(), pa.uint16()), "map<string,int>"),
        (pa.struct([("a", pa.date64()), ("b", pa.large_string())]), "struct<a:date,b:string>"),
    ],
    ids=str,
)
def test_the_types_of_files_become_those_of_spark(
    tmp_path: Path, held: pa.DataType, type_: str
) -> None:
    path = write(tmp_path, "f", pa.table({"c": pa.nulls(1, held)}))

    assert as_text(file_schema(pq.read_metadata(path).schema)) == {"c": type_}


def test_int96_is_a_timestamp_at_every_level(tmp_path: Path) -> None:
    moment = pa.array([0], pa.timestamp("us"))
    nested = pa.StructArray.from_arrays([pa.array([1]), moment], names=["i", "t"])
    path = write(
        tmp_path,
        "f",
        {"i": [1], "t": moment, "n": nested},
        use_deprecated_int96_timestamps=True,
        store_schema=False,
    )

    assert as_text(file_schema(pq.read_metadata(path).schema)) == {
        "i": "bigint",
        "t": "timestamp",
        "n": "struct<i:bigint,t:timestamp>",
    }


@pytest.mark.parametrize(
    ("one", "other", "wide"),
    [
        ("int", "int", "int"),
        ("tinyint", "smallint", "smallint"),
        ("int", "bigint", "bigint"),
        ("int", "double", "double"),
        ("tinyint", "double", "double"),
        ("float", "double", "double"),
        ("int", "float", "double"),
        ("int", "decimal(5,2)", "decimal(12,2)"),
        ("bigint", "decimal(5,2)", "decimal(22,2)"),
        ("decimal(5,2)", "decimal(6,4)", "decimal(7,4)"),
        ("date", "timestamp_ntz", "timestamp_ntz"),
        ("void", "string", "string"),
        ("void", "array<int>", "array<int>"),
        ("array<int>", "array<bigint>", "array<bigint>"),
        ("map<int,date>", "map<bigint,date>", "map<bigint,date>"),
        ("struct<a:int,b:int>", "struct<c:int,A:bigint>", "struct<a:bigint,b:int,c:int>"),
        ("bigint", "double", None),
        ("bigint", "float", None),
        ("int", "string", None),
        ("boolean", "int", None),
        ("date", "timestamp", None),
        ("timestamp", "timestamp_ntz", None),
        ("decimal(5,2)", "double", None),
        ("decimal(38,0)", "decimal(38,2)", None),
        ("decimal(38,20)", "bigint", None),
        ("array<int>", "array<string>", None),
        ("array<int>", "int", None),
        ("array<int>", "map<int,int>", None),
        ("struct<a:int>", "struct<a:string>", None),
        ("string", "binary", None),
    ],
)
def test_types_widen_as_far_as_sparks_reader_reads(one: str, other: str, wide: str | None) -> None:
    expected = None if wide is None else arrow_type(wide)

    assert widen(arrow_type(one), arrow_type(other)) == expected
    # The first type decides the order of a struct's fields, so those are not symmetric.
    if wide is None or "," not in wide or "struct" not in wide:
        assert widen(arrow_type(other), arrow_type(one)) == expected


def test_columns_are_united_in_order_of_first_appearance() -> None:
    merged = merge_schemas(
        [
            FileSchema(columns(b="int", a="void"), "1"),
            FileSchema(columns(c="date", A="string", b="bigint"), "2"),
        ],
        [],
    )

    assert as_text(merged) == {"b": "bigint", "a": "string", "c": "date"}


def test_a_column_that_is_also_a_partition_column_is_left_out() -> None:
    merged = merge_schemas([FileSchema(columns(a="int", DS="string"), "1")], ["ds"])

    assert as_text(merged) == {"a": "int"}


def test_no_files_have_no_columns() -> None:
    assert merge_schemas([], []) == pa.schema([])


def test_types_that_conflict_are_named_with_a_file_for_each() -> None:
    sources = [
        FileSchema(columns(x="int"), "f1"),
        FileSchema(columns(x="bigint"), "f2"),
        FileSchema(columns(x="double"), "f3"),
    ]

    with pytest.raises(SchemaConflictError, match="bigint in file 'f2' and double in file 'f3'"):
        merge_schemas(sources, [])


def test_a_conflict_of_three_is_found_in_any_order() -> None:
    sources = [
        FileSchema(columns(x="decimal(38,0)"), "a"),
        FileSchema(columns(x="decimal(3,3)"), "b"),
        FileSchema(columns(x="int"), "c"),
    ]

    for order in permutations(sources):
        with pytest.raises(SchemaConflictError, match="column 'x'"):
            merge_schemas(order, [])


def test_a_type_that_spark_lacks_is_named_unless_it_was_left_undeclared() -> None:
    held = FileSchema(pa.schema([("t", pa.time64("us")), ("x", pa.int32())]), "f")

    check_declared(columns(x="int"), [held])
    with pytest.raises(UnreadableTypeError, match=r"'t' of file 'f' is of type time64\[us\]"):
        merge_schemas([held], [])


def test_names_that_differ_by_case_only_are_refused_within_one_file() -> None:
    held = FileSchema(columns(Id="int", id="int"), "f")

    with pytest.raises(DuplicateColumnError, match="'Id' and 'id' of file 'f'"):
        merge_schemas([held], [])
    with pytest.raises(DuplicateColumnError):
        check_declared(columns(id="int"), [held])


@pytest.mark.parametrize(
    ("declared", "held"), [("bigint", "int"), ("double", "float"), ("timestamp_ntz", "date")]
)
def test_files_may_hold_types_that_widen_to_the_declared_one(declared: str, held: str) -> None:
    check_declared(columns(X=declared, y="int"), [FileSchema(columns(x=held), "f")])


@pytest.mark.parametrize(("declared", "held"), [("int", "bigint"), ("string", "int")])
def test_files_that_cannot_be_read_as_declared_are_named(declared: str, held: str) -> None:
    message = f"is {held} in file 'f' but was declared as {declared}"

    with pytest.raises(SchemaConflictError, match=message):
        check_declared(columns(x=declared), [FileSchema(columns(x=held), "f")])


def test_fields_of_a_struct_that_differ_by_case_only_are_refused_as_by_spark() -> None:
    inner = pa.struct([("Id", pa.int32()), ("id", pa.int32())])
    held = FileSchema(pa.schema([("x", pa.map_(pa.string(), pa.list_(inner)))]), "f")

    with pytest.raises(DuplicateColumnError, match="'Id' and 'id' of file 'f'"):
        merge_schemas([held], [])


def spark_says(type_: object, metadata: dict[str, object] | None = None) -> dict[str, str]:
    """Return the types that a footer reveals in which Spark gave column `c` this type."""
    field = {"name": "c", "type": type_, "nullable": True, "metadata": metadata or {}}
    told = json.dumps({"type": "struct", "fields": [field]})
    return dict(told_by_spark(_Footer({b"org.apache.spark.sql.parquet.row.metadata": told})))


@dataclass
class _Footer:
    metadata: dict[bytes, str] | None


@pytest.mark.parametrize(
    ("type_", "metadata", "meaning"),
    [
        ("variant", {}, "variant"),
        ("interval day to second", {}, "interval day to second"),
        ("geometry(SRID:0)", {}, "geometry(SRID:0)"),
        ("a type of a later Spark", {}, "a type of a later Spark"),
        ({"type": "array", "elementType": "variant", "containsNull": True}, {}, "variant"),
        ({"type": "map", "keyType": "string", "valueType": "interval year"}, {}, "interval year"),
        ({"type": "udt", "class": "a.B", "sqlType": "binary"}, {}, "a.B (user-defined)"),
        ("string", {"__COLLATIONS": {"c": "icu.UNICODE_CI"}}, "string collate UNICODE_CI"),
        ("string", {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}, "char(5)"),
    ],
)
def test_a_column_with_a_spark_type_beyond_its_layout_is_named(
    type_: object, metadata: dict[str, object], meaning: str
) -> None:
    assert spark_says(type_, metadata) == {"c": meaning}


@pytest.mark.parametrize(
    "type_",
    [
        "string", "binary", "boolean", "byte", "short", "integer", "long", "float", "double",
        "date", "timestamp", "timestamp_ntz", "void", "decimal(10,2)",
        {"type": "array", "elementType": "long", "containsNull": True},
    ],
)  # fmt: skip
def test_types_fully_described_by_their_layout_have_no_other_meaning(type_: object) -> None:
    assert spark_says(type_) == {}
    assert spark_says("string", {"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"}) == {}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"fields": 1}', '{"fields": [{"name": "c"}]}'])
def test_an_unreadable_schema_of_spark_is_ignored(text: str) -> None:
    key = b"org.apache.spark.sql.parquet.row.metadata"

    assert told_by_spark(_Footer({key: text})) == {}
    assert told_by_spark(_Footer(None)) == {}
