"""How a Spark session reads old dates and times, for tasks that read as it does."""

from __future__ import annotations

import json
from dataclasses import astuple
from functools import lru_cache
from typing import Any

from pyspark.sql import SparkSession

from windrow.spark.executor.rebasing import Calendars, Zone

_CONF = "spark.sql.parquet.{}RebaseModeInRead"
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
    )


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
