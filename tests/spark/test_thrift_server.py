"""Tables of a Hive metastore and paths are accelerated on every Spark, and by its Thrift server."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.spark


def test_tables_of_a_metastore_are_accelerated_on_every_spark(
    on_thrift_servers: list[dict[str, Any]],
) -> None:
    assert [report["accelerated"] for report in on_thrift_servers] == [{}] * len(on_thrift_servers)


def test_clients_of_a_thrift_server_get_the_rows_of_spark_from_plans_of_windrow(
    on_thrift_servers: list[dict[str, Any]],
) -> None:
    for report in on_thrift_servers:
        clients = report["clients"]

        assert clients["unlike"] == [], report["version"]
        assert clients["sizes"] == [9, 9, 1, 3], report["version"]
        assert (clients["unplanned"], clients["reasons"]) == ([], {}), report["version"]
        assert clients["catalog"] == [True, 7], report["version"]


def test_each_connection_to_a_thrift_server_has_its_own_settings_and_views(
    on_thrift_servers: list[dict[str, Any]],
) -> None:
    for report in on_thrift_servers:
        viewed, refused, unseen, count = report["clients"]["sessions"]

        assert viewed == count == [["60"]], report["version"]
        assert "spark.windrow.unknown" in refused, report["version"]
        assert "TABLE_OR_VIEW_NOT_FOUND" in unseen, report["version"]


def test_clients_of_a_thrift_server_are_told_why_a_table_cannot_be_read(
    on_thrift_servers: list[dict[str, Any]],
) -> None:
    for report in on_thrift_servers:
        (error,) = report["clients"]["error"]
        assert "has no snapshot 99" in error, report["version"]
