"""How a Spark session reads old dates and times, for tasks that read as it does."""

from __future__ import annotations

import json
from dataclasses import astuple
from functools import lru_cache
from typing import Any

from pyspark.sql import SparkSession

from windrow_tables.executor.local_times import CYCLE_YEARS
from windrow_tables.executor.rebasing import Calendars, Zone

_CONF = "spark.sql.parquet.{}RebaseModeInRead"
_CONVERSION = "spark.sql.parquet.int96TimestampConversion"
_SWITCHES = "julian-gregorian-rebase-micros.json"
# The switches before 1582-10-15 follow from the calendar.
_CALENDAR_SWITCHES = 13
_FIRST_SWITCH_S = -62_135_769_600  # 1 January of year 1 in the Julian calendar, UTC
_FIRST_SHIFT_S = 172_800


def calendars_of(spark: SparkSession) -> Calendars:
    """Return the calendars of a classic session, with its Spark's table of time zones."""
    jvm: Any = spark.sparkContext._jvm
    return Calendars(
        dates=mode_of(spark, "datetime"),
        int96=mode_of(spark, "int96"),
        zone=str(jvm.java.util.TimeZone.getDefault().getID()),
        zones=_zones(jvm),
        local=local_zone(jvm, spark.conf.get("spark.sql.session.timeZone"))
        if converts_int96(spark)
        else "",
    )


def converts_int96(spark: SparkSession) -> bool:
    """Return whether a session takes INT96 for local times, unless parquet-mr wrote the file."""
    return str(spark.conf.get(_CONVERSION)).strip().lower() == "true"


def mode_of(spark: SparkSession, what: str) -> str:
    """Return how a session, classic or of Spark Connect, reads old `datetime` or `int96` values."""
    return str(spark.conf.get(_CONF.format(what))).upper()


@lru_cache(maxsize=1)
def _zones(jvm: Any) -> str:
    """Return Spark's own table of zones, in the short form of `Zone`."""
    stream = jvm.org.apache.spark.util.Utils.getSparkClassLoader().getResourceAsStream(_SWITCHES)
    zones: dict[str, Zone] = {}
    for record in json.loads(bytes(stream.readAllBytes())):
        switches, shifts = record["switches"], record["diffs"]
        zones[record["tz"]] = Zone(
            _FIRST_SWITCH_S - switches[0],
            shifts[0] - _FIRST_SHIFT_S,
            tuple(switches[_CALENDAR_SWITCHES:]),
            tuple(shifts[_CALENDAR_SWITCHES:]),
        )
    return json.dumps({name: astuple(zone) for name, zone in zones.items()})


@lru_cache(maxsize=16)
def local_zone(jvm: Any, name: str) -> str:
    """Return the offsets of local times in a zone, as the text of a `LocalZone`."""
    utils = jvm.org.apache.spark.sql.catalyst.util.DateTimeUtils
    rules = utils.getZoneId(name).getRules()
    offsets = [rules.getOffset(jvm.java.time.Instant.MIN).getTotalSeconds()]
    switches = []

    def add(instant_s: int, offset: int) -> None:
        # Before this local time, be it within a gap or an overlap, Java applies the old offset.
        switches.append(instant_s + max(offsets[-1], offset))
        offsets.append(offset)

    instant_s, year = 0, 0
    for transition in rules.getTransitions():
        instant_s = transition.toEpochSecond()
        add(instant_s, transition.getOffsetAfter().getTotalSeconds())
        year = transition.getDateTimeBefore().getYear()
    recurring = [
        (rule, rule.getOffsetAfter().getTotalSeconds()) for rule in rules.getTransitionRules()
    ]
    # The years before and after the cycle make sure that it is complete.
    coming = (
        (rule.createTransition(year + at).toEpochSecond(), offset)
        for at in range(CYCLE_YEARS + 2)
        for rule, offset in recurring
    )
    for next_s, offset in sorted(coming):
        if next_s > instant_s:
            add(next_s, offset)
    return json.dumps([switches, offsets, bool(recurring)])
