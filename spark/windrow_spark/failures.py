"""Why a Spark job failed, found in the traces that Spark wraps around the reason."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException

from windrow_calls.errors import WindrowError
from windrow_core.files.access import remedy_in
from windrow_spark.errors import PlanningFailedError, TaskFailedError
from windrow_tables import executor
from windrow_tables.executor import shipping
from windrow_tables.executor.errors import InaccessibleFileError, StaleFileError

_RAISED = re.compile(rf"^\s*(?:\S+: )?{re.escape(executor.__name__)}\.errors\.(\w+): (.+)$", re.M)

# The message of `PlannedFormat.java`.
_STALE = re.compile(r"IllegalStateException: (?P<what>file '.*' has .* since the plan was made.*)")
# The message of `BucketUse.java`, which names the remedy.
_MISPLACED = re.compile(r"IllegalStateException: (?P<what>a row of .* not in the bucket .*)")
# The message of `PackRows.java`, which names the remedy.
_PACK = re.compile(r"IllegalStateException: (?P<what>pack '.*' cannot be read .*)")
# Spark's message about a file that its own reader cannot read, or that is gone.
_NATIVE = re.compile(r"(?:reading file|\bFile) file:/*(?P<path>/\S+?)(?:\.? |\.?\n|\.?$)")
_NATIVE_REMEDY = "if it has changed since it was planned, refresh the table and ask again"

_TRACED = re.compile(
    r"^Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)+(?P<raised>\S.*)$", re.M
)
# The error of a process of Spark's server that opens or plans a table.
_PLANNED = re.compile(r"^windrow(?:_\w+)?\.(?:\w+\.)*(?P<kind>\w+): (?P<detail>.+)$", re.M)
_CAUSED = re.compile(r"Caused by: (?:[\w.$]+: )?(.+)")

# What a task raises, or Spark's worker before it, if its interpreter lacks a package.
_MISSING = re.compile(
    r"ModuleNotFoundError: (?P<what>No module named '(?:numpy|pyarrow)')(?P<told>: .+)?$", re.M
)
_MISSING_REMEDY = f": the Python that runs this session's tasks lacks it; {shipping.REMEDY}"
# What Spark's worker raises if its Python has another minor version than the driver's.
_OTHER_VERSION = re.compile(
    r"Python in worker has different version:? (?P<tasks>[\d.]+) than that in driver:? "
    r"(?P<driver>[\d.]+\d)"
)
# What an executor raises if there is no such Python, or if it ends before it can run a task.
_NO_PYTHON = re.compile(r'Cannot run program "(?P<python>[^"]+)": (?:error=\d+, )?(?P<why>.+)')
_BROKEN_PYTHON = re.compile(r"^Error from python worker:\n(?P<said>(?:[ \t].*\n|\n)+)", re.M)

_KEPT_ERRORS = 32
_errors: OrderedDict[str, Exception] = OrderedDict()


def remembered(error: Exception) -> str:
    """Keep an error for `plain_errors`, and return the text that the JVM is to fail with."""
    is_own = isinstance(error, WindrowError)
    text = str(error) if is_own else f"{type(error).__name__}: {error}"
    _errors[text] = error
    if len(_errors) > _KEPT_ERRORS:
        _errors.popitem(last=False)
    return text


def thrown_by_spark(error: BaseException) -> Any:
    """Return the JVM's exception that an error stems from; None if there is none."""
    cause: BaseException | None = error
    while cause is not None:
        exception = getattr(cause, "java_exception", None) or getattr(cause, "_origin", None)
        if exception is not None:
            return exception
        cause = cause.__cause__
    return None


def cause_of(error: BaseException) -> str:
    """Return the line that tells why a Spark job failed: Python's error, or the root cause."""
    text = str(error).strip()
    causes = [match["raised"] for match in _TRACED.finditer(text)] or _CAUSED.findall(text)
    return causes[-1] if causes else text.partition("\n")[0]


def stated_cause(error: BaseException) -> str:
    """Return the same line, with the remedy if the system has refused something."""
    cause = cause_of(error)
    remedy = remedy_in(cause)
    return f"{cause}: {remedy}" if remedy else cause


def unusable_python(error: BaseException) -> TaskFailedError | None:
    """Return why the interpreter of a failed job's tasks cannot run them; None if it can."""
    text = str(error)
    if missing := _MISSING.search(text):
        return TaskFailedError(
            "ModuleNotFoundError", missing["what"] + (missing["told"] or _MISSING_REMEDY)
        )
    if other := _OTHER_VERSION.search(text):
        return _interpreter_error(
            f"tasks run with Python {other['tasks']}, and the driver with {other['driver']}, but "
            f"Spark needs one minor version: for tasks, {shipping.REMEDY_OF_VERSION}"
        )
    if absent := _NO_PYTHON.search(text):
        return _interpreter_error(
            f"the Python of this session's tasks, {absent['python']}, cannot be started "
            f"({absent['why'].strip()}); {shipping.REMEDY}"
        )
    if broken := _BROKEN_PYTHON.search(text):
        last_words = broken["said"].strip().splitlines()[-1].strip()
        return _interpreter_error(
            f"the Python of this session's tasks ends when it starts ({last_words}); {shipping.REMEDY}"
        )
    return None


def _interpreter_error(detail: str) -> TaskFailedError:
    return TaskFailedError("InterpreterError", detail)


def task_failure(error: BaseException) -> TaskFailedError | None:
    """Return the reader's error that failed a Spark job; None if another error did.

    Example:
        try:
            client.read(spark, "sales.events").count()
        except Exception as error:
            print(windrow.spark.task_failure(error))
            raise
    """
    if isinstance(error, TaskFailedError):
        return TaskFailedError(error.kind, error.detail)
    text = str(error)
    raises = _RAISED.findall(text)
    if raises:
        return TaskFailedError(*raises[-1])
    stale = _STALE.search(text)
    if stale is not None:
        return TaskFailedError("StaleFileError", f"{stale['what']}; {StaleFileError.remedy}")
    if pack := _PACK.search(text):
        return TaskFailedError("UnreadablePackError", pack["what"])
    if misplaced := _MISPLACED.search(text):
        return TaskFailedError("WrongBucketError", misplaced["what"])
    native = _NATIVE.search(text)
    if native is None:
        return unusable_python(error)
    cause = cause_of(error)
    reason = f"{unquote(native['path'])} cannot be read by Spark's own reader ({cause})"
    if remedy := remedy_in(cause):
        return TaskFailedError(InaccessibleFileError.__name__, f"{reason}: {remedy}")
    return TaskFailedError("UnreadableFileError", f"{reason}: {_NATIVE_REMEDY}")


def _of_stream(error: BaseException) -> Exception | None:
    """Return the error that stopped a streaming query; Spark puts its text among others."""
    if not isinstance(error, StreamingQueryException):
        return None
    text = str(error)
    return next((refusal for words, refusal in _errors.items() if words in text), None)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise the reader's own error, in one line, if a Spark job fails because of it.

    ```python
    with windrow.spark.plain_errors():
        df.count()
    ```

    Raises:
        TaskFailedError: A file of the plan could not be read as planned.
        WindrowError: A query could not be planned.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        # Before Spark 4.0, the attribute is public.
        text = getattr(error, "_desc", None) or getattr(error, "desc", None)
        refusal = _errors.get(text or "") or _of_stream(error)
        if refusal is not None:
            raise refusal from error
        failure = task_failure(error)
        if failure is not None:
            failure.spark_error = error
            raise failure from error
        refusals = _PLANNED.findall(str(error))
        if not refusals:
            raise
        raise PlanningFailedError(*refusals[-1]) from error
