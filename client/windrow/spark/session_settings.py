"""Settings of a session with which Spark's own reader and groups would read other rows: refused."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import SparkSession

from windrow.models import Plan
from windrow.spark.errors import SettingError

# Separates two settings; no setting contains this character.
_BETWEEN = "\x1e"


class _Rule(NamedTuple):
    """When a setting matters.

    Attributes:
        agreed: The value with which all ways read the same rows; Spark's default.
        effect: What Spark's own reader does with any other value.
        types: Types that it concerns, as they begin in Spark SQL; empty if it concerns all tables.
    """

    agreed: str
    effect: str
    types: tuple[str, ...] = ()


_OF_ALL_FORMATS = {
    "spark.sql.files.ignoreCorruptFiles": _Rule("false", "leaves out rows of damaged files"),
    "spark.sql.files.ignoreMissingFiles": _Rule("false", "leaves out files that are gone"),
}
_OF_PARQUET = {
    "spark.sql.parquet.binaryAsString": _Rule("false", "reads bytes as text", ("binary",)),
    "spark.sql.parquet.int96AsTimestamp": _Rule("true", "reads no INT96", ("timestamp",)),
    "spark.sql.parquet.int96TimestampConversion": _Rule(
        "false", "moves INT96 timestamps to the session's time zone", ("timestamp",)
    ),
    "spark.sql.parquet.inferTimestampNTZ.enabled": _Rule(
        "true", "reads local times as timestamps", ("timestamp_ntz",)
    ),
    "spark.sql.legacy.parquet.nanosAsLong": _Rule(
        "false", "reads nanoseconds as numbers", ("timestamp",)
    ),
    "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": _Rule(
        "false", "reads null for structs without a requested field", ("struct",)
    ),
}
_POSITIONAL = "orc.force.positional.evolution"
_INFERENCE = "spark.sql.sources.partitionColumnTypeInference.enabled"


def check_settings(spark: SparkSession, plan: Plan) -> None:
    """Refuse settings of a session that would change the rows of a plan on some ways only.

    Args:
        spark: A classic session.
        plan: What is read.

    Raises:
        SettingError: A setting matters to the plan's columns.
    """
    # One text for all settings: asking the JVM for them one by one takes a call for each.
    text: str = spark._jsparkSession.sessionState().conf().getAllConfs().mkString(_BETWEEN)
    settings = dict(one.split(" -> ", 1) for one in text.split(_BETWEEN) if " -> " in one)
    types = " ".join(column.type for column in plan.columns)
    rules = _OF_ALL_FORMATS | (_OF_PARQUET if plan.format == "parquet" else {})
    # A log says which types partition columns have, and Spark does not infer them either.
    if not plan.logged and any(column.type != "string" for column in plan.partition_columns):
        rules[_INFERENCE] = _Rule("true", "reads all partition values as text")
    if plan.format == "orc" and _POSITIONAL not in plan.format_options:
        rules[_POSITIONAL] = _Rule("false", "matches columns by position")
        # Spark's reader looks here, where settings of Hadoop alone count as well.
        hadoop = spark._jsparkSession.sessionState().newHadoopConf()
        settings[_POSITIONAL] = hadoop.get(_POSITIONAL) or "false"
    for name, rule in rules.items():
        value = settings.get(name, rule.agreed)
        concerned = not rule.types or any(type_ in types for type_ in rule.types)
        if concerned and value.strip().lower() != rule.agreed:
            raise SettingError(plan.table, name, value, rule.effect, rule.agreed)
