"""Tables of Avro: the types that Spark gives their schemas, and the rows that it reads."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

import windrow
from tests.support.files.avro_files import avro_file
from tests.support.laws import a_few, examples
from tests.support.servers import embedded
from windrow_calls.errors import RefreshFailedError
from windrow_core.files.types import spark_type
from windrow_service.avro.headers import schema_text
from windrow_service.avro.schemas import AvroSchemaError, avro_columns
from windrow_spark.arrow_types import arrow_schema

pytestmark = pytest.mark.usefixtures("interpreted")

PUBLISHED = Path(__file__).parents[1] / "fixtures" / "apache-avro"
# Spark has the class, but knows its short name only if a package that registers it is added.
SPARKS = "org.apache.spark.sql.avro.AvroFileFormat"
# These files hold no records, or are truncated; all others must be read.
REFUSED = {
    "avro-1237-bad-union-discriminant",
    "avro-1237-good",
    "avro-1238-truncated",
}
REFUSED_BY_SPARK = {"person-10.no-codec"}


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[windrow.Client]:
    allowed = [str(folder), str(PUBLISHED)]
    with embedded.client(folder / "state", allowed_locations=allowed) as client:
        yield client


def named(schema: pa.Schema) -> list[tuple[str, str]]:
    return [(field.name, spark_type(field.type)) for field in schema]


def rows(frame: DataFrame) -> list[str] | str:
    try:
        return sorted(map(repr, frame.collect()))
    except Exception:
        return "refused"


@pytest.mark.parametrize(
    "file", a_few(sorted(PUBLISHED.glob("*.avro")), 3), ids=lambda file: file.stem
)
def test_published_files_are_read_as_by_spark_or_refused(
    spark: SparkSession, client: windrow.Client, folder: Path, file: Path
) -> None:
    location = folder / file.stem
    location.mkdir()
    shutil.copy(file, location / file.name)
    client.register_table(file.stem, str(location), "avro")
    if file.stem in REFUSED:
        with pytest.raises(RefreshFailedError, match=file.name):
            client.refresh(file.stem)
        return
    client.refresh(file.stem)

    found = client.read(spark, file.stem)

    expected = spark.read.format(SPARKS).load(str(location))
    assert found.schema == expected.schema
    assert rows(found) == rows(expected)
    assert (rows(found) == "refused") is (file.stem in REFUSED_BY_SPARK)


def _schemas() -> st.SearchStrategy[Any]:
    logical = st.sampled_from(
        ["date", "timestamp-millis", "timestamp-micros", "local-timestamp-micros", "uuid", "no"]
    )
    plain = st.sampled_from(
        ["null", "boolean", "int", "long", "float", "double", "bytes", "string", "missing"]
    )
    annotated = st.builds(
        lambda kind, name: {"type": kind, "logicalType": name},
        st.sampled_from(["int", "long", "string"]),
        logical,
    )
    numbers = itertools.count()
    decimals = st.builds(
        lambda kind, size, precision, scale: {
            "type": kind,
            **({"name": f"f{next(numbers)}", "size": size} if kind == "fixed" else {}),
            "logicalType": "decimal",
            "precision": precision,
            "scale": scale,
        },
        st.sampled_from(["bytes", "fixed"]),
        st.integers(1, 20),
        st.integers(0, 40),
        st.integers(-1, 12),
    )
    enums = st.builds(
        lambda space: {"type": "enum", "name": f"{space}e{next(numbers)}", "symbols": ["A"]},
        st.sampled_from(["", "a.b."]),
    )

    def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(
            inner.map(lambda items: {"type": "array", "items": items}),
            inner.map(lambda values: {"type": "map", "values": values}),
            st.lists(inner, min_size=1, max_size=3),
            st.lists(inner, min_size=1, max_size=3).map(
                lambda types: {
                    "type": "record",
                    "name": f"r{next(numbers)}",
                    "namespace": "some.space",
                    "fields": [{"name": f"x{at}", "type": one} for at, one in enumerate(types)],
                }
            ),
        )

    return st.recursive(plain | annotated | decimals | enums, nested, max_leaves=6)


@examples(150, deadline=None)
@given(types=st.lists(_schemas(), min_size=1, max_size=4))
def test_any_schema_has_the_types_that_spark_gives_it_or_is_refused(
    spark: SparkSession, types: list[Any]
) -> None:
    fields = [{"name": f"c{at}", "type": one} for at, one in enumerate(types)]
    # A type may be used again by its name.
    if isinstance(types[0], dict) and "name" in types[0]:
        space = f"{types[0]['namespace']}." if "namespace" in types[0] else ""
        fields.append({"name": "again", "type": space + types[0]["name"]})
    text = json.dumps({"type": "record", "name": "top", "fields": fields})
    jvm: Any = spark.sparkContext._jvm
    expected: pa.Schema | None
    try:
        parsed = jvm.org.apache.avro.Schema.Parser().parse(text)
        told = jvm.org.apache.spark.sql.avro.SchemaConverters.toSqlType(parsed).dataType().json()
        expected = arrow_schema(StructType.fromJson(json.loads(told)))
    except Exception:
        expected = None

    try:
        found = avro_columns(text.encode())
    except AvroSchemaError:
        assert expected is None
        return
    assert expected is not None
    assert named(found) == named(expected)


# The type of a column in one file, and types that it may have in others of the same table.
KINDS: dict[str, list[tuple[Any, st.SearchStrategy[Any]]]] = {
    "n": [("int", st.integers(-5, 5)), ("long", st.integers(-(2**40), 2**40))],
    "f": [
        ("float", st.sampled_from([0.5, -0.0])),
        ("double", st.sampled_from([1.1, float("nan")])),
    ],
    "s": [("string", st.sampled_from(["", "x", "é"])), ("bytes", st.binary(max_size=3))],
    "d": [
        ({"type": "int", "logicalType": "date"}, st.integers(-150_000, 20_000)),
        ("int", st.integers(0, 9)),
    ],
    "t": [
        ({"type": "long", "logicalType": "timestamp-micros"}, st.integers(0, 2**50)),
        ({"type": "long", "logicalType": "timestamp-millis"}, st.integers(0, 2**40)),
        ("long", st.integers(0, 9)),
    ],
    "l": [
        ({"type": "array", "items": ["null", "int"]}, st.lists(st.none() | st.integers(0, 9))),
        ({"type": "array", "items": "long"}, st.lists(st.integers(0, 2**40))),
    ],
}


@st.composite
def files(draw: st.DrawFn) -> list[bytes]:
    found = []
    for number in range(draw(st.integers(1, 3))):
        names = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, unique=True))
        fields, values = [], {}
        for name in names:
            # Types seldom differ between files, as tables with such files are often refused.
            at = draw(st.sampled_from([0, 0, 0, 0, len(KINDS[name]) - 1])) if number else 0
            type_, of = KINDS[name][at]
            spelt = draw(st.sampled_from([name, name, name.upper()]))
            nullable = draw(st.booleans())
            fields.append({"name": spelt, "type": ["null", type_] if nullable else type_})
            values[spelt] = st.none() | of if nullable else of
        schema = {"type": "record", "name": "r", "fields": fields}
        found.append(avro_file(schema, draw(st.lists(st.fixed_dictionaries(values), max_size=3))))
    return found


_numbers = itertools.count()


@pytest.fixture(scope="module")
def answered() -> Iterator[list[bool]]:
    """For each table drawn, whether it was read."""
    answered: list[bool] = []
    yield answered
    # Refusals compare equal and prove nothing, so most tables must be read.
    assert sum(answered) > len(answered) / 2


@examples(25, deadline=None)
@given(contents=files())
def test_any_avro_has_the_rows_that_spark_reads_or_is_refused(
    spark: SparkSession,
    client: windrow.Client,
    folder: Path,
    answered: list[bool],
    contents: list[bytes],
) -> None:
    name = f"t{next(_numbers)}"
    location = folder / name
    for number, content in enumerate(contents):
        (location / f"day={number % 2}").mkdir(parents=True, exist_ok=True)
        (location / f"day={number % 2}" / f"{number}.avro").write_bytes(content)
    client.register_table(name, str(location), "avro")
    try:
        client.refresh(name)
    except RefreshFailedError:
        # Two files disagree.
        answered.append(False)
        return

    found = client.read(spark, name)

    data = [field for field in found.schema if field.name != "day"]
    expected = spark.read.format(SPARKS).schema(StructType(data)).load(str(location))
    cells = rows(found)
    assert cells == rows(expected)
    answered.append(cells != "refused")
    last = data[-1].name
    assert rows(found.select(last)) == rows(expected.select(last))
    shutil.rmtree(location)


MOMENT = dt.datetime.fromisoformat


def _logical(kind: str, name: str, **more: int) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def _record(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "q", "fields": [{"name": n, "type": t} for n, t in fields]}


# Types and values of one column in two files, the type of the table, and its values in it.
DIFFERING: dict[str, tuple[Any, Any, Any, Any, str, list[Any]]] = {
    "n": ("int", 7, ["null", "long"], 2**40, "bigint", [7, 2**40]),
    "d": ("int", 7, "double", 1.5, "double", [7.0, 1.5]),
    "f": (["null", "float"], None, "double", 1.1, "double", [None, 1.1]),
    "t": (
        _logical("long", "local-timestamp-millis"),
        1_001,
        _logical("long", "local-timestamp-micros"),
        1_001,
        "timestamp_ntz",
        [MOMENT("1970-01-01T00:00:01.001"), MOMENT("1970-01-01T00:00:00.001001")],
    ),
    "m": (
        _logical("bytes", "decimal", precision=5, scale=2),
        b"\x30\x39",
        _logical("bytes", "decimal", precision=9, scale=4),
        b"\x30\x39",
        "decimal(9,4)",
        [Decimal("123.4500"), Decimal("1.2345")],
    ),
    "s": ("string", "x", _logical("string", "uuid"), "y", "string", ["x", "y"]),
    "l": (
        {"type": "array", "items": ["null", "int"]},
        [1, None],
        {"type": "array", "items": "long"},
        [2**40],
        "array<bigint>",
        [[1, None], [2**40]],
    ),
    "q": (
        _record(("a", "int"), ("b", "string")),
        {"a": 1, "b": "x"},
        _record(("c", "int"), ("A", "long")),
        {"A": 2**40, "c": 3},
        "struct<a:bigint,b:string,c:int>",
        [Row(a=1, b="x", c=None), Row(a=2**40, b=None, c=3)],
    ),
}


def test_files_with_other_columns_have_their_values_in_the_types_that_fit_all(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "differing"
    location.mkdir()
    for number in range(2):
        values = {name: each[2 * number + 1] for name, each in DIFFERING.items()}
        fields = [{"name": name, "type": each[2 * number]} for name, each in DIFFERING.items()]
        fields.append({"name": f"only_{number}", "type": "int"})
        schema = {"type": "record", "name": "r", "fields": fields}
        file = avro_file(schema, [{**values, f"only_{number}": number}])
        (location / f"{number}.avro").write_bytes(file)
    client.register_table("differing", str(location), "avro")
    client.refresh("differing")

    found = client.read(spark, "differing")

    types = [(name, each[4]) for name, each in DIFFERING.items()]
    both = [("only_0", "int"), ("only_1", "int")]
    assert [(field.name, field.dataType.simpleString()) for field in found.schema] == types + both
    expected = spark.read.format(SPARKS).schema(found.schema).load(str(location))
    assert rows(found) == rows(expected)
    first, second = found.sort(F.col("only_1").isNotNull()).collect()
    for name, each in DIFFERING.items():
        assert [first[name], second[name]] == each[5], name
    assert (first.only_0, first.only_1, second.only_0, second.only_1) == (0, None, None, 1)


def test_without_a_schema_spark_takes_the_columns_of_any_one_file(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "chosen"
    location.mkdir()
    for name in ("x", "y"):
        schema = {"type": "record", "name": "r", "fields": [{"name": name, "type": "int"}]}
        (location / f"{name}.avro").write_bytes(avro_file(schema, [{name: 1}]))
    client.register_table("chosen", str(location), "avro")
    client.refresh("chosen")

    found = client.read(spark, "chosen")
    chosen = spark.read.format(SPARKS).load(str(location))

    assert found.columns == ["x", "y"]
    assert chosen.columns in (["x"], ["y"])
    assert rows(found.select(*chosen.columns)) == rows(chosen)


def test_a_schema_is_found_in_every_published_header() -> None:
    assert all(json.loads(schema_text(file.read_bytes())) for file in PUBLISHED.glob("*.avro"))
