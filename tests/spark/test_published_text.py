"""Published files of text and Avro are read as by Spark, whatever is wrong with them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import windrow
from tests.support.laws import a_few

pytestmark = pytest.mark.usefixtures("interpreted")

FIXTURES = Path(__file__).parents[1] / "fixtures" / "apache-impala"

CASES: tuple[tuple[str, Mapping[str, str], tuple[str, ...]], ...] = (
    ("csv", {}, ("strings_with_quotes.csv",)),
    ("csv", {"header": "true"}, ("table_with_header.csv", "table_with_header_2.csv")),
    ("csv", {"header": "true"}, ("table_with_header_2.gz",)),
    ("csv", {}, ("table_missing_columns.csv", "table_no_newline.csv")),
    ("csv", {"mode": "DROPMALFORMED"}, ("table_missing_columns.csv",)),
    ("csv", {"mode": "FAILFAST"}, ("table_missing_columns.csv",)),
    ("csv", {"escape": "\\"}, ("text-comma-backslash-newline.txt",)),
    ("csv", {"sep": "$", "lineSep": "|", "escape": "#"}, ("text-dollar-hash-pipe.txt",)),
    ("csv", {"sep": "þ", "encoding": "ISO-8859-1"}, ("text-thorn-ecirc-newline.txt",)),
    ("csv", {}, ("overflow.txt", "date_errors.txt")),
    ("csv", {}, ("invalid_binary_data.txt",)),
    ("text", {}, ("overflow.txt", "invalid_binary_data.txt", "table_with_header_2.gz")),
    ("text", {"wholetext": "true"}, ("overflow.txt", "strings_with_quotes.csv")),
    ("json", {}, ("complex.json", "overflow.json")),
    ("json", {}, ("multiline.json",)),
    ("json", {"multiLine": "true"}, ("multiline.json",)),
    ("json", {}, ("malformed.json",)),
    ("json", {"mode": "DROPMALFORMED"}, ("malformed.json",)),
    ("json", {"mode": "FAILFAST"}, ("malformed.json",)),
    ("json", {"allowNumericLeadingZeros": "true"}, ("chars-formats.json", "overflow.json")),
    ("avro", {}, ("avro_decimal_tbl.avro",)),
    ("avro", {}, ("chars-formats.avro",)),
    ("avro", {}, ("date_tbl.avro",)),
)
# Formats whose columns need neither be declared nor inferred.
KNOWING = ("avro", "text")
# Spark ships this reader, but finds it only by this name.
AVRO = "org.apache.spark.sql.avro.AvroFileFormat"
# For files where inference would defeat the purpose, or refuses names that differ only in case.
COLUMNS = {
    "malformed.json": {"bool_col": "boolean", "int_col": "int", "float_col": "float"},
    "overflow.txt": {"a": "tinyint", "b": "smallint", "c": "int", "d": "bigint", "e": "float"},
    "table_missing_columns.csv": {"a": "string", "b": "string", "c": "int", "d": "int"},
}


@pytest.mark.parametrize(("form", "options", "files"), a_few(CASES, 3))
def test_published_text_and_avro_are_read_as_by_spark(
    spark: SparkSession,
    client: windrow.Client,
    folder: Path,
    form: str,
    options: Mapping[str, str],
    files: tuple[str, ...],
) -> None:
    name = f"t{len(list(folder.iterdir()))}"
    location = folder / name
    location.mkdir()
    for file in files:
        shutil.copy(FIXTURES / file, location)
    columns = COLUMNS.get(files[0]) if form not in KNOWING else None
    if columns is None and form not in KNOWING:
        columns = client.infer_columns(spark, str(location), form, format_options=options)
    client.register_table(f"p.{name}", str(location), form, columns=columns, format_options=options)
    client.refresh(f"p.{name}")

    found = client.read(spark, f"p.{name}")

    reader = spark.read.format(AVRO if form == "avro" else form)
    expected = reader.options(**options).schema(found.schema).load(str(location))
    some = found.columns[-1]
    cells = rows(found)
    assert cells == rows(expected)
    fails = any("fails" in row for row in cells)
    assert fails is (options.get("mode") == "FAILFAST")
    assert rows(found.select(some)) == rows(expected.select(some))
    assert rows(found.groupBy().count()) == rows(expected.groupBy().count())


def rows(frame: DataFrame) -> list[str]:
    """Return the rows of a query, or the kind of error that it ends with."""
    try:
        return sorted(map(repr, frame.collect()))
    except (PySparkException, Py4JError) as error:
        # A failure of ours is of the class that Spark raises, too.
        (kind, *_) = (
            one for one in type(error).__mro__ if one.__module__.startswith(("pyspark.", "py4j."))
        )
        return [f"fails: {kind.__name__}"]
