"""`windrow maintain` beside a coordinator, in processes of its own, again and again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType
from typing import Protocol

_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=5), timedelta(hours=1)
_MOST_DOUBLINGS = 10
_STOP_TIMEOUT_S = 10.0
# Lines that the command prints about its work; Spark's own log has others.
_PROGRESS, _ERROR = "maintenance: ", "windrow: "
# Of a run that dies, these are logged.
_LAST_LINES = 5


class Log(Protocol):
    """A log of events with fields."""

    def info(self, event: str, **fields: object) -> object:
        """Write what happens."""

    def warning(self, event: str, **fields: object) -> object:
        """Write what somebody should look at."""


def command(url: str, master: str) -> list[str]:
    """Return the command that does the work which is due, and ends."""
    return [
        *(sys.executable, "-m", "windrow_cli", "maintain", "--once"),
        *("--url", url, "--master", master),
    ]


def pause_after(failures: int, every: timedelta) -> timedelta:
    """Return how long to wait before the next run.

    Args:
        failures: Number of runs in a row that died, up to now.
        every: The pause after a run that did not.
    """
    if not failures:
        return every
    return min(_FIRST_PAUSE * (1 << min(failures - 1, _MOST_DOUBLINGS)), _LONGEST_PAUSE)


class MaintenanceLoop:
    """Runs a command, waits, and runs it again, in a thread, from the start of its block to the end.

    Each run is a process of its own, which takes its Java process with it when it ends. A run that
    dies is followed by another one soon, and after each further one that dies a bit later.
    """

    def __init__(self, words: Sequence[str], every: timedelta, log: Log) -> None:
        """Take the command, the pause between runs, and the log."""
        self._words = list(words)
        self._every = every
        self._log = log
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._loop, name="maintenance", daemon=True)

    def __enter__(self) -> MaintenanceLoop:
        self._log.info("maintenance runs beside the coordinator", every=str(self._every))
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._end.set()
            process = self._process
        if process is not None:
            _stop(process)
        self._thread.join()

    def _loop(self) -> None:
        failures = 0
        while not self._end.is_set():
            code, last_lines = self._run()
            if self._end.is_set():
                return
            failures = 0 if code == 0 else failures + 1
            pause = pause_after(failures, self._every)
            if code != 0:
                self._log.warning(
                    "maintenance died, and is started again",
                    exit_code=code,
                    pause=str(pause),
                    last_lines=last_lines,
                )
            self._end.wait(pause.total_seconds())

    def _run(self) -> tuple[int, list[str]]:
        """Run the command; return its exit code, and the last lines that it printed."""
        with self._lock:
            if self._end.is_set():
                return 0, []
            # A session of its own: Ctrl-C in a terminal is for the coordinator, which stops it.
            process = self._process = subprocess.Popen(
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                # Lines are read here, whatever the width of the terminal.
                env={name: text for name, text in os.environ.items() if name != "COLUMNS"},
                start_new_session=True,
            )
        last_lines: deque[str] = deque(maxlen=_LAST_LINES)
        assert process.stderr is not None
        with process.stderr as lines:
            for line in map(str.rstrip, lines):
                last_lines.append(line)
                if line.startswith((_PROGRESS, _ERROR)):
                    self._log.info("maintenance", line=line.removeprefix(_PROGRESS))
        return process.wait(), list(last_lines)


def _stop(process: subprocess.Popen[str]) -> None:
    """End a process with its Java process; what it has committed stays."""
    _signal(process, "SIGTERM")
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        _signal(process, "SIGKILL")
        process.wait()


def _signal(process: subprocess.Popen[str], name: str) -> None:
    if sys.platform == "win32":
        process.kill()
        return
    try:
        os.killpg(process.pid, getattr(signal, name))
    except ProcessLookupError:
        return
