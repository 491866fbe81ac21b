"""Settings of a session with which Spark's own reader and groups would read other rows: refused.

docs/reference/settings-of-spark.md lists all settings that Spark's readers look at, these among them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaClass
from pyspark.sql import SparkSession

from windrow_core.models import Plan
from windrow_spark.errors import SettingError

# Separates two settings; no setting contains this character.
_BETWEEN = "\x1e"

_BUILDER = "scala.collection.mutable.StringBuilder"
# Characters of one answer. The JVM sends what is longer than 8 KB in parts, of which the second one
# waits until TCP confirms the first, for 44 ms.
_PART = 8_000


class _Rule(NamedTuple):
    """When a setting matters.

    Attributes:
        safe: The value with which all ways read the same rows; Spark's default.
        effect: What Spark's own reader does with any other value.
        types: Types that it concerns, within others too; empty if it concerns all rows.
        formats: Formats that it concerns; empty if all.
        by_spark: Whether it concerns only tables whose files and columns Spark would find itself,
            not those with a log.
    """

    safe: str
    effect: str
    types: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    by_spark: bool = False


class _Configuration(NamedTuple):
    """The JVM's settings of a session, which it keeps for its life: Spark's, and Hadoop's."""

    sql: Any
    hadoop: Any


_TIMES = ("timestamp", "timestamp_ntz")
_DAYS = ("date", *_TIMES)
_PARQUET, _ORC = ("parquet",), ("orc",)
_INFERENCE = "spark.sql.sources.partitionColumnTypeInference.enabled"
_RULES = {
    _INFERENCE: _Rule("true", "reads all partition values as text", by_spark=True),
    "spark.sql.timestampType": _Rule(
        "timestamp_ltz", "takes `timestamp` for local times", ("timestamp",)
    ),
    "spark.sql.files.archive.reader.enabled": _Rule("false", "reads the entries of archives"),
    "spark.sql.files.ignoreCorruptFiles": _Rule("false", "leaves out rows of damaged files"),
    "spark.sql.files.ignoreMissingFiles": _Rule("false", "leaves out files that are gone"),
    "spark.sql.files.ignoredPathSegmentRegex": _Rule(
        "^[._]", "leaves out files with other names", by_spark=True
    ),
    "spark.sql.parquet.binaryAsString": _Rule(
        "false", "reads bytes as text", ("binary",), _PARQUET
    ),
    "spark.sql.parquet.fieldId.read.enabled": _Rule(
        "false", "finds columns by their ids", (), _PARQUET, by_spark=True
    ),
    "spark.sql.parquet.int96AsTimestamp": _Rule("true", "reads no INT96", ("timestamp",), _PARQUET),
    "spark.sql.parquet.inferTimestampNTZ.enabled": _Rule(
        "true", "reads local times as timestamps", ("timestamp_ntz",), _PARQUET
    ),
    "spark.sql.legacy.parquet.nanosAsLong": _Rule(
        "false", "reads nanoseconds as numbers", _TIMES, _PARQUET
    ),
    "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": _Rule(
        "false", "reads null for structs without a requested field", ("struct",), _PARQUET
    ),
    "spark.sql.timestampNanosTypes.enabled": _Rule(
        "false", "reads nanoseconds as types of their own", _TIMES, _PARQUET
    ),
    "spark.sql.orc.impl": _Rule("native", "has Hive read the files", (), _ORC),
}
# Options of Hadoop, which a session may set too.
_RULES_OF_HADOOP = {
    "mapreduce.input.pathFilter.class": _Rule("", "leaves out files by their paths", by_spark=True),
    "orc.filter.plugin": _Rule("false", "lets plugins leave out rows", (), _ORC),
    "orc.filter.use.selected": _Rule("false", "gets rows that were not decoded", (), _ORC),
    "orc.force.positional.evolution": _Rule("false", "matches columns by position", (), _ORC),
    "orc.skip.corrupt.data": _Rule("false", "leaves out damaged rows", (), _ORC),
    "hive.exec.orc.skip.corrupt.data": _Rule("false", "leaves out damaged rows", (), _ORC),
    "orc.proleptic.gregorian": _Rule("false", "moves dates before 1582", _DAYS, _ORC),
    "orc.proleptic.gregorian.default": _Rule("false", "moves dates before 1582", _DAYS, _ORC),
}
_configurations: WeakKeyDictionary[SparkSession, _Configuration] = WeakKeyDictionary()
# Settings that are refused, besides `spark.sql.caseSensitive`.
REFUSED = frozenset({*_RULES, *_RULES_OF_HADOOP})
# Spark's server has the JVM's rules of time zones, which tasks on Spark Connect cannot ask for.
_RULES_OF_CONNECT = {
    "spark.sql.parquet.int96TimestampConversion": _Rule(
        "false", "takes INT96 for local times", ("timestamp",), _PARQUET
    ),
}


