"""Settings of a session with which Spark's own reader and groups would read other rows: refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
        types: Types that it concerns, within others too; empty if it concerns all tables.
    """

    agreed: str
    effect: str
    types: tuple[str, ...] = ()


_TIMES = ("timestamp", "timestamp_ntz")
_OF_ALL_FORMATS = {
    "spark.sql.timestampType": _Rule(
        "timestamp_ltz", "takes `timestamp` for local times", ("timestamp",)
    ),
    "spark.sql.files.ignoreCorruptFiles": _Rule("false", "leaves out rows of damaged files"),
    "spark.sql.files.ignoreMissingFiles": _Rule("false", "leaves out files that are gone"),
}
_OF_PARQUET = {
    "spark.sql.parquet.binaryAsString": _Rule("false", "reads bytes as text", ("binary",)),
    "spark.sql.parquet.int96AsTimestamp": _Rule("true", "reads no INT96", ("timestamp",)),
    "spark.sql.parquet.inferTimestampNTZ.enabled": _Rule(
        "true", "reads local times as timestamps", ("timestamp_ntz",)
    ),
    "spark.sql.legacy.parquet.nanosAsLong": _Rule("false", "reads nanoseconds as numbers", _TIMES),
    "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": _Rule(
        "false", "reads null for structs without a requested field", ("struct",)
    ),
}
_POSITIONAL = "orc.force.positional.evolution"
_INFERENCE = "spark.sql.sources.partitionColumnTypeInference.enabled"


def settings_of(spark: SparkSession) -> dict[str, str]:
    """Return the settings of a classic session that are not left at their defaults."""
    # One text for all settings: asking the JVM for them one by one takes a call for each.
    text: str = spark._jsparkSession.sessionState().conf().getAllConfs().mkString(_BETWEEN)
    pairs = (setting.partition(" -> ") for setting in text.split(_BETWEEN))
    return {name: value for name, _, value in pairs}


def check_settings(spark: SparkSession, plan: Plan) -> None:
    """Refuse settings of a session that would change the rows of a plan on some ways only.

    Args:
        spark: A classic session.
        plan: What is read.

    Raises:
        SettingError: A setting matters to the plan's columns.
    """
    settings = settings_of(spark)
    rules = _OF_ALL_FORMATS | (_OF_PARQUET if plan.format == "parquet" else {})
    # A log says which types partition columns have, and Spark does not infer them either.
    if not plan.logged and any(column.type != "string" for column in plan.partition_columns):
        rules[_INFERENCE] = _Rule("true", "reads all partition values as text")
    if plan.format == "orc" and _POSITIONAL not in plan.format_options:
        rules[_POSITIONAL] = _Rule("false", "matches columns by position")
        # Spark's reader looks here, where settings of Hadoop alone count as well.
        hadoop = spark._jsparkSession.sessionState().newHadoopConf()
        settings[_POSITIONAL] = hadoop.get(_POSITIONAL) or "false"
    types = {column.name: column.type for column in plan.columns}
    for name, rule in rules.items():
        value = settings.get(name, rule.agreed)
        if value.strip().lower() == rule.agreed:
            continue
        what = _concerned(types, rule)
        if what is not None:
            raise SettingError(plan.table, name, value, rule.effect, rule.agreed, what)


def _concerned(types: Mapping[str, str], rule: _Rule) -> str | None:
    """Return what a setting changes: all rows, or a column; None if it changes nothing."""
    if not rule.types:
        return "rows"
    # Names of fields are followed by a colon.
    pattern = re.compile(rf"(?<![\w`])(?:{'|'.join(rule.types)})(?![\w`:])")
    columns = (name for name, type_ in types.items() if pattern.search(type_))
    return next((f"column {name!r}" for name in columns), None)
