"""Checks of a Spark session: its kind, its JVM, and the Python that its tasks run."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from windrow_calls.diagnosis import Check
from windrow_core.cards import count_text
from windrow_spark.driver_checks import release
from windrow_spark.errors import FormatUnavailableError, RelationUnavailableError
from windrow_spark.placement import default_parallelism, is_classic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OLDEST, _OLDEST_CONNECT = (3, 5), (4, 0)
_OLDEST_ARROW = 18
# More would tell nothing new of a cluster.
_MOST_TASKS = 64
_CONNECT_PAGE, _PYTHON_PAGE = "how-to/spark-connect", "how-to/read"
# Settings that only the builds of these vendors have.
_VENDORS = {
    "Databricks": "spark.databricks.clusterUsageTags.sparkVersion",
    "Amazon EMR": "spark.emr.default.executor.memory",
    "Google Dataproc": "spark.dataproc.engine",
    "Microsoft Fabric": "spark.trident.pbiHost",
}


class _Python(NamedTuple):
    """The Python of a task: where it runs, and the versions of its packages, empty if missing."""

    host: str
    version: str
    numpy: str
    arrow: str
    has_windrow: bool


def session_checks(spark: SparkSession) -> Iterator[Check]:
    """Check a session; one job of a task for each slot runs, and nothing is registered."""
    yield _session(spark)
    if is_classic(spark):
        yield from _classic(spark)
    else:
        yield from _connect(spark)


def _session(spark: SparkSession) -> Check:
    version, classic = spark.version, is_classic(spark)
    vendor = _vendor(spark)
    kind = "classic" if classic else "Spark Connect"
    result = f"Spark {version}, {kind}" + (f", by {vendor}" if vendor else "")
    if release(version) < (_OLDEST if classic else _OLDEST_CONNECT):
        oldest = "3.5" if classic else "4.0"
        return Check("session", "failure", f"{result}: too old", f"use Spark {oldest} or newer")
    return Check("session", "ok", result)


def _vendor(spark: SparkSession) -> str:
    for name, setting in _VENDORS.items():
        if name.lower() in spark.version.lower() or spark.conf.get(setting, ""):
            return name
    return ""


def _classic(spark: SparkSession) -> Iterator[Check]:
    from py4j.protocol import Py4JError

    remedy = (
        "read through `client.scan`, or through the Iceberg catalog that the coordinator serves"
    )
    try:
        jvm: Any = spark.sparkContext._jvm
        java = jvm.java.lang.System.getProperty("java.version")
    except (Py4JError, TypeError) as error:
        reason = str(error).strip().partition("\n")[0]
        yield Check(
            "jvm", "failure", f"its JVM cannot be reached: {reason}", remedy, "how-to/engines"
        )
        return
    yield Check("jvm", "ok", f"Java {java}")
    yield _classes(spark, remedy)
    yield _tasks(spark)


def _classes(spark: SparkSession, remedy: str) -> Check:
    from windrow_spark.relation.java_classes import planned_format

    try:
        planned_format(spark, "parquet", {})
    except (RelationUnavailableError, FormatUnavailableError) as error:
        return Check("tables in SQL", "failure", str(error), remedy, "how-to/engines")
    return Check(
        "tables in SQL", "ok", "views, the catalog `windrow`, `client.read` and `accelerate` work"
    )


def _tasks(spark: SparkSession) -> Check:
    slots = min(default_parallelism(spark), _MOST_TASKS)
    probe = _probe()
    try:
        rdd = spark.sparkContext.parallelize(range(slots), slots).mapPartitions(lambda _: [probe()])
        pythons = [_Python(*values) for values in rdd.collect()]
    except Exception as error:
        return _tasks_failed(error)
    return _pythons(pythons)


def _connect(spark: SparkSession) -> Iterator[Check]:
    probe = _probe()

    def row(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for _ in batches:
            pass
        names = ["host", "version", "numpy", "arrow", "has_windrow"]
        yield pa.RecordBatch.from_pylist([dict(zip(names, probe(), strict=True))])

    schema = "host string, version string, numpy string, arrow string, has_windrow boolean"
    try:
        values = spark.range(0, 1, 1, 1).mapInArrow(row, schema).collect()
    except Exception as error:
        yield _tasks_failed(error)
        return
    pythons = [_Python(*value) for value in values]
    yield _pythons(pythons)
    if all(one.has_windrow for one in pythons):
        yield Check(
            "tables", "ok", "`windrow.register(spark)` and format `windrow` work on the server"
        )
    else:
        yield Check(
            "tables",
            "warning",
            "Windrow is not installed where Spark's server runs, so it has no format `windrow`",
            "pip install 'windrow-spark[spark]' there; or read through `client.scan`, or through the "
            "Iceberg catalog that the coordinator serves",
            _CONNECT_PAGE,
        )


def _tasks_failed(error: Exception) -> Check:
    # Spark's own lines say where, and one of Python's among them why.
    text = str(error)
    reasons = re.findall(r"^\s*(\w+(?:Error|Exception): .+)", text, re.MULTILINE)
    reason = reasons[0] if reasons else text.strip().partition("\n")[0]
    return Check(
        "tasks",
        "failure",
        f"tasks cannot run Python: {reason}",
        f"start executors with Python {sys.version_info[0]}.{sys.version_info[1]}, NumPy and pyarrow, and "
        " set spark.pyspark.python to it",
        _PYTHON_PAGE,
    )


def _pythons(pythons: list[_Python]) -> Check:
    gaps = sorted(
        {
            f"{one.host} ({'no NumPy' if not one.numpy else f'pyarrow {one.arrow}' if one.arrow else 'no pyarrow'})"
            for one in pythons
            if not one.numpy or _major(one.arrow) < _OLDEST_ARROW
        }
    )
    if gaps:
        return Check(
            "tasks",
            "failure",
            f"executors need NumPy, and pyarrow {_OLDEST_ARROW} or newer: {', '.join(gaps)}",
            f"install NumPy, and pyarrow {_OLDEST_ARROW} or newer, where executors run",
            _PYTHON_PAGE,
        )
    hosts = count_text(len({one.host for one in pythons}), "host")
    first = pythons[0]
    return Check("tasks", "ok", f"Python {first.version} with pyarrow {first.arrow} on {hosts}")


def _major(version: str) -> int:
    return int(version.partition(".")[0]) if version else 0


def _probe() -> Any:
    """Return a function that travels to tasks by value, since these have no Windrow."""

    def probe() -> tuple[str, str, str, str, bool]:
        import importlib
        import importlib.util
        import platform

        versions = {}
        for name in ("numpy", "pyarrow"):
            try:
                versions[name] = str(importlib.import_module(name).__version__)
            except ImportError:
                versions[name] = ""
        has_windrow = importlib.util.find_spec("windrow") is not None
        return (
            platform.node(),
            platform.python_version(),
            versions["numpy"],
            versions["pyarrow"],
            has_windrow,
        )

    return probe
