"""Spark's types that Parquet does not have are refused by name, or read as the declared type."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.servers import embedded
from tests.support.tables.published import read_in_full
from tests.unit.inventory.files import take_inline
from windrow_core.files.errors import UnreadableTypeError
from windrow_core.files.meanings import told_by_spark
from windrow_core.files.schema import FileSchema, file_schema, merge_schemas
from windrow_service.inventory.spark_types import arrow_type
from windrow_spark.writing.errors import UnfitRowsError

pytestmark = pytest.mark.spark

# SQL for a value, the name of its type, and the type that its bare values can be read as.
WRITTEN = {
    "variant": ("parse_json('{\"a\":1}')", "variant", None),
    "variants": ("named_struct('v', array(parse_json('1')))", "variant", None),
    "months": ("interval '1-2' year to month", "interval year to month", "int"),
    "time": ("interval '1 02:03:04.5' day to second", "interval day to second", "bigint"),
    "collated": ("'A' collate UTF8_LCASE", "string collate UTF8_LCASE", "string"),
    "collations": ("array('A' collate UNICODE_CI)", "string collate UNICODE_CI", "array<string>"),
}


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("types") / "t"
    columns = [f"{sql} AS {name}" for name, (sql, _, _) in WRITTEN.items()]
    spark.sql(f"SELECT {', '.join(columns)}").coalesce(1).write.parquet(str(folder))
    return folder


def test_a_type_that_its_layout_does_not_describe_is_refused_by_name(written: Path) -> None:
    (file,) = written.glob("*.parquet")
    metadata = pq.read_metadata(file)
    held = FileSchema(file_schema(metadata.schema, told_by_spark(metadata)), file.name)

    for field in held.schema:
        _, meaning, layout = WRITTEN[field.name]
        with pytest.raises(UnreadableTypeError) as raised:
            merge_schemas([FileSchema(pa.schema([field]), file.name)], [])
        assert (raised.value.column, raised.value.type) == (field.name, meaning)
        assert (f"with it as {layout}" if layout else "without it") in str(raised.value)
    with pytest.raises(UnreadableTypeError):
        take_inline(str(written))


def test_bare_values_are_read_as_declared_and_as_by_spark(
    spark: SparkSession, written: Path
) -> None:
    declared = {name: layout for name, (_, _, layout) in WRITTEN.items() if layout is not None}
    schema = pa.schema([(name, arrow_type(type_)) for name, type_ in declared.items()])
    ddl = ", ".join(f"{name} {type_}" for name, type_ in declared.items())

    ours = read_in_full(str(written), take_inline(str(written), columns=schema), schema)

    theirs = spark.read.schema(ddl).parquet(str(written))
    assert ours.to_pylist() == [row.asDict() for row in theirs.collect()]


def test_declaring_a_variant_does_not_help(written: Path) -> None:
    schema = pa.schema([("variant", arrow_type("struct<metadata:binary,value:binary>"))])

    with pytest.raises(UnreadableTypeError, match=r"'variant' .* is of type variant"):
        take_inline(str(written), columns=schema)


def test_rows_whose_files_a_refresh_would_refuse_are_refused_before_they_are_staged(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "t").mkdir()
    odd = {name: (sql, meaning) for name, (sql, meaning, _) in WRITTEN.items()}
    odd |= {
        "": ("1", "has 0 characters"),
        "x" * 1025: ("1", "has 1,025 characters"),
        "calendar": ("make_interval(1)", "interval"),
    }
    with embedded.client(tmp_path / "state", allowed_locations=[str(tmp_path)]) as client:
        client.register_table("t", str(tmp_path / "t"), partition_columns={"collated": "string"})
        columns = [f"{sql} AS `{name}`" for name, (sql, _) in odd.items()]

        with pytest.raises(UnfitRowsError) as raised:
            client.write(spark.sql(f"SELECT 1 AS plain, {', '.join(columns)}"), "t")

        for name, (_, meaning) in odd.items():
            assert f"'{name[:40]}'" in str(raised.value)
            assert meaning in str(raised.value)
        assert "plain" not in str(raised.value)
        assert list(client.writes("t")) == []
    assert list((tmp_path / "t").iterdir()) == []


def test_char_columns_are_written_with_their_padding(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    type_ = "c char(5), v varchar(5), s struct<c: char(4)>, p char(3)"
    spark.sql(f"CREATE TABLE chars ({type_}) USING parquet")
    try:
        spark.sql("INSERT INTO chars VALUES ('ab', 'cd', named_struct('c', 'q'), 'z')")
        rows = spark.table("chars")
        with embedded.client(tmp_path / "state", allowed_locations=[str(tmp_path)]) as client:
            client.register_table("t", str(tmp_path / "t"), partition_columns={"p": "string"})

            client.write(rows, "t")
            client.write(rows, "t")

            client.refresh("t", full=True)
            assert client.read(spark, "t").distinct().collect() == rows.collect()
            assert client.read(spark, "t", filter="c = 'ab   ' AND v = 'cd'").count() == 2
    finally:
        spark.sql("DROP TABLE chars")
