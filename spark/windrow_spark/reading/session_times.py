"""Local times of partition columns, which sessions of Spark take for timestamps in their own zone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from windrow_core.models import Column, Plan, TableInfo
from windrow_core.models.tables import local_times
from windrow_spark.reading.session_calendars import local_zone

_TYPE_SETTING = "spark.sql.timestampType"
_ZONE_SETTING = "spark.sql.session.timeZone"
_ZONE_OPTION = "timezone"


def in_session(spark: SparkSession, plan: Plan) -> Plan:
    """Return a plan whose local times have the type that a session gives them.

    Args:
        spark: A classic session.
        plan: The coordinator's answer.

    Returns:
        A plan whose `local_times` are those that are timestamps in the session.
    """
    if not plan.local_times or not _takes_instants(spark):
        return plan.model_copy(update={"local_times": []}) if plan.local_times else plan
    columns = {
        name: _retyped(getattr(plan, name), plan.local_times)
        for name in ("columns", "hidden_columns", "partition_columns")
    }
    return plan.model_copy(update=columns)


def partition_columns_in_session(
    spark: SparkSession, table: TableInfo, columns: Sequence[Column]
) -> list[Column]:
    """Return partition columns of a table, of which local times have the session's type for them."""
    names = local_times(table.definition, columns)
    return _retyped(columns, names) if names and _takes_instants(spark) else list(columns)


def own_zone(options: Mapping[str, str]) -> str | None:
    """Return the time zone that the options of a table's format state; None if they do not."""
    return {name.lower(): value for name, value in options.items()}.get(_ZONE_OPTION)


def zone_of(spark: SparkSession, own: str | None) -> str:
    """Return the zone of local times as the text of a `LocalZone`.

    Args:
        spark: A classic session.
        own: The table's own time zone; None means the session's.
    """
    jvm: Any = spark.sparkContext._jvm
    return local_zone(jvm, own or str(spark.conf.get(_ZONE_SETTING)))


def _takes_instants(spark: SparkSession) -> bool:
    return str(spark.conf.get(_TYPE_SETTING)).upper() != "TIMESTAMP_NTZ"


def _retyped(columns: Sequence[Column], names: Collection[str]) -> list[Column]:
    return [
        column.model_copy(update={"type": "timestamp"}) if column.name in names else column
        for column in columns
    ]
