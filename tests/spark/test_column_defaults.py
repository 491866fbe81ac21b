"""Rows of files that lack a column have the default that Spark's catalog gives the column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

import windrow
from tests.support.queries.accelerations import accelerate
from tests.support.servers import embedded
from windrow_calls.errors import ProblemError
from windrow_spark.acceleration import comparing
from windrow_spark.acceleration.requests import Columns
from windrow_spark.catalog.entries import NotConstantError, SparkCatalog

pytestmark = pytest.mark.usefixtures("interpreted")

# Each type with its default, and a condition that only this default meets.
DEFAULTS = {
    "string": (r"'ä \'\\ \n'", r"= 'ä \'\\ \n'"),
    "int": ("-7", "< 0"),
    "bigint": ("9007199254740993", "= 9007199254740993"),
    "double": ("1.5", "> 1"),
    "float": ("0.1", "IS NOT NULL"),
    "boolean": ("true", ""),
    "date": ("DATE'1999-12-31'", "= DATE'1999-12-31'"),
    "decimal(20,3)": ("12345678901234567.125", "> 5"),
    "decimal(9,2)": ("-1.25", "< 0"),
    "timestamp_ntz": ("TIMESTAMP_NTZ'2020-02-03 04:05:06.789012'", "< TIMESTAMP_NTZ'2021-01-01'"),
    "binary": ("X'00FF'", "= X'00FF'"),
    "smallint": ("NULL", "IS NULL"),
}
# Spark does not read its own tables with such defaults, or such columns.
_NOT_READ = {("parquet", "binary"), ("parquet", "decimal(20,3)"), ("csv", "binary")}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[windrow.Client]:
    folder = tmp_path_factory.mktemp("defaults")
    with embedded.client(folder / "state", allowed_locations=[str(folder.parent)]) as client:
        yield client


@pytest.fixture(scope="module")
def database(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("warehouse")
    spark.sql(f"CREATE DATABASE defaults LOCATION '{folder}'")
    yield "defaults"
    spark.sql("DROP DATABASE defaults CASCADE")


@pytest.mark.parametrize(
    "format_", ["parquet", pytest.param("orc", marks=pytest.mark.nightly), "csv", "json"]
)
def test_every_condition_finds_the_rows_that_spark_finds(
    spark: SparkSession, client: windrow.Client, database: str, format_: str
) -> None:
    name = f"{database}.of_{format_}"
    kinds = [
        (at, *one) for at, one in enumerate(DEFAULTS.items()) if (format_, one[0]) not in _NOT_READ
    ]
    spark.sql(f"CREATE TABLE {name} (id INT) USING {format_}")
    spark.sql(f"INSERT INTO {name} VALUES (1), (2)")
    added = ", ".join(f"c{at} {type_} DEFAULT {value}" for at, type_, (value, _) in kinds)
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({added})")
    spark.sql(f"INSERT INTO {name} (id) VALUES (3)")
    nulls = ", ".join("NULL" for _ in kinds)
    spark.sql(f"INSERT INTO {name} VALUES (4, {nulls})")

    (done,) = client.import_tables(spark, name)
    assert done.outcome == "created", done.reason
    tests = [test for at, _, (_, test) in kinds for test in (f"c{at} {test}", f"c{at} IS NULL")]
    flags = [f"coalesce({test}, false) t{at}" for at, test in enumerate(tests)]
    whole = sorted(map(str, spark.table(name).collect()))
    wanted = spark.table(name).selectExpr("id", *flags).collect()
    # Spark's own reader reads the others in one way only.
    if format_ in ("csv", "json"):
        tests = tests[:2]
    assert sorted(map(str, client.read(spark, name).collect())) == whole
    for at, test in enumerate(tests):
        found = client.read(spark, name).where(test).select("id").collect()
        ids = sorted(row.id for row in found)
        assert ids == sorted(row.id for row in wanted if row[f"t{at}"]), test
    with accelerate(spark, client, name) as acceleration:
        assert sorted(map(str, spark.table(name).collect())) == whole
        found = spark.table(name).where(tests[0]).select("id").collect()
        assert sorted(row.id for row in found) == sorted(row.id for row in wanted if row.t0)
        assert acceleration.reasons() == {}


def test_a_default_that_only_the_registration_has_leaves_a_path_to_spark(
    spark: SparkSession, client: windrow.Client, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = str(tmp_path_factory.mktemp("data") / "t")
    spark.range(3).write.parquet(folder)
    columns = [{"name": "id", "type": "bigint"}, {"name": "c", "type": "int", "default": "5"}]
    client.register_table("defaults.path", folder, columns=columns)
    client.refresh("defaults.path")

    with accelerate(spark, client, "defaults.path") as acceleration:
        rows = spark.read.schema("id BIGINT, c INT").parquet(folder).collect()
        assert {row.c for row in rows} == {None}
        (reason,) = acceleration.reasons().values()
        assert "without its column 'c', it is null in Spark, and 5" in reason


def test_filters_of_a_plan_keep_files_that_lack_a_column_with_a_default(
    spark: SparkSession, client: windrow.Client, database: str
) -> None:
    name = f"{database}.filtered"
    spark.sql(f"CREATE TABLE {name} (id INT) USING parquet")
    spark.sql(f"INSERT INTO {name} VALUES (1)")
    client.import_tables(spark, name)
    # The first snapshot and its statistics know nothing of the column.
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (status STRING DEFAULT 'new')")
    spark.sql(f"INSERT INTO {name} VALUES (2, 'old')")
    client.import_tables(spark, name)

    def ids(filter: str) -> list[int]:
        return sorted(row.id for row in client.read(spark, name, filter=filter).collect())

    assert ids("status = 'new'") == [1]
    assert ids("status != 'new'") == [2]
    assert ids("status IS NULL") == []
    assert ids("status IN ('new', 'old')") == [1, 2]
    assert ids("status LIKE 'ne%'") == [1]


def test_defaults_that_are_not_kept_refuse_the_table_by_name(
    spark: SparkSession, client: windrow.Client, database: str
) -> None:
    for at, default in enumerate(("TIMESTAMP'2020-01-01'", "array(1)")):
        type_ = "timestamp" if at == 0 else "array<int>"
        spark.sql(f"CREATE TABLE {database}.r{at} (id INT) USING parquet")
        spark.sql(f"ALTER TABLE {database}.r{at} ADD COLUMNS (c {type_} DEFAULT {default})")
        (done,) = client.import_tables(spark, f"{database}.r{at}")
        assert done.outcome == "skipped"
        assert "its column 'c' has the default" in done.reason


@pytest.mark.parametrize(
    "type_",
    [
        "STRING COLLATE UTF8_LCASE",
        "array<STRING COLLATE UNICODE_CI>",
        "map<STRING, STRING COLLATE UTF8_LCASE>",
        "struct<a: int, b: struct<c: STRING COLLATE UTF8_LCASE>>",
    ],
)
def test_a_column_with_a_collation_refuses_its_table_by_name(
    spark: SparkSession, client: windrow.Client, database: str, type_: str
) -> None:
    spark.sql(f"DROP TABLE IF EXISTS {database}.collated")
    spark.sql(f"CREATE TABLE {database}.collated (id INT, c {type_}) USING parquet")

    (done,) = client.import_tables(spark, f"{database}.collated")

    assert done.outcome == "skipped"
    assert "its column 'c' has a collation" in done.reason


@pytest.mark.parametrize(
    ("column", "format_", "reason"),
    [
        ({"name": "c", "type": "int", "default": '"x"'}, "parquet", "not a value of type int"),
        ({"name": "c", "type": "int", "default": "{"}, "parquet", "not a value of type int"),
        ({"name": "c", "type": "string", "default": '"x"'}, "text", "only tables of parquet"),
    ],
)
def test_a_default_that_does_not_fit_is_refused(
    client: windrow.Client, tmp_path: Path, column: dict[str, str], format_: str, reason: str
) -> None:
    with pytest.raises(ProblemError, match=reason):
        client.register_table("bad", str(tmp_path), format_, columns=[column])


@pytest.mark.parametrize(
    "text",
    [
        "reflect('java.lang.Math', 'abs', -5)",
        "(SELECT max(id) FROM range(5))",
        "1 AS INT), (2",
        "id",
        "nosuch(1)",
        "rand()",
    ],
)
def test_only_constants_of_a_catalog_are_evaluated(spark: SparkSession, text: str) -> None:
    catalog = SparkCatalog(spark)
    assert catalog.value_of("1 + 1", "int") == 2
    with pytest.raises(NotConstantError):
        catalog.value_of(text, "string")


def test_columns_without_defaults_need_no_catalog(
    spark: SparkSession, client: windrow.Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = folder / "plain"
    spark.range(3).write.parquet(str(location))
    client.register_table("defaults.plain", str(location))
    client.refresh("defaults.plain")
    plan = client.plan("defaults.plain").info
    monkeypatch.delattr(comparing, "SparkCatalog")

    schema = spark.read.parquet(str(location)).schema
    request = Columns(
        path=str(location),
        in_catalog=False,
        format="parquet",
        options={},
        target="",
        data=schema.json(),
        partition_schema=StructType().json(),
        has_buckets=False,
    )
    comparing.check_defaults(spark, plan, request)
