"""Unchanged queries of Spark's tables and paths, planned by Windrow where the rows are the same."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing.objects import ExamplePoint

import windrow
from tests.support.laws import a_few
from tests.support.queries.accelerations import accelerate
from tests.support.servers import embedded
from tests.support.servers.coordinators import running
from tests.support.tables import hive
from windrow_calls.errors import InvalidArgumentError
from windrow_service.settings import Settings
from windrow_spark.acceleration.accelerating import Acceleration

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[windrow.Client]:
    with embedded.client(folder / "state", allowed_locations=[str(folder.parent)]) as client:
        yield client


@pytest.fixture
def location(client: windrow.Client, tmp_path: Path) -> Iterator[Path]:
    """The folder of the table `sales.events`: 60 rows on 3 days, 10 in each file."""
    location = hive.write_events(tmp_path / "events")
    client.register_table("sales.events", str(location))
    yield location
    client.delete_table("sales.events")


@pytest.fixture
def acceleration(
    spark: SparkSession, client: windrow.Client, location: Path
) -> Iterator[Acceleration]:
    with accelerate(spark, client, "sales.*") as acceleration:
        yield acceleration


@pytest.fixture(scope="module")
def shop(spark: SparkSession, folder: Path) -> Iterator[str]:
    """A database of this session's own catalog."""
    spark.sql(f"CREATE DATABASE fast LOCATION '{folder}/fast'")
    yield "fast"
    spark.sql("DROP DATABASE fast CASCADE")


@pytest.fixture
def table(spark: SparkSession, client: windrow.Client, shop: str) -> Iterator[str]:
    """An imported table of Spark's catalog: 40 rows on 2 days."""
    spark.sql("CREATE TABLE fast.t (id BIGINT, day DATE) USING parquet PARTITIONED BY (day)")
    insert(spark, "fast.t", 20, "2026-01-01")
    insert(spark, "fast.t", 20, "2026-01-02")
    (done,) = client.import_tables(spark, "fast.t")
    assert done.outcome == "created"
    with accelerate(spark, client, "FAST.*"):
        yield "fast.t"
    spark.sql("DROP TABLE fast.t")
    client.delete_table("fast.t")


def insert(spark: SparkSession, table: str, rows: int, day: str) -> None:
    spark.sql(f"INSERT INTO {table} SELECT id, DATE'{day}' FROM range({rows})")


def is_ours(rows: DataFrame) -> bool:
    """Return whether Spark's plan of a query has our scan, and none of Spark's."""
    plan = str(rows._jdf.queryExecution().sparkPlan().toString())
    return "Scan windrow " in plan and "FileScan" not in plan


def reason_of(rows: DataFrame, acceleration: Acceleration) -> str:
    """Return why Spark plans the only table of a query."""
    (reason,) = acceleration.explain(rows).values()
    assert is_ours(rows) == (reason == "")
    return reason


def outcome(rows: DataFrame) -> tuple[bool, Any, list[Any]]:
    """Return who plans a query, its schema and its rows."""
    ours = is_ours(rows)
    return ours, rows.schema, sorted(rows.collect())


def same_both_ways(
    spark: SparkSession, client: windrow.Client, query: Callable[[], DataFrame]
) -> list[Any]:
    """Return the rows of a query, which Windrow and Spark must agree on."""
    with accelerate(spark, client) as acceleration:
        ours = outcome(query())
        assert ours[0], acceleration.reasons()
    theirs = outcome(query())
    assert not theirs[0]
    assert ours[1:] == theirs[1:]
    return ours[2]


