"""Tables on sessions of Spark Connect, each with a server of its own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.queries import refused_uses

pytestmark = pytest.mark.spark


def test_a_table_on_spark_connect_has_the_rows_that_spark_reads(
    on_spark_connect: list[dict[str, Any]],
) -> None:
    for found in on_spark_connect:
        rows, types = found["rows"], found["types"]

        assert rows["ours"] == rows["expected"]
        assert len(rows["ours"]) == 60
        # One task for each slot: the session's parallelism is known.
        assert rows["tasks"] == 2
        assert types["ours"] == types["expected"]
        assert types["schemas"][0] == types["schemas"][1]


def test_options_of_the_format_work_on_spark_connect(
    on_spark_connect: list[dict[str, Any]],
) -> None:
    for found in on_spark_connect:
        options = found["options"]

        assert options["columns"] == ["ds", "id"]
        assert options["days"] == [["2026-11-02", 20, 590], ["2026-11-03", 20, 990]]
        assert options["empty"] == 0
        assert options["tasks"] == 6
        assert options["default"] == 60
        assert found["types"]["pruned"] == [1]


def test_filters_of_one_query_do_not_reach_others_on_spark_connect(
    on_spark_connect: list[dict[str, Any]],
) -> None:
    for found in on_spark_connect:
        assert found["filters"] == {"one": 1, "all": 60, "both": [3, 4], "view": [7, 60]}


def test_views_and_named_snapshots_stay_as_they_were_on_spark_connect(
    on_spark_connect: list[dict[str, Any]],
) -> None:
    for found in on_spark_connect:
        assert found["snapshots"] == {"view": 60, "named": 60, "new": 65}


def test_unsupported_reads_on_spark_connect_are_refused_with_the_reason(
    on_spark_connect: list[dict[str, Any]],
) -> None:
    for found in on_spark_connect:
        refusals = found["refusals"]

        assert refusals["changed"].startswith("TaskFailedError: file ")
        assert "part-00000.parquet' has changed since the plan was made" in refusals["changed"]
        assert "sales.nothing" in refusals["missing"]
        assert "write LIMIT in the query" in refusals["limit"]
        assert "leave out 'reader'" in refusals["native"]
        assert "leave out .schema(" in refusals["schema"]
        assert "windrow.register(spark)" in refusals["client.read"]
        assert refusals["case"].startswith("CaseSensitiveNamesError")
        assert "spark.sql.files.ignoreCorruptFiles is true" in refusals["setting"]


@pytest.mark.nightly
def test_writes_and_streams_are_refused_on_spark_connect(
    on_spark_connect: list[dict[str, Any]],
) -> None:
    for found in on_spark_connect:
        refused_uses.assert_words(found["uses"])
