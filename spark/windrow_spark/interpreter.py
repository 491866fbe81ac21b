"""Which Python runs Windrow's tasks: one that has their packages, unless another is chosen."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark import RDD, SparkContext
from pyspark.errors import PySparkException

from windrow_spark.failures import unusable_python

T = TypeVar("T")

# What Spark takes, from the PATH, if nobody has chosen an interpreter.
_DEFAULT = "python3"

_choosing = threading.RLock()


def is_local(context: SparkContext) -> bool:
    """Return whether tasks run in the driver's own process; `local-cluster[…]` is a cluster."""
    master = str(context.master)
    return master == "local" or master.startswith("local[")


def tasks_interpreter(context: SparkContext) -> str:
    """Return the Python of Windrow's tasks.

    It is the one that the user has chosen, also after the session started. Otherwise, in local
    mode, it is the driver's: the first `python3` of the PATH lacks the driver's packages if the
    driver's virtual environment is not activated, as in most notebooks.
    """
    spark_takes = str(context.pythonExec)
    if spark_takes != _DEFAULT:
        return spark_takes
    # Not `getConf()`, which copies all settings, one call of the JVM for each.
    python = os.environ.get("PYSPARK_PYTHON") or context._conf.get("spark.pyspark.python")
    if python:
        return python
    return (is_local(context) and sys.executable) or _DEFAULT


@contextmanager
def interpreter_of_tasks(context: SparkContext) -> Iterator[None]:
    """Let the functions that the block hands to Spark run in the interpreter of Windrow's tasks.

    Spark notes the interpreter when it takes over a function, so the user's own functions, before
    and after, keep theirs.
    """
    with _choosing:
        before = context.pythonExec
        context.pythonExec = tasks_interpreter(context)
        try:
            yield
        finally:
            context.pythonExec = before


def collected(rows: RDD[T]) -> list[T]:
    """Return the elements of an RDD whose functions run in the interpreter of Windrow's tasks."""
    with interpreter_of_tasks(rows.context):
        # Spark takes over an RDD's functions when its counterpart in the JVM is first asked for.
        _ = rows._jrdd
    try:
        elements: list[T] = rows.collect()
    except (PySparkException, Py4JError) as error:
        if unusable := unusable_python(error):
            raise unusable from error
        raise
    return elements