def _configuration_of(spark: SparkSession) -> _Configuration:
    if spark not in _configurations:
        session = spark._jsparkSession
        _configurations[spark] = _Configuration(
            session.sessionState().conf(), session.sparkContext().hadoopConfiguration()
        )
    return _configurations[spark]


def settings_of(spark: SparkSession) -> dict[str, str]:
    """Return the settings of a classic session that are not left at their defaults."""
    # One text for all settings: asking the JVM for them one by one takes a call for each.
    text = JavaClass(_BUILDER, spark.sparkContext._gateway._gateway_client)()
    _configuration_of(spark).sql.getAllConfs().addString(text, _BETWEEN)
    length = text.length()
    parts = (text.substring(at, min(at + _PART, length)) for at in range(0, length, _PART))
    pairs = (setting.partition(" -> ") for setting in "".join(parts).split(_BETWEEN))
    return {name: value for name, _, value in pairs}


def check_settings(spark: SparkSession, plan: Plan) -> None:
    """Refuse settings of a session that would change the rows of a plan on some ways only.

    Args:
        spark: A classic session.
        plan: What is read.
    """
    hadoop = _configuration_of(spark).hadoop
    of_hadoop = {
        name: hadoop.get(name)
        for name, rule in _RULES_OF_HADOOP.items()
        if _applies(name, rule, plan)
    }
    _check({**of_hadoop, **settings_of(spark)}, plan, _RULES | _RULES_OF_HADOOP)


def refusable(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a session of Spark Connect that may be refused for some plans."""
    rules = _RULES | _RULES_OF_HADOOP | _RULES_OF_CONNECT
    return {name: value for name, value in settings.items() if name in rules}


def check_refusable(settings: Mapping[str, str], plan: Plan) -> None:
    """Refuse settings that `refusable` returned, if they would change the rows of a plan."""
    _check(settings, plan, _RULES | _RULES_OF_HADOOP | _RULES_OF_CONNECT)


def _check(settings: Mapping[str, str | None], plan: Plan, rules: Mapping[str, _Rule]) -> None:
    types = {column.name: column.type for column in plan.columns}
    for name, rule in rules.items():
        value = settings.get(name) or rule.safe
        if value.strip().lower() == rule.safe or not _applies(name, rule, plan):
            continue
        what = _concerned(types, rule)
        if what is not None:
            remedy = rule.safe or "its default"
            raise SettingError(plan.table, name, value, rule.effect, remedy, what)


def _applies(name: str, rule: _Rule, plan: Plan) -> bool:
    """Return whether a rule is about a plan's table, whichever columns are read."""
    if (rule.formats and plan.format not in rule.formats) or (
        rule.by_spark and plan.reading.is_logged
    ):
        return False
    if name == _INFERENCE:
        return any(column.type != "string" for column in plan.partition_columns)
    # An option of the table is followed on all ways.
    return name not in plan.format_options


def _concerned(types: Mapping[str, str], rule: _Rule) -> str | None:
    """Return what a setting changes: all rows, or a column; None if it changes nothing."""
    if not rule.types:
        return "rows"
    # Names of fields are followed by a colon.
    pattern = re.compile(rf"(?<![\w`])(?:{'|'.join(rule.types)})(?![\w`:])")
    columns = (name for name, type_ in types.items() if pattern.search(type_))
    return next((f"column {name!r}" for name in columns), None)
