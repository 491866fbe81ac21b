"""Tables of Spark's catalog, imported and read, have the rows of `spark.table`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.spark.metastore_tables import differences
from windrow_calls.errors import InvalidArgumentError, RefreshFailedError
from windrow_jobs.sync import refresh_on_executors
from windrow_spark.catalog.entries import CatalogError, SparkCatalog
from windrow_spark.catalog.importing import import_tables

pytestmark = pytest.mark.usefixtures("interpreted")

OUT = "(day='2026-02-01', Kind='out', amount=1.5)"
ODD = ("plain", "a b", "a/b=c", "100%", "%41", "ä'\"", "{x}:*?")


@pytest.fixture(scope="module")
def shop(spark: SparkSession, folder: Path) -> Iterator[str]:
    """A database of this session's own catalog."""
    spark.sql(f"CREATE DATABASE shop LOCATION '{folder}/shop'")
    yield "shop"
    spark.sql("DROP DATABASE shop CASCADE")


def imported(client: windrow.Client, spark: SparkSession, *tables: str) -> dict[str, str]:
    """Import tables, and return what was done with each, or why nothing was."""
    done = client.import_tables(spark, *tables)
    return {one.name: one.reason or ", ".join(one.changes) or one.outcome for one in done}


def test_partitions_are_those_of_the_catalog_wherever_they_lie(
    spark: SparkSession, client: windrow.Client, shop: str, folder: Path
) -> None:
    spark.sql(
        "CREATE TABLE shop.sales (id BIGINT, Name STRING, day DATE, Kind STRING, amount DECIMAL(6,2))"
        f" USING parquet PARTITIONED BY (day, Kind, amount) LOCATION '{folder}/sales'"
    )
    kinds = [*ODD, None]
    rows = [(at, f"n{at}", kind) for at, kind in enumerate(kinds)]
    spark.createDataFrame(rows, "id BIGINT, Name STRING, Kind STRING").selectExpr(
        "id",
        "Name",
        "IF(id % 3 = 2, NULL, DATE'2026-01-01') day",
        "Kind",
        "CAST(id / 4 AS DECIMAL(6,2))",
    ).write.insertInto("shop.sales")
    spark.sql(f"ALTER TABLE shop.sales ADD PARTITION {OUT} LOCATION '{folder}/elsewhere/a b'")
    spark.sql("INSERT INTO shop.sales VALUES (100, 'out', DATE'2026-02-01', 'out', 1.50)")
    assert imported(client, spark, "shop.sales") == {"shop.sales": "created"}

    assert differences(spark, client, "shop.sales") == []
    assert client.table("shop.sales").partition_count == len(kinds) + 1
    assert client.read(spark, "shop.sales").where("Kind = 'out'").count() == 1
    assert imported(client, spark, "shop.*") == {"shop.sales": "unchanged"}

    # The folder of a partition that is dropped stays, as the table is external.
    spark.sql("ALTER TABLE shop.sales DROP PARTITION (day='2026-01-01', Kind='a b', amount=0.25)")
    dropped = next((folder / "sales").glob("*/Kind=a b/*"))
    (folder / "moved").mkdir()
    plain = next((folder / "sales").glob("*/Kind=plain/*"))
    plain.rename(folder / "moved/plain")
    spark.sql(
        "ALTER TABLE shop.sales PARTITION (day='2026-01-01', Kind='plain', amount=0.0) "
        f"SET LOCATION '{folder}/moved/plain'"
    )
    said = imported(client, spark, "shop.sales")["shop.sales"]
    assert "1 partition removed, 1 partition moved" in said
    (same,) = client.import_tables(spark, "shop.sales", trust_partitions=True)
    assert same.outcome == "unchanged"
    assert list(dropped.glob("*.parquet"))
    assert differences(spark, client, "shop.sales") == []

    # A partition that moved keeps its values, so only a full look at the catalog finds it.
    spark.sql(f"ALTER TABLE shop.sales PARTITION {OUT} SET LOCATION '{folder}/empty'")
    (same,) = client.import_tables(spark, "shop.sales", trust_partitions=True)
    assert same.outcome == "unchanged"
    spark.sql("ALTER TABLE shop.sales ADD PARTITION (day='2026-03-01', Kind='a%b', amount=2)")
    (more,) = client.import_tables(spark, "shop.sales", trust_partitions=True)
    assert more.changes[:2] == ("1 partition added", "1 partition moved")
    assert differences(spark, client, "shop.sales") == []

    spark.sql("ALTER TABLE shop.sales ADD COLUMNS (extra INT)")
    spark.sql("INSERT INTO shop.sales VALUES (7, 'new', 9, NULL, 'new', 2)")
    assert "columns" in imported(client, spark, "shop.sales")["shop.sales"]
    assert differences(spark, client, "shop.sales") == []


