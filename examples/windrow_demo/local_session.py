"""A local Spark session without noise on the console."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from windrow_calls.installed import MissingPackageError
from windrow_calls.terminal.java import require_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONF = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}


@contextmanager
def local_session(
    app_name: str,
    log: Path,
    *,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """Start a Spark session, and stop it at the end of the block.

    All settings for reading and shuffling keep Spark's defaults.

    Args:
        app_name: Name of the application.
        log: File for the output of the JVM and the Python workers.
        master: Spark master.
        conf: Further settings.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingPackageError("pyspark", "spark") from error
    require_java()
    # Otherwise Spark's workers run whatever `python3` is on the PATH.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).appName(app_name)
    for key, value in {**_CONF, **(conf or {})}.items():
        builder = builder.config(key, value)
    with _output_to(log), _kept_interrupt():
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
    # Py4J logs a traceback for any exception that interrupts a call, including Ctrl-C.
    traces = logging.FileHandler(log)
    logging.getLogger().addHandler(traces)
    try:
        yield session
    finally:
        session.stop()
        logging.getLogger().removeHandler(traces)
        traces.close()


@contextmanager
def _kept_interrupt() -> Iterator[None]:
    """Keep the handler of Ctrl-C: PySpark's handler calls the JVM in the middle of other calls."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """Send the output of child processes started in the block to `log`, as long as they run."""
    sys.stdout.flush()
    sys.stderr.flush()
    log.parent.mkdir(parents=True, exist_ok=True)
    copies = {number: os.dup(number) for number in (1, 2)}
    with log.open("ab") as file:
        for number in copies:
            os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        for number, copy in copies.items():
            os.dup2(copy, number)
            os.close(copy)
