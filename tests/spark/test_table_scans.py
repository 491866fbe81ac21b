"""Scans are planned when they run: with what subqueries and joins have told, and for few rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.queries import table_scans

pytestmark = pytest.mark.spark


def check(results: dict[str, Any], version: str) -> None:
    for name, (_, files) in (table_scans.QUERIES | table_scans.LIMITS).items():
        if name != table_scans.OF_ANOTHER_COLUMN or not version.startswith("3."):
            assert results[name]["files"] == files, name
        if name in table_scans.QUERIES:
            assert results[name]["ours"] == results[name]["theirs"], name
        else:
            assert len(results[name]["ours"]) == len(results[name]["theirs"]), name
    assert results["field of a struct"]["schemas"] == [
        "struct<s:struct<a:bigint,b:string>,ds:date>"
    ]
    # Conditions on partitions need no columns.
    assert results["scalar subquery"]["schemas"] == ["struct<id:bigint>"]


def test_scans_plan_the_files_that_spark_would_read(
    spark: SparkSession, client: windrow.Client, folder: Path
) -> None:
    check(table_scans.results(spark, client, folder), spark.version)


def test_every_supported_spark_plans_the_same_files(
    on_older_sparks: list[dict[str, Any]],
) -> None:
    for older in on_older_sparks:
        check(older["scans"], older["version"])
