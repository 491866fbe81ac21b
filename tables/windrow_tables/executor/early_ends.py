"""Tasks whose rows Spark stops reading early, as for `LIMIT`, end without a traceback."""

from __future__ import annotations

import sys
import traceback
import types
from typing import Any

# Spark's daemon is the worker's main program, or a module that a daemon of the user's runs.
_DAEMONS = ("__main__", "pyspark.daemon")


class _TracesOfErrors(types.ModuleType):
    """The module `traceback` as a worker's daemon uses it, silent about rows that nobody reads."""

    def __getattr__(self, name: str) -> Any:
        return getattr(traceback, name)

    def print_exc(self, *args: Any, **options: Any) -> None:
        """Print the error that ended a worker, unless Spark had closed the worker's output."""
        if not isinstance(sys.exc_info()[1], (BrokenPipeError, ConnectionResetError)):
            traceback.print_exc(*args, **options)


def end_early_in_silence() -> None:
    """Let this worker process end silently once Spark no longer reads its output.

    From 4.1 on, Spark's daemon prints the error if a worker cannot write the rest of its output.
    That happens after the task, so the task cannot catch it. Errors of the task itself are
    caught earlier and sent to Spark.
    """
    for name in _DAEMONS:
        daemon = sys.modules.get(name)
        if hasattr(daemon, "manager") and getattr(daemon, "traceback", None) is traceback:
            daemon.__dict__["traceback"] = _TracesOfErrors("traceback")
