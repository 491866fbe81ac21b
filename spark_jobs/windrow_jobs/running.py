"""How a job runs: its Spark session, its client, its progress messages and its exit code."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from windrow_calls.connecting import transport_to
from windrow_calls.coordinator import Coordinator
from windrow_calls.errors import WindrowError
from windrow_calls.terminal.consoles import error_console
from windrow_core.cards import count_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CoordinatorUrl: TypeAlias = Annotated[
    str, typer.Option(envvar="WINDROW_URL", help="URL of the coordinator.", metavar="URL")
]

Tell: TypeAlias = Callable[[str], None]

_INTERVAL_S = 3.0


class SparkWhenNeeded:
    """Starts a session at its first call, and stops it at the end of its block.

    Attributes:
        started: The session; None before it is started.
    """

    def __init__(
        self, name: str, master: str | None = None, conf: Mapping[str, str] | None = None
    ) -> None:
        """Take the application's name, the master (default: Spark's configuration) and settings."""
        self.started: SparkSession | None = None
        self._name = name
        self._master = master
        self._conf = conf or {}

    def __call__(self) -> SparkSession:
        """Return the session."""
        if self.started is None:
            from pyspark.sql import SparkSession

            from windrow_spark.placement import require_classic

            builder = SparkSession.builder.appName(self._name)
            # The jobs' own progress messages are more useful.
            builder = builder.config("spark.ui.showConsoleProgress", "false")
            for key, value in self._conf.items():
                builder = builder.config(key, value)
            if self._master is not None:
                builder = builder.master(self._master)
            self.started = builder.getOrCreate()
            require_classic(self.started)
        return self.started

    def __enter__(self) -> SparkWhenNeeded:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.started is not None:
            self.started.stop()


@contextmanager
def coordinator_of_command(url: str) -> Iterator[Coordinator]:
    """Yield a coordinator; errors in the block are shown as one line, with exit code 1."""
    try:
        with closing(transport_to(url, check=False)) as transport:
            yield Coordinator(transport)
    except WindrowError as error:
        typer.echo(f"windrow: {error}", err=True)
        raise SystemExit(1) from error


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
    end = threading.Event()

    def watch() -> None:
        while not end.wait(_INTERVAL_S):
            act()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        end.set()
        watcher.join()


def tell_tasks(spark: SparkSession, tell: Tell) -> None:
    """Report the progress of the running stages."""
    tracker = spark.sparkContext.statusTracker()
    for stage in map(tracker.getStageInfo, tracker.getActiveStageIds()):
        if stage is not None:
            tell(f"{stage.numCompletedTasks:,} of {count_text(stage.numTasks, 'task')}")