def test_formats_options_and_buckets_come_with_a_table(
    spark: SparkSession, client: windrow.Client, shop: str
) -> None:
    rows = "SELECT id, concat(';', id) name, CAST(id % 2 AS INT) p FROM range(20)"
    for name, how in {
        "orc": "USING orc PARTITIONED BY (p)",
        "csv": "USING csv OPTIONS (header 'true', sep ';', compression 'gzip')",
        "json": "USING json PARTITIONED BY (p)",
        "buckets": "USING parquet CLUSTERED BY (id) SORTED BY (id) INTO 4 BUCKETS",
        "flat": "USING parquet OPTIONS (mergeSchema 'true')",
    }.items():
        spark.sql(f"CREATE TABLE shop.f_{name} {how} AS {rows}")
    spark.sql(f"CREATE VIEW shop.f_view AS {rows}")
    spark.sql("CREATE TABLE shop.f_char (a CHAR(3)) USING parquet")
    spark.sql("CREATE TABLE shop.f_glob (a INT) USING parquet OPTIONS (pathGlobFilter '*.x')")

    done = {one.name: one for one in client.import_tables(spark, "SHOP.f_*")}
    said = {name: one.reason or one.outcome for name, one in done.items()}

    tables = [name for name, outcome in said.items() if outcome == "created"]
    assert len(tables) == 5
    assert "it is a view" in said["shop.f_view"]
    assert "char(3), whose values Spark pads" in said["shop.f_char"]
    assert "pathGlobFilter" in said["shop.f_glob"]
    assert [one.outcome for one in done.values() if one.reason] == ["skipped"] * 3
    found = {name: differences(spark, client, name) for name in tables}
    assert [name for name, unlike in found.items() if unlike] == []
    bucketed = client.table("shop.f_buckets").definition
    assert bucketed.bucket_spec is not None
    assert (bucketed.bucket_spec.columns, bucketed.bucket_spec.count) == (["id"], 4)
    assert [column.name for column in bucketed.sort_columns] == ["id"]
    assert client.table("shop.f_csv").definition.format_options == {"header": "true", "sep": ";"}


def test_other_registrations_and_user_settings_are_kept_and_vanished_tables_reported(
    spark: SparkSession, client: windrow.Client, shop: str, folder: Path
) -> None:
    for name in ("kept", "gone"):
        spark.sql(f"CREATE TABLE shop.o_{name} USING parquet AS SELECT 1 a")
    client.register_table("shop.o_kept", str(folder / "else"))
    said = imported(client, spark, "shop.o_*")
    assert "was not registered by an import" in said["shop.o_kept"]
    assert client.table("shop.o_kept").definition.location == str(folder / "else")
    (taken,) = client.import_tables(spark, "shop.o_kept", take_over=True)
    assert (taken.outcome, differences(spark, client, "shop.o_kept")) == ("updated", [])

    client.alter_table("shop.o_kept", plan_options={"open_file_cost": 1})
    spark.sql("DROP TABLE shop.o_gone")
    said = imported(client, spark, "shop.o_*")
    assert said["shop.o_kept"] == "unchanged"
    assert client.table("shop.o_kept").definition.plan_options.open_file_cost == 1
    assert "stays registered" in said["shop.o_gone"]
    deleted = client.import_tables(spark, "shop.o_*", delete_vanished=True)
    assert [one.outcome for one in deleted] == ["vanished", "unchanged"]
    assert imported(client, spark, "shop.o_*") == {"shop.o_kept": "unchanged"}


