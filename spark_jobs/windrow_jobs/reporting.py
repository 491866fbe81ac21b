"""Progress of a running job, on stderr."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from pyspark.sql import SparkSession

from windrow.terminal.consoles import error_console

Tell: TypeAlias = Callable[[str], None]

_INTERVAL_S = 3.0


def telling(name: str, *, quiet: bool) -> Tell:
    """Return a function that prints progress for a table, or nothing if `quiet`.

    `quiet` is for output as JSON, since spark-submit sends a job's stderr to stdout.
    """
    console = error_console()

    def tell(text: str) -> None:
        if not quiet:
            console.print(f"{name}: {text}", markup=False)

    return tell


@contextmanager
def now_and_then(act: Callable[[], None]) -> Iterator[None]:
    """Call a function every few seconds in a thread until the block ends."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_INTERVAL_S):
            act()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def tell_tasks(spark: SparkSession, tell: Tell) -> None:
    """Report the progress of the running stages."""
    tracker = spark.sparkContext.statusTracker()
    for stage in map(tracker.getStageInfo, tracker.getActiveStageIds()):
        if stage is not None:
            tell(f"{stage.numCompletedTasks:,} of {stage.numTasks:,} tasks")
