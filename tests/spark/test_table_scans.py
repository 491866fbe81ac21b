"""Scans are planned when they run: with what subqueries and joins have told, and for few rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import windrow
from tests.support.queries import table_scans
from windrow_spark.relation.recent_scans import recent_scans

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

# Spark passes it on to the other side of the join, where statistics of `id` do not decide it.
_FEW_KEYS = "key % 2000 IN (3, 4, 17)"


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


@pytest.mark.parametrize(
    ("condition", "files", "rows"),
    [("key % 5 = 7", 0, 0), (_FEW_KEYS, 2, 3), ("key % 2000 >= 38", 1, 2)],
    ids=["no key", "few keys", "a range of many keys"],
)
def test_keys_of_a_join_prune_files_in_every_session_and_without_adaptive_execution(
    spark: SparkSession,
    client: windrow.Client,
    folder: Path,
    condition: str,
    files: int,
    rows: int,
) -> None:
    table_scans.register(client, folder)
    for session in (spark, spark.newSession()):
        session.conf.set("spark.sql.adaptive.enabled", "false")
        try:
            ours = client.read(session, "scanned").select("id")
            keys = session.range(2_000).toDF("key").filter(condition).hint("broadcast")
            assert len(ours.join(keys, ours["id"] == keys["key"]).collect()) == rows
        finally:
            session.conf.unset("spark.sql.adaptive.enabled")
        assert recent_scans("scanned")[0].plan.summary.files_planned == files


@pytest.mark.parametrize(
    "setting", ["spark.sql.optimizer.dynamicPartitionPruning.enabled", "spark.sql.exchange.reuse"]
)
def test_a_session_without_dynamic_pruning_reads_all_files_of_a_join(
    spark: SparkSession, client: windrow.Client, folder: Path, setting: str
) -> None:
    table_scans.register(client, folder)
    spark.conf.set(setting, "false")
    try:
        ours = client.read(spark, "scanned").select("id")
        keys = spark.range(2_000).toDF("key").filter(_FEW_KEYS).hint("broadcast")
        assert len(ours.join(keys, ours["id"] == keys["key"]).collect()) == 3
    finally:
        spark.conf.unset(setting)
    assert recent_scans("scanned")[0].plan.summary.files_planned == 8