def test_new_files_are_found_by_a_refresh_of_all_and_failures_are_reported(
    spark: SparkSession, client: windrow.Client, shop: str, folder: Path
) -> None:
    for name in ("grows", "breaks"):
        spark.sql(f"CREATE TABLE shop.r_{name} USING parquet AS SELECT 1 a")
    assert set(imported(client, spark, "shop.r_*").values()) == {"created"}
    spark.sql("INSERT INTO shop.r_grows VALUES (2)")
    assert imported(client, spark, "shop.r_grows") == {"shop.r_grows": "unchanged"}
    (folder / "shop/r_breaks/not.parquet").write_text("nothing")
    done = client.import_tables(spark, "shop.r_*", refresh="all")
    assert [(one.outcome, one.changes[:1]) for one in done] == [
        ("failed", ()),
        ("updated", ("1 file added",)),
    ]
    assert "not.parquet" in done[0].reason
    assert differences(spark, client, "shop.r_grows") == []


def test_names_of_tables_must_include_the_database(
    spark: SparkSession, client: windrow.Client
) -> None:
    with pytest.raises(InvalidArgumentError, match=r"write 'sales.events' or 'sales.\*'"):
        client.import_tables(spark, "sales")
    with pytest.raises(InvalidArgumentError, match="say which tables"):
        client.import_tables(spark)


def test_a_partition_outside_the_allowed_locations_is_reported(
    spark: SparkSession, client: windrow.Client, shop: str, tmp_path: Path
) -> None:
    spark.sql("CREATE TABLE shop.far (a INT, p INT) USING parquet PARTITIONED BY (p)")
    spark.sql(f"ALTER TABLE shop.far ADD PARTITION (p=1) LOCATION '{tmp_path}/p'")
    assert "is not under an allowed prefix" in imported(client, spark, "shop.far")["shop.far"]
    # The table has no list of partitions yet, and its folders must not be taken for them.
    with pytest.raises(RefreshFailedError, match="import it again"):
        client.refresh("shop.far")


def test_a_table_that_the_catalog_fails_to_describe_is_named_and_others_are_imported(
    spark: SparkSession, client: windrow.Client, shop: str
) -> None:
    for name in ("fine", "lost"):
        spark.sql(f"CREATE TABLE shop.x_{name} USING parquet PARTITIONED BY (p) AS SELECT 1 a, 2 p")

    catalog = SparkCatalog(spark)
    lost, _ = sorted(catalog.entries([("shop", "x_*")]), key=lambda one: one.name, reverse=True)
    spark.sql("DROP TABLE shop.x_lost")
    with pytest.raises(CatalogError, match=r"partitions of 'shop.x_lost': .*x_lost"):
        catalog.partitions(lost)
    with pytest.raises(CatalogError, match=r"'shop.x_lost'"):
        catalog.partition_values(lost)
    assert imported(client, spark, "shop.x_*") == {"shop.x_fine": "created"}


def test_executors_take_the_inventories_that_the_job_can_take(
    spark: SparkSession, client: windrow.Client, shop: str
) -> None:
    spark.sql("CREATE TABLE shop.j_flat USING parquet AS SELECT 1 a")
    spark.sql("CREATE TABLE shop.j_parted USING parquet PARTITIONED BY (p) AS SELECT 1 a, 2 p")
    taken: dict[str, bool] = {}

    def refresh(name: str) -> None:
        taken[name] = refresh_on_executors(spark, client, name)

    done = import_tables(spark, client, ["shop.j_*"], refresh_with=refresh)
    assert {one.outcome for one in done} == {"created"}
    assert taken == {"shop.j_flat": True, "shop.j_parted": False}
    assert [differences(spark, client, one.name) for one in done] == [[], []]
