"""A local Spark session without noise on the console."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.errors import WindrowError
from windrow.installed import MissingPackageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OLDEST_JAVA = 17
_CONF = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}


@dataclass(eq=False)
class MissingJavaError(WindrowError):
    """There is no Java, or one that is too old for Spark."""

    found: str
    message = "Spark needs Java 17 or newer, but {found}: {remedy}"
    remedy = (
        "install it (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew "
        "install openjdk@17; without root: unpack one from https://adoptium.net), and set "
        "JAVA_HOME to its folder if `java` is not on the PATH"
    )


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

    Raises:
        MissingPackageError: PySpark is not installed.
        MissingJavaError: There is no Java 17 or newer.
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


def require_java() -> None:
    """Make sure that there is a Java that Spark can run on.

    Raises:
        MissingJavaError: There is no Java, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    if java is None:
        raise MissingJavaError(f"there is none in JAVA_HOME ({home})" if home else "none was found")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if answer.returncode or version is None:
        raise MissingJavaError(f"{java} does not run")
    if int(version[1]) < _OLDEST_JAVA:
        raise MissingJavaError(f"{java} is Java {version[1]}")


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
    kept = {number: os.dup(number) for number in (1, 2)}
    with log.open("ab") as file:
        for number in kept:
            os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        for number, copy in kept.items():
            os.dup2(copy, number)
            os.close(copy)
