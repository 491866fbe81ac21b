"""Tables of CSV, JSON lines and text: read by Spark's own reader, from the planned files."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import windrow
from tests.support.queries import text_formats
from windrow.spark import recent_scans
from windrow_calls.errors import InvalidArgumentError
from windrow_spark.failures import plain_errors
from windrow_tables.errors import OnlySparkReadsError

pytestmark = pytest.mark.usefixtures("interpreted")

OPTIONS = {"header": True, "sep": ";"}
COLUMNS = {"id": "bigint", "name": "string", "amount": "double"}


@pytest.fixture(scope="module")
def sales(client: windrow.Client, folder: Path) -> Path:
    """The table `sales.lines`: two days of CSV, one of them compressed."""
    location = folder / "lines"
    for day in ("2026-11-01", "2026-11-02"):
        (location / f"ds={day}").mkdir(parents=True)
    (location / "ds=2026-11-01" / "a.csv").write_text(
        'id;name;amount\n1;x;2.5\n2;"y;z";\n3\n4;a;b;c\n'
    )
    with gzip.open(location / "ds=2026-11-02" / "b.csv.gz", "wt") as lines:
        lines.write("id;name;amount\n7;q;1\n")
    client.register_table(
        "sales.lines", str(location), "csv", columns=COLUMNS, format_options=OPTIONS
    )
    client.refresh("sales.lines")
    return location


def by_spark(spark: SparkSession, location: Path) -> DataFrame:
    schema = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
    return spark.read.schema(schema).options(header="true", sep=";").csv(str(location))


def rows(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


def test_queries_of_csv_give_sparks_rows_whichever_columns_they_use(
    spark: SparkSession, client: windrow.Client, sales: Path
) -> None:
    found, expected = client.read(spark, "sales.lines"), by_spark(spark, sales)

    assert found.schema == expected.schema
    for columns in (["*"], ["amount"], ["ds", "id"], ["name"]):
        assert rows(found.select(*columns)) == rows(expected.select(*columns))
    assert rows(client.read(spark, "sales.lines", columns=["AMOUNT", "id"])) == rows(
        expected.select("amount", "id")
    )
    assert found.count() == expected.count()
    assert client.read(spark, "sales.lines", limit=2).count() == 2


def test_only_the_files_that_a_query_needs_are_planned_and_counted(
    spark: SparkSession, client: windrow.Client, sales: Path
) -> None:
    client.create_view(spark, "sales.lines", "lines")
    windrow.register(spark, client)
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW more USING windrow OPTIONS (table 'sales.lines')")

    for view in ("lines", "more"):
        found = spark.sql(f"SELECT name FROM {view} WHERE ds = '2026-11-02' AND id > 3").collect()
        assert [row.name for row in found] == ["q"]
        (scan, *_) = recent_scans("sales.lines")
        assert (scan.plan.summary.files_planned, scan.read.files, scan.read.rows) == (1, 1, 1)


def test_how_csv_is_read_is_explained(
    spark: SparkSession, client: windrow.Client, sales: Path
) -> None:
    said = client.explain_read(spark, "sales.lines", filter="ds = '2026-11-01'")

    assert (said.native_files, said.grouped_files, said.groups) == (1, 0, 0)
    assert "as only it reads them correctly" in said.reason


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (lambda c, s: c.read(s, "sales.lines", filter="id = 1"), r"use \.where"),
        (lambda c, s: c.read(s, "sales.lines", reader="grouped"), "leave out `reader"),
        (lambda c, s: c.read_plan(s, c.plan("sales.lines")), "read it with `client.read`"),
        (
            lambda c, s: s.read.format("windrow").option("columns", "id").load("sales.lines"),
            "whole",
        ),
    ],
    ids=["filter", "groups", "plan", "columns"],
)
def test_reads_of_csv_that_spark_cannot_do_are_refused_with_the_reason(
    spark: SparkSession,
    client: windrow.Client,
    sales: Path,
    read: Callable[[windrow.Client, SparkSession], DataFrame],
    said: str,
) -> None:
    windrow.register(spark, client)

    with pytest.raises((OnlySparkReadsError, InvalidArgumentError), match=said), plain_errors():
        read(client, spark)


def test_types_that_csv_cannot_hold_are_refused_as_by_spark(
    spark: SparkSession, client: windrow.Client, sales: Path
) -> None:
    client.register_table("sales.nested", str(sales), "csv", columns={"a": "array<int>"})
    client.refresh("sales.nested")

    with pytest.raises(AnalysisException, match="doesn't support the column `a`"):
        client.read(spark, "sales.nested")


def test_columns_that_spark_infers_are_those_of_the_files(
    spark: SparkSession, client: windrow.Client, sales: Path, folder: Path
) -> None:
    found = client.infer_columns(spark, str(sales), "csv", OPTIONS)
    assert found == {"id": "int", "name": "string", "amount": "string"}
    (folder / "json").mkdir()
    (folder / "json" / "a").write_text('{"a": 1, "b": {"c d": [1.5]}}\n')
    found = client.infer_columns(spark, str(folder / "json"), "json")
    assert found == {"a": "bigint", "b": "struct<`c d`:array<double>>"}
    with pytest.raises(InvalidArgumentError, match="columns of text are not inferred"):
        client.infer_columns(spark, str(folder / "json"), "text")


def test_a_file_that_changed_since_the_plan_is_named(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "moving"
    location.mkdir()
    (location / "a.txt").write_text("one\n")
    client.register_table("sales.moving", str(location), "text")
    client.refresh("sales.moving")
    frame = client.read(spark, "sales.moving")
    assert [row.value for row in frame.collect()] == ["one"]

    (location / "a.txt").write_text("two\n")
    os.utime(location / "a.txt", (0, 0))

    with pytest.raises(Exception, match=r"a\.txt' has changed since the plan was made"):
        frame.collect()


def test_an_empty_table_has_no_rows(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    (folder / "none").mkdir()
    client.register_table("sales.none", str(folder / "none"), "json", columns={"a": "int"})
    client.refresh("sales.none")

    frame = client.read(spark, "sales.none")

    assert (frame.collect(), frame.count()) == ([], 0)


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("cut.gz", gzip.compress(bytes(range(256)) * 400)[:-200], {}),
        ("plain.gz", b"a\nb\n", {}),
        ("long.txt", b"x" * 100_000 + b"\n", {"maxCharsPerColumn": 9_999, "mode": "FAILFAST"}),
        ("open.txt", b'"' + b"x\n" * 50_000, {"maxCharsPerColumn": 9_999, "multiLine": True}),
    ],
)
def test_a_file_that_spark_cannot_read_is_named(
    spark: SparkSession,
    client: windrow.Client,
    folder: Path,
    name: str,
    content: bytes,
    options: dict[str, str | bool | int],
) -> None:
    table = name.replace(".", "-")
    (folder / table).mkdir()
    (folder / table / name).write_bytes(content)
    client.register_table(
        table, str(folder / table), "csv", columns={"a": "string"}, format_options=options
    )
    client.refresh(table)

    with pytest.raises(Exception, match=name.replace(".", r"\.")):
        client.read(spark, table).collect()


def test_files_of_other_formats_are_read_as_text_as_by_spark(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    location = folder / "strangers"
    location.mkdir()
    pq.write_table(pa.table({"a": ["x", "y\n"] * 9}), location / "a.parquet")
    (location / "b.csv").write_bytes("naïve;1\n".encode("utf-16"))
    client.register_table("sales.strangers", str(location), "csv", columns={"a": "string"})
    client.refresh("sales.strangers")

    found = client.read(spark, "sales.strangers")

    assert rows(found) == rows(spark.read.schema("a string").csv(str(location)))


def test_every_release_of_spark_reads_these_formats_but_avro_only_since_4_0(
    spark: SparkSession,
    client: windrow.Client,
    folder: Path,
    also_on_older_sparks: list[dict[str, Any]],
) -> None:
    assert text_formats.results(spark, client, folder) == text_formats.EXPECTED
    for older in also_on_older_sparks:
        found = dict(older["formats"])
        if older["version"].startswith("3."):
            assert "has no reader of avro" in found.pop("avro")
            assert "use Spark 4.0 or newer" in older["formats"]["avro"]
        assert found == {name: text_formats.EXPECTED[name] for name in found}