def test_paths_of_registered_tables_are_read_by_windrow(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    path = str(location)
    schema = spark.read.parquet(path).schema
    queries: dict[str, Callable[[], DataFrame]] = {
        "parquet": lambda: spark.read.parquet(path),
        "load": lambda: spark.read.format("parquet").load(path + "/"),
        "SQL": lambda: spark.sql(f"SELECT * FROM parquet.`file://{path}`"),
        "schema": lambda: spark.read.schema(schema).parquet(path),
        "condition": lambda: spark.read.parquet(path).where("day(ds) = 2").groupBy("ds").count(),
        "twice": lambda: spark.read.parquet(path).join(
            spark.read.parquet(path).selectExpr("max(ds) ds"), "ds"
        ),
        "names": lambda: spark.read.parquet(path).select("_metadata.file_name", "id"),
    }
    sizes = [len(same_both_ways(spark, client, query)) for query in queries.values()]
    assert sizes == [60, 60, 60, 60, 1, 20, 60]


def is_listed(rows: DataFrame) -> bool:
    """Return whether Spark has listed the files of the only path that a DataFrame reads."""
    leaf = rows._jdf.queryExecution().analyzed().collectLeaves().head()
    index = leaf.relation().location()
    return index.getClass().getSimpleName() != "PathIndex" or bool(index.isListed())


def test_paths_of_registered_tables_are_not_listed(
    spark: SparkSession, client: windrow.Client, acceleration: Acceleration, location: Path
) -> None:
    path = str(location)
    schema = spark.read.parquet(f"{path}/").schema
    for read in (
        lambda: spark.read.parquet(path),
        lambda: spark.read.format("parquet").load(f"file://{path}/"),
        lambda: spark.read.schema(schema).parquet(path),
        lambda: spark.newSession().read.parquet(path),
    ):
        rows = read()
        assert (rows.schema, rows.count(), is_listed(rows)) == (schema, 60, False)
    # Where Spark needs the files itself, it lists them.
    rows = spark.read.parquet(path).where("id >= 0")
    acceleration.off()
    assert rows.count() == 60
    assert not is_ours(rows)
    assert is_listed(rows)


def test_paths_have_the_columns_that_spark_takes_from_their_first_file(
    spark: SparkSession, client: windrow.Client, tmp_path: Path
) -> None:
    cases: dict[str, tuple[dict[str, str], bool]] = {
        # Folders in the order of their files' paths: `-` is before `/`, and `=` after it.
        "one": ({"p=1": "1 a, 2 b", "p=1-x": "1 a"}, False),
        "wide": ({"p=1": "1 a", "p=2": "2 a"}, True),
        "numbers": ({"p=01/q=x": "1 a", "p=2/q=y": "2 a"}, True),
        "hidden": ({"_tmp": "1 z", "p=1": "1 a", "p=2": "2 a"}, True),
        "text": ({"p=1": "1 a", "p=x": "2 a", "p=__HIVE_DEFAULT_PARTITION__": "3 a"}, True),
        "times": ({"p=2026-01-01 10%3A00%3A00": "1 a"}, False),
        "clock": ({"p=T10%3A00": "1 a", "p=0x1": "2 a"}, False),
        "inside": ({"p=1": "7 p, 1 a", "p=2": "7 p, 2 a"}, False),
        "summary": ({"p=1": "1 a", "_metadata": "1 a, 2 b"}, False),
    }
    for name, (folders, is_ours_too) in a_few(list(cases.items()), 3):
        path = tmp_path / name
        for folder, columns in folders.items():
            spark.sql(f"SELECT {columns}").write.parquet(str(path / folder))
        if name == "summary":
            file = next((path / "_metadata").glob("*.parquet"))
            shutil.copy(file, path / "summary")
            shutil.rmtree(path / "_metadata")
            (path / "summary").rename(path / "_metadata")
        client.register_table(f"paths.{name}", str(path))
        theirs = spark.read.parquet(str(path))
        with accelerate(spark, client, "paths.*"):
            ours = spark.read.parquet(str(path))
            assert (name, ours.schema) == (name, theirs.schema)
            assert (name, sorted(ours.collect(), key=str)) == (
                name,
                sorted(theirs.collect(), key=str),
            )
            assert (name, is_listed(ours)) == (name, not is_ours_too)
        client.delete_table(f"paths.{name}")


def test_tables_of_the_catalog_are_read_by_windrow_and_explain_says_so(
    spark: SparkSession, client: windrow.Client, table: str
) -> None:
    assert len(same_both_ways(spark, client, lambda: spark.table(table))) == 40
    spark.table(table).createOrReplaceTempView("fast_view")
    for text in (
        "SELECT * FROM fast.t WHERE day(day) = 2",
        "SELECT day, count(*) FROM FAST.T t GROUP BY day",
        "SELECT * FROM fast.t a WHERE EXISTS (SELECT 1 FROM fast.t b WHERE b.id > a.id)",
        "WITH c AS (SELECT id FROM fast.t) SELECT * FROM c JOIN c d USING (id)",
        "SELECT * FROM fast_view WHERE day = (SELECT max(day) FROM fast_view)",
    ):
        same_both_ways(spark, client, lambda text=text: spark.sql(text))  # type: ignore[misc]
    with accelerate(spark, client) as acceleration:
        (row,) = spark.sql("EXPLAIN SELECT * FROM fast.t").collect()
        assert "Scan windrow fast.t" in row[0]
        assert is_ours(spark.newSession().table(table))
        assert acceleration.reasons() == {}
        assert {one.table for one in acceleration.decisions()} == {"fast.t"}


def test_what_the_application_writes_through_spark_is_seen_by_its_next_query(
    spark: SparkSession, client: windrow.Client, table: str, folder: Path
) -> None:
    cached = spark.table(table).where("id < 5").cache()

    def counts() -> tuple[int, int]:
        rows = spark.table(table)
        assert is_ours(rows)
        return rows.count(), cached.count()

    assert counts() == (40, 10)
    insert(spark, table, 20, "2026-01-02")
    assert counts() == (60, 15)
    insert(spark.newSession(), table, 1, "2026-01-03")
    assert spark.table(table).count() == 61
    spark.sql("INSERT OVERWRITE fast.t PARTITION (day = DATE'2026-01-01') VALUES (7)")
    assert spark.table(table).count() == 42
    spark.sql("ALTER TABLE fast.t DROP PARTITION (day = DATE'2026-01-03')")
    assert spark.table(table).count() == 41
    spark.sql(f"ALTER TABLE fast.t ADD PARTITION (day = DATE'2026-01-04') LOCATION '{folder}/out'")
    insert(spark, table, 5, "2026-01-04")
    assert spark.table(table).count() == 46
    assert is_ours(spark.table(table))
    # Reads what it replaces.
    spark.sql("INSERT INTO fast.t SELECT * FROM fast.t WHERE id = 7")
    assert spark.table(table).where("id = 7").count() == 6
    spark.sql("TRUNCATE TABLE fast.t")
    assert (spark.table(table).count(), cached.count()) == (0, 0)
    cached.unpersist()


def test_a_folder_that_the_application_writes_is_read_as_it_is(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    with accelerate(spark, client):
        path = str(location)
        before = spark.read.parquet(path)
        assert (is_ours(before), before.count()) == (True, 60)
        cached = spark.read.parquet(path).select("id").cache()
        assert cached.count() == 60
        before.where("id < 10").write.mode("append").partitionBy("ds").parquet(path)
        after = spark.read.parquet(path)
        assert (is_ours(after), after.count(), cached.count()) == (True, 70, 70)
        cached.unpersist()
        # Only a plan that is shown writes nothing.
        spark.sql(f"EXPLAIN INSERT OVERWRITE DIRECTORY '{path}' USING parquet SELECT 1 id")
        before.limit(3).write.mode("overwrite").parquet(f"{path}.other")
        spark.read.parquet(f"{path}.other").write.mode("overwrite").parquet(path)
        rows = spark.read.parquet(path)
        assert rows.count() == 3


def test_files_of_others_are_seen_once_the_last_refresh_is_too_old(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    first = location / hive.data_files(location)[0]
    with accelerate(spark, client, max_staleness=3600) as acceleration:
        assert spark.read.parquet(str(location)).count() == 60
        shutil.copy(first, first.with_name("copy.parquet"))
        # Spark lists the folder, and Windrow does not yet.
        assert spark.read.parquet(str(location)).count() == 60
    with accelerate(spark, client, max_staleness=0):
        assert spark.read.parquet(str(location)).count() == 70
        shutil.copy(first, first.with_name("copy-2.parquet"))
        rows = spark.read.parquet(str(location))
        assert (is_ours(rows), rows.count()) == (True, 80)
    assert not acceleration.is_on


def test_partition_columns_that_files_have_too_are_those_of_the_folders(
    spark: SparkSession, client: windrow.Client, tmp_path: Path
) -> None:
    path = str(tmp_path / "twice")
    rows = spark.sql("SELECT id, 9 AS part, '2026' AS at FROM range(5)")
    rows.write.parquet(f"{path}/part=1/at=2026-01-01 00%3A00%3A00")
    rows.write.json(f"{path}.json/part=1")
    client.register_table("sales.twice", path)
    client.register_table(
        "sales.lines",
        f"{path}.json",
        "json",
        columns={"at": "string", "id": "bigint"},
        partition_columns={"part": "int"},
    )

    def read() -> DataFrame:
        return spark.read.parquet(path).where("part = 1")

    assert [row[:2] for row in same_both_ways(spark, client, read)] == [(i, 1) for i in range(5)]
    with accelerate(spark, client, "sales.*") as acceleration:
        # Spark reads the times in these folders in the option's zone.
        zoned = spark.read.option("timeZone", "Asia/Tokyo").parquet(path)
        assert "its option timezone is" in reason_of(zoned, acceleration)
        lines = spark.read.json(f"{path}.json")
        assert "its columns are struct<at:string,id:bigint,part" in reason_of(lines, acceleration)
    client.delete_table("sales.twice")
    client.delete_table("sales.lines")


def test_columns_of_user_defined_types_are_left_to_spark(
    spark: SparkSession, client: windrow.Client, tmp_path: Path
) -> None:
    point = spark.createDataFrame([(ExamplePoint(1.0, 2.0),)], ["at"])
    point.write.parquet(str(tmp_path / "points"))
    # As the bare values that the files have.
    columns = {"at": "array<double>"}
    client.register_table("sales.points", str(tmp_path / "points"), columns=columns)
    with accelerate(spark, client, "sales.*") as acceleration:
        read = spark.read.parquet(str(tmp_path / "points"))
        assert "user-defined type" in reason_of(read, acceleration)
    client.delete_table("sales.points")


def test_options_that_are_off_are_those_that_are_not_given(
    spark: SparkSession, client: windrow.Client, tmp_path: Path
) -> None:
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "a.txt").write_text("a\nb\n")
    path = str(tmp_path / "lines")
    client.register_table("sales.lines", path, "text")
    # This always gives `wholetext`.
    assert len(same_both_ways(spark, client, lambda: spark.read.text(path))) == 2
    with accelerate(spark, client, "sales.*") as acceleration:
        whole = spark.read.text(path, wholetext=True)
        assert "its option wholetext is 'true'" in reason_of(whole, acceleration)
    columns = {"c": "string"}
    options = {"header": "false"}
    client.register_table(
        "sales.lines", path, "csv", columns=columns, format_options=options, replace=True
    )
    assert len(same_both_ways(spark, client, lambda: spark.read.csv(path, schema="c STRING"))) == 2
    client.delete_table("sales.lines")


def test_options_schemas_and_settings_that_change_rows_leave_a_path_to_spark(
    spark: SparkSession, acceleration: Acceleration, location: Path
) -> None:
    path, day = str(location), f"{location}/ds=2026-11-01"
    fewer = spark.read.schema("id BIGINT, ds DATE").parquet(path)
    assert "its columns are struct<id:bigint> in Spark" in reason_of(fewer, acceleration)
    as_text = spark.read.schema("id BIGINT, name STRING, ds STRING")
    assert "its partition columns are struct<ds:string>" in reason_of(
        as_text.parquet(path), acceleration
    )
    for name, value in {
        "recursiveFileLookup": "true",
        "pathGlobFilter": "*.parquet",
        "modifiedBefore": "2050-01-01T00:00:00",
        "basePath": path,
        "ignoreMissingFiles": "true",
        "datetimeRebaseMode": "LEGACY",
    }.items():
        rows = spark.read.option(name, value).parquet(path)
        assert f"its option {name.lower()} is" in reason_of(rows, acceleration)
    for name, value in {
        "mergeSchema": "true",
        "inferSchema": "true",
        "quoteAll": "true",
        "timeZone": "Asia/Tokyo",
        "timestampFormat": "yyyy",
    }.items():
        assert is_ours(spark.read.option(name, value).parquet(path))
    assert "reads 2 paths at once" in reason_of(
        spark.read.parquet(day, f"{location}/ds=2026-11-02"), acceleration
    )
    assert "no table of sales.* is registered at" in reason_of(
        spark.read.parquet(day), acceleration
    )
    for name, value in {
        "spark.sql.files.ignoreMissingFiles": "true",
        "spark.sql.caseSensitive": "true",
        "spark.windrow.unknown": "1",
    }.items():
        spark.conf.set(name, value)
        try:
            assert name.rpartition(".")[2] in reason_of(spark.read.parquet(path), acceleration)
        finally:
            spark.conf.unset(name)
    spark.conf.set("spark.windrow.accelerate", "FALSE")
    assert "has set spark.windrow.accelerate=false" in reason_of(
        spark.read.parquet(path), acceleration
    )
    assert is_ours(spark.newSession().read.parquet(path))
    spark.conf.set("spark.windrow.accelerate", "true")
    assert is_ours(spark.read.parquet(path))
    spark.conf.unset("spark.windrow.accelerate")
    own = spark.read.option("accelerate", "false").parquet(path)
    assert "its option accelerate is 'false'" in reason_of(own, acceleration)
    assert acceleration.reasons().pop(f"file:{path}").startswith("its option accelerate")
    assert is_ours(spark.read.parquet(path))
    assert acceleration.reasons()[f"file:{day}"].startswith("no table of sales.*")
    assert f"file:{path}" not in acceleration.reasons()


def test_streams_and_writes_to_the_files_that_are_read_stay_with_spark(
    spark: SparkSession, client: windrow.Client, acceleration: Acceleration, location: Path
) -> None:
    path = str(location)
    stream = spark.readStream.schema(spark.read.parquet(path).schema).parquet(path)
    query = (
        stream.writeStream.format("memory")
        .queryName("seen")
        .option("checkpointLocation", str(location.parent / "checkpoints"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert spark.table("seen").count() == 60
    spark.read.parquet(path).where("id = 1").write.mode("append").partitionBy("ds").parquet(path)
    assert "the query writes to the files that it reads" in {
        one.reason for one in acceleration.decisions()
    }
    assert spark.read.parquet(path).where("id = 1").count() == 2


def test_tables_that_spark_finds_in_another_way_stay_with_spark(
    spark: SparkSession, client: windrow.Client, shop: str, folder: Path
) -> None:
    rows = "SELECT id, CAST(id % 2 AS INT) p FROM range(10)"
    spark.sql(f"CREATE TABLE fast.p USING parquet PARTITIONED BY (p) AS {rows}")
    spark.sql(f"CREATE TABLE fast.b USING parquet CLUSTERED BY (id) INTO 2 BUCKETS AS {rows}")
    spark.sql(f"CREATE TABLE fast.c USING csv OPTIONS (header 'true') AS {rows}")
    spark.sql(f"CREATE TABLE fast.flat USING orc AS {rows}")
    spark.sql(f"CREATE TABLE fast.d (a INT) USING parquet LOCATION '{folder}/fast/d'")
    spark.sql("INSERT INTO fast.d VALUES (1)")
    spark.sql("ALTER TABLE fast.d ADD COLUMNS (b INT DEFAULT 7)")
    for name in ("p", "c"):
        # Registered by its folder only, and not as the catalog has it.
        columns = {"id": "bigint"} | ({} if name == "p" else {"p": "int"})
        format_ = "csv" if name == "c" else "parquet"
        client.register_table(f"fast.{name}", f"{folder}/fast/{name}", format_, columns=columns)
    client.import_tables(spark, "fast.b", "fast.flat", "fast.d")
    reasons = {}
    with accelerate(spark, client, ["fast.*"]) as acceleration:
        for name in ("p", "b", "c", "d", "flat"):
            reasons[name] = reason_of(spark.table(f"fast.{name}"), acceleration)
        spark.conf.set("spark.sql.sources.bucketing.enabled", "false")
        assert is_ours(spark.table("fast.b"))
        spark.conf.unset("spark.sql.sources.bucketing.enabled")
    assert "client.import_tables(spark, 'fast.p')" in reasons["p"]
    assert "it is bucketed" in reasons["b"]
    assert "its option header is 'true' in Spark, and not set in 'fast.c'" in reasons["c"]
    assert reasons["d"] == ""
    assert reasons["flat"] == ""
    client.import_tables(spark, "fast.p", "fast.c", take_over=True)
    for name in ("p", "c"):
        same_both_ways(spark, client, lambda name=name: spark.table(f"fast.{name}"))  # type: ignore[misc]
    with accelerate(spark, client) as acceleration:
        by_path = spark.read.parquet(f"{folder}/fast/p")
        assert "and the table there from a catalog" in reason_of(by_path, acceleration)
    for name in ("p", "b", "c", "flat", "d"):
        spark.sql(f"DROP TABLE fast.{name}")
        client.delete_table(f"fast.{name}")


def test_without_its_coordinator_spark_answers(
    spark: SparkSession, client: windrow.Client, location: Path, folder: Path
) -> None:
    settings = Settings(state_dir=folder / "other", allowed_locations=[str(folder.parent)])
    with running(settings) as url:
        other = windrow.connect(url, attempts=1)
        other.register_table("sales.events", str(location))
        acceleration = accelerate(spark, other)
        assert is_ours(spark.read.parquet(str(location)))
        other.delete_table("sales.events")
        rows = spark.read.parquet(str(location))
        assert "sales.events" in reason_of(rows, acceleration)
        other.register_table("sales.events", str(location))
        assert is_ours(spark.read.parquet(str(location)))
    for said in ("no answer from the coordinator", "tries again within 10 s"):
        rows = spark.read.parquet(str(location))
        assert said in reason_of(rows, acceleration)
        assert rows.count() == 60
    other.close()
    rows = spark.read.parquet(str(location))
    assert "the client is closed" in reason_of(rows, acceleration)
    acceleration.off()
    acceleration.off()
    with pytest.raises(InvalidArgumentError, match="not negative"):
        windrow.accelerate(spark, client, max_staleness=-1)
    with pytest.raises(InvalidArgumentError, match="more than 0"):
        windrow.accelerate(spark, client, wait_s=0)


def test_it_works_on_older_releases_of_spark(on_older_sparks: list[dict[str, Any]]) -> None:
    assert [older["accelerated"] for older in on_older_sparks] == [{}] * len(on_older_sparks)
