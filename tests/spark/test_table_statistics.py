"""With `spark.sql.cbo.enabled`, the optimizer knows the rows and values of partitions exactly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import windrow
from tests.support.queries.accelerations import accelerate
from tests.support.tables import hive

pytestmark = pytest.mark.usefixtures("interpreted")

CBO = "spark.sql.cbo.enabled"


@pytest.fixture
def cbo(spark: SparkSession) -> Iterator[None]:
    """Let the optimizer use statistics."""
    spark.conf.set(CBO, "true")
    yield
    spark.conf.unset(CBO)


@pytest.fixture(scope="module")
def path(client: windrow.Client, folder: Path) -> Path:
    """The folder of the table `sales.events`: 60 rows on 3 days."""
    path = hive.write_events(folder / "events")
    client.register_table("sales.events", str(path))
    client.refresh("sales.events")
    return path


def estimate(rows: DataFrame) -> int | None:
    """Return how many rows the optimizer expects."""
    count = rows._jdf.queryExecution().optimizedPlan().stats().rowCount()
    return int(count.get()) if count.isDefined() else None


def statistics(rows: DataFrame, column: str) -> dict[str, Any]:
    """Return what the optimizer knows of a column of a query."""
    plan = rows._jdf.queryExecution().optimizedPlan()
    by_column = plan.stats().attributeStats()
    for place in range(plan.output().size()):
        attribute = plan.output().apply(place)
        if attribute.name() == column and by_column.contains(attribute):
            one = by_column.apply(attribute)
            fields = (one.distinctCount(), one.min(), one.max(), one.nullCount())
            return dict(zip(("distinct", "min", "max", "nulls"), map(str, fields), strict=True))
    return {}


@pytest.mark.usefixtures("cbo")
def test_conditions_on_partitions_leave_the_rows_that_the_optimizer_expects(
    spark: SparkSession, client: windrow.Client, path: Path
) -> None:
    client.create_view(spark, "sales.events", "counted")
    for condition in (
        "true",
        "ds = '2026-11-02'",
        "ds >= '2026-11-02'",
        "ds IN ('2026-11-01', '2026-11-03', '2026-11-09')",
        "day(ds) = 2",
        "date_format(ds, 'yyyy-MM') = '2026-11'",
        "ds IS NOT NULL",
        "day(ds) > 3",
    ):
        rows = spark.sql(f"SELECT id FROM counted WHERE {condition}")
        assert estimate(rows) == rows.count(), condition
    days = spark.sql("SELECT ds, count(*) FROM counted GROUP BY ds")
    assert (estimate(days), len(days.collect())) == (3, 3)


@pytest.mark.usefixtures("cbo")
def test_the_optimizer_knows_what_analyze_finds_of_partition_columns(
    spark: SparkSession, client: windrow.Client, path: Path
) -> None:
    rows = spark.read.parquet(str(path)).write.partitionBy("ds")
    rows.saveAsTable("analyzed", path=f"{path.parent}/analyzed")
    spark.sql("ANALYZE TABLE analyzed COMPUTE STATISTICS FOR COLUMNS ds, id")
    theirs = spark.table("analyzed")
    ours = client.read(spark, "sales.events")

    assert statistics(ours, "ds") == statistics(theirs, "ds") != {}
    assert estimate(ours) == estimate(theirs) == 60
    client.import_tables(spark, "default.analyzed")
    with accelerate(spark, client, "default.*"):
        accelerated = spark.table("analyzed")
        both = accelerated.where("day(ds) < 3")
        assert "Scan windrow" in both._jdf.queryExecution().toString()
        # What Spark has found of other columns stays.
        assert statistics(accelerated, "id") == statistics(theirs, "id") != {}
        assert (estimate(both), both.count()) == (40, 40)
    spark.sql("DROP TABLE analyzed")
    client.delete_table("default.analyzed")


@pytest.mark.usefixtures("cbo")
def test_partitions_of_local_times_are_joined(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    for hour in range(3):
        path = folder / "hours" / f"hour=2026-11-28 0{hour}%3A00%3A00" / "part-0.parquet"
        hive.write_file(path, range(hour, hour + 1))
    client.register_table(
        "sales.hours", str(folder / "hours"), partition_columns={"hour": "timestamp_ntz"}
    )
    client.refresh("sales.hours")
    client.create_view(spark, "sales.hours", "hours")

    join = "SELECT a.id FROM hours a JOIN hours b ON a.hour = b.hour WHERE b.id > 0"
    rows = spark.sql(join)
    # Joins of joins and further rules ask for it.
    assert estimate(rows) is not None
    assert sorted(rows.collect()) == [(1,), (2,)]


@pytest.mark.usefixtures("cbo")
def test_partitions_of_floats_are_compared_with_each_other(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    for number, score in enumerate(("-Infinity", "-1.5", "Infinity", "NaN")):
        hive.write_file(folder / "scores" / f"score={score}" / "part-0.parquet", [number])
    client.register_table(
        "sales.scores", str(folder / "scores"), partition_columns={"score": "double"}
    )
    client.refresh("sales.scores")
    client.create_view(spark, "sales.scores", "scores")

    for condition, ids in {
        "score > 0": [2, 3],
        "score < 0 OR id = 2": [0, 1, 2],
        "score < double('NaN')": [0, 1, 2],
        "score <= double('NaN') AND score = -1.5": [1],
    }.items():
        rows = spark.sql(f"SELECT id FROM scores WHERE {condition}")
        assert estimate(rows) is not None
        assert sorted(row.id for row in rows.collect()) == ids, condition


@pytest.mark.usefixtures("cbo")
def test_partitions_without_a_value_are_joined(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    path = folder / "nameless" / "kind=__HIVE_DEFAULT_PARTITION__" / "part-0.parquet"
    hive.write_file(path, [7])
    client.register_table(
        "sales.nameless", str(folder / "nameless"), partition_columns={"kind": "string"}
    )
    client.refresh("sales.nameless")
    client.create_view(spark, "sales.nameless", "nameless")

    join = "SELECT a.id, b.id FROM nameless a FULL JOIN nameless b ON a.kind = b.kind"
    assert estimate(spark.sql(join)) is not None
    assert len(spark.sql(join).collect()) == 2


def test_without_the_setting_the_optimizer_is_told_sizes_alone(
    spark: SparkSession, client: windrow.Client, path: Path
) -> None:
    rows = client.read(spark, "sales.events").where("day(ds) = 2")
    assert estimate(rows) is None
    assert statistics(rows, "ds") == {}
