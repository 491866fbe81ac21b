"""Checks of where a client runs: the machine, the coordinator, and a Spark session."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

from windrow_calls.coordinator_checks import coordinator_checks
from windrow_calls.diagnosis import Check, Diagnosis
from windrow_core.sizes import size_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windrow_calls.transport import Transport

# Staging files, and Spark's own shuffles, need more than this soon.
_LEAST_FREE_BYTES = 2**30


def diagnosis(transport: Transport, spark: SparkSession | None) -> Diagnosis:
    """Make all checks.

    Args:
        transport: Carries requests to the coordinator.
        spark: A session to check, too.
    """
    checks = [*_machine(), *coordinator_checks(transport)]
    if spark is not None:
        from windrow_spark.session_checks import session_checks

        checks += session_checks(spark)
    return Diagnosis(checks)


def _machine() -> Iterator[Check]:
    yield Check("python", "ok", f"Python {platform.python_version()} at {sys.executable}")
    if importlib.util.find_spec("pyspark") is None:
        yield Check("spark", "ok", "not installed here, so this client reads without Spark")
    else:
        from windrow_spark.driver_checks import driver_checks

        yield from driver_checks()
    free_bytes = shutil.disk_usage(tempfile.gettempdir()).free
    disk = f"{tempfile.gettempdir()} has {size_text(free_bytes)} left"
    if free_bytes < _LEAST_FREE_BYTES:
        yield Check("disk", "warning", disk, "make room there, or set TMPDIR to a larger disk")
    else:
        yield Check("disk", "ok", disk)
