"""Types are written and read in Spark SQL's notation."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windrow_core.files.errors import UnknownTypeError
from windrow_core.files.partition_values import is_partition_type, partition_type
from windrow_core.files.types import spark_type
from windrow_service.inventory.spark_types import arrow_type

TYPES = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
    "decimal(38,0)": pa.decimal128(38, 0),
    "decimal(10,2)": pa.decimal128(10, 2),
    "array<int>": pa.list_(pa.int32()),
    "array<void>": pa.list_(pa.null()),
    "map<string,array<decimal(3,1)>>": pa.map_(pa.string(), pa.list_(pa.decimal128(3, 1))),
    "struct<>": pa.struct([]),
    "struct<NOT:boolean,case:int,void:void,Select:struct<from:date>>": pa.struct(
        [
            ("NOT", pa.bool_()),
            ("case", pa.int32()),
            ("void", pa.null()),
            ("Select", pa.struct([("from", pa.date32())])),
        ]
    ),
    "struct<a:int,b:struct<c:timestamp>>": pa.struct(
        [("a", pa.int32()), ("b", pa.struct([("c", pa.timestamp("us", tz="UTC"))]))]
    ),
    "struct<`a b`:int,`c``d`:string,`void;`:void>": pa.struct(
        [("a b", pa.int32()), ("c`d", pa.string()), ("void;", pa.null())]
    ),
}


@pytest.mark.parametrize(("text", "type_"), TYPES.items())
def test_types_round_trip(text: str, type_: pa.DataType) -> None:
    assert spark_type(type_) == text
    assert arrow_type(text) == type_


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        (" INTEGER ", pa.int32()),
        ("struct<not : int COMMENT 'is: void'>", pa.struct([("not", pa.int32())])),
        ("long", pa.int64()),
        ("short", pa.int16()),
        ("byte", pa.int8()),
        ("real", pa.float32()),
        ("varchar(10)", pa.string()),
        ("char(3)", pa.string()),
        ("decimal", pa.decimal128(10, 0)),
        ("dec(4)", pa.decimal128(4, 0)),
        ("numeric(4,1)", pa.decimal128(4, 1)),
        ("timestamp_ltz", pa.timestamp("us", tz="UTC")),
        (
            "STRUCT<A: INT NOT NULL COMMENT 'x; y', void: int>",
            pa.struct([("A", pa.int32()), ("void", pa.int32())]),
        ),
    ],
)
def test_other_spellings_are_understood(text: str, type_: pa.DataType) -> None:
    assert arrow_type(text) == type_


@pytest.mark.parametrize(
    "text",
    [
        "",
        "foo",
        "int garbage",
        "int) as (b",
        "int; drop",
        "array<foo>",
        "array<int",
        "array<int,int>",
        "map<string>",
        "map<void,int>",
        "struct<int>",
        "decimal(39,2)",
        "decimal(2,3)",
        "decimal(1,1,1)",
        "decimal(-1)",
        "interval",
        "variant",
        "time(6)",
        "int unsigned",
        "array<" * 3000,
    ],
)
def test_an_invalid_type_is_named(text: str) -> None:
    with pytest.raises(UnknownTypeError, match="is not a column type") as caught:
        arrow_type(text)

    assert caught.value.text == text
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "type_",
    [pa.time64("us"), pa.uint8(), pa.timestamp("ns"), pa.decimal256(40, 0), pa.duration("s")],
)
def test_a_type_that_spark_lacks_is_named(type_: pa.DataType) -> None:
    with pytest.raises(UnknownTypeError) as caught:
        spark_type(type_)

    assert caught.value.text == str(type_)


@pytest.mark.parametrize(
    "text",
    [
        "INTEGER",
        "long",
        "Decimal( 9, 2 )",
        "decimal",
        "dec(5)",
        "varchar(3)",
        "real",
        "timestamp_ltz",
    ],
)
def test_writers_and_the_coordinator_agree_on_types_of_partition_columns(text: str) -> None:
    assert partition_type(text) == arrow_type(text)


@pytest.mark.parametrize("text", TYPES)
def test_writers_know_every_type_that_folder_names_can_hold(text: str) -> None:
    type_ = arrow_type(text)

    assert partition_type(text) == (type_ if is_partition_type(type_) else None)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 65_536,
        "a " * 32_768,
        "array<" * 10_000,
        "array<" * 10_000 + "int" + ">" * 10_000,
        "struct<" + "a:int," * 10_000,
        "map<int," * 8_000,
        "'" + "\\'" * 32_000,
        "`" * 65_535,
        "struct<" + "`a" * 32_000,
        "decimal(" + "1," * 32_000,
        "decimal(" + "9" * 65_000 + ")",
    ],
    ids=lambda text: text[:9],
)
def test_a_long_text_that_is_no_type_is_refused_after_one_look(text: str) -> None:
    # Parsers that try several readings, or search again from each word, take minutes.
    with pytest.raises(UnknownTypeError):
        arrow_type(text)
