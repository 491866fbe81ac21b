"""Writes that replace all rows with some partition values, also where no new row arrives."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windrow
from tests.support.laws import a_few
from tests.support.tables import hive
from windrow_spark.writing.errors import UnfitRowsError
from windrow_tables.commits.errors import StagedFilesError, WriteConflictError

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

TABLE = "sales.regions"


@pytest.fixture
def location(spark: SparkSession, client: windrow.Client, folder: Path) -> Path:
    """Folders `ds=…/hour=…`, one row each: the hours 0 to 2 of two days and of no day."""
    location = folder / "regions"
    client.register_table(
        TABLE,
        str(location),
        columns={"id": "bigint"},
        partition_columns={"ds": "date", "hour": "int"},
        replace=True,
    )
    client.write(_rows(spark), TABLE, "overwrite")
    return location


def _rows(spark: SparkSession) -> DataFrame:
    day = F.expr("CASE id DIV 3 WHEN 0 THEN DATE'2026-11-01' WHEN 1 THEN DATE'2026-11-02' END")
    return spark.range(9).select("id", day.alias("ds"), (F.col("id") % 3).cast("int").alias("hour"))


def _ids(spark: SparkSession, client: windrow.Client) -> list[int]:
    return sorted(row.id for row in client.read(spark, TABLE).select("id").collect())


@pytest.mark.parametrize(
    ("replace", "ids"),
    a_few(
        [
            ({"ds": "2026-11-01"}, [3, 4, 5, 6, 7, 8]),
            ({"DS": datetime.date(2026, 11, 2)}, [0, 1, 2, 6, 7, 8]),
            ({"ds": None}, [0, 1, 2, 3, 4, 5]),
            ({"hour": 1}, [0, 2, 3, 5, 6, 8]),
            ({"hour": "1", "ds": None}, [0, 1, 2, 3, 4, 5, 6, 8]),
            ({"ds": "2030-01-01"}, list(range(9))),
            ({}, []),
        ],
        3,
    ),
)
def test_rows_with_the_values_go_without_any_new_rows(
    spark: SparkSession,
    client: windrow.Client,
    location: Path,
    replace: dict[str, Any],
    ids: list[int],
) -> None:
    none = _rows(spark).where("id < 0")

    client.write(none, TABLE, "overwrite_partitions", replace=replace)

    assert _ids(spark, client) == ids


def test_new_rows_take_the_place_of_all_rows_with_the_values(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    one = _rows(spark).where("id = 1").withColumn("id", F.lit(100).cast("long"))

    client.write(one, TABLE, "overwrite_partitions", replace={"ds": "2026-11-01"})

    assert _ids(spark, client) == [3, 4, 5, 6, 7, 8, 100]


def test_another_spelling_of_a_value_is_replaced_too(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    hive.write_file(location / "ds=2026-11-01" / "hour=07" / "part-0.parquet", [70])
    client.refresh(TABLE)

    client.write(_rows(spark).where("id < 0"), TABLE, "overwrite_partitions", replace={"hour": 7})

    assert _ids(spark, client) == list(range(9))


def test_rows_outside_of_what_is_replaced_are_refused(
    spark: SparkSession, client: windrow.Client, location: Path
) -> None:
    with pytest.raises(StagedFilesError, match="its rows are not among those"):
        client.write(_rows(spark), TABLE, "overwrite_partitions", replace={"ds": "2026-11-01"})
    with pytest.raises(UnfitRowsError, match=r"'id'.* partitioned by 'ds', 'hour'"):
        client.write(_rows(spark), TABLE, "overwrite_partitions", replace={"id": 1})
    with pytest.raises(UnfitRowsError, match="'soon' is not a value of partition column 'ds'"):
        client.write(_rows(spark), TABLE, "overwrite_partitions", replace={"ds": "soon"})
    with pytest.raises(ValueError, match="mode 'overwrite_partitions', not 'append'"):
        client.write(_rows(spark), TABLE, replace={"ds": "2026-11-01"})

    assert _ids(spark, client) == list(range(9))
    assert not (location / "_windrow").exists()


def test_rows_that_others_publish_meanwhile_are_not_removed(
    spark: SparkSession, client: windrow.Client, location: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = windrow.Client.write_plan

    def interrupted(self: windrow.Client, *arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(windrow.Client, "write_plan", counting)
        later = _rows(spark).where("id = 0").withColumn("hour", F.lit(9))
        client.write(later, TABLE)
        return counting(self, *arguments, **options)

    monkeypatch.setattr(windrow.Client, "write_plan", interrupted)

    one = _rows(spark).where("id = 1")

    with pytest.raises(WriteConflictError, match="hour=9"):
        client.write(one, TABLE, "overwrite_partitions", replace={"ds": "2026-11-01"})
    assert _ids(spark, client) == [0, *range(9)]
