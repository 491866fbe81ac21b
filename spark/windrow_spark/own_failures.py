"""Failures of Windrow's own tasks, which Spark's calls raise as one line instead of their trace."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions import captured

from windrow_spark.errors import TaskFailedError
from windrow_spark.failures import task_failure

# In the traces of the JVM and of Python: a frame of Windrow's classes, or an error of its reader.
_OURS = ("\tat windrow.", "windrow_tables.executor.errors.")


class OwnTaskError(TaskFailedError):
    """A task could not read its group, told by a call of Spark's.

    It is an error of the class that Spark would have raised, too, so that whoever catches that one
    still does.
    """


@cache
def install() -> None:
    """Let the calls of this process raise Windrow's own failures in one line, from now on.

    Py4J has one function for the answers of all calls. PySpark puts a wrapper around it whenever a
    session begins, so that is where this one goes.
    """
    spark_wrapper = captured.capture_sql_exception

    def wrapper(function: Callable[..., Any]) -> Callable[..., Any]:
        return _plain(spark_wrapper(function))

    vars(captured)["capture_sql_exception"] = wrapper
    captured.install_exception_handler()


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except (Py4JJavaError, PySparkException) as error:
            failure = _own_failure(error)
            if failure is None:
                raise
            raise failure from None

    return call


def _own_failure(error: Exception) -> OwnTaskError | None:
    """Return what a call raises in place of Spark's error; None if that is not about our tasks."""
    text = str(error)
    if not any(mark in text for mark in _OURS):
        return None
    failure = task_failure(error)
    if failure is None:
        return None
    kind = type(TaskFailedError.__name__, (OwnTaskError, type(error)), {})
    # Neither constructor would do: one of them belongs to PySpark.
    own: Any = Exception.__new__(kind, failure.kind, failure.detail)
    assert isinstance(own, OwnTaskError)
    vars(own).update(vars(error) | {"kind": failure.kind, "detail": failure.detail})
    own.spark_error = error
    return own
