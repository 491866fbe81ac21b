"""An executor whose tasks may crash: each runs in a separate process.

Arrow crashes the whole process on some damaged Parquet footers, so no footer is parsed in the
coordinator's own process. `ProcessPoolExecutor` is not suitable: one lost process breaks the
whole pool, and each process runs the caller's main script again, which a script with an embedded
coordinator does not expect. The memory that a hostile file can make a task allocate is also
limited.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, TypeVar

from windrow.files.isolated import STARTED

_Result = TypeVar("_Result")

_SHOWN_STDERR_BYTES = 1_000
# Import `chunks`, which reads footers, first: its memory must not count as growth by a file.
_CODE = "from windrow.files import chunks, isolated; isolated.serve()"


class LostProcessError(Exception):
    """The process that ran a task ended during the task.

    Attributes:
        last_words: The end of its standard error; may be empty.
    """

    def __init__(self, last_words: str) -> None:
        super().__init__(last_words)
        self.last_words = last_words

    def __str__(self) -> str:
        return f"the process ended during its task: {self.last_words or 'it said nothing'}"


class IsolatedExecutor(Executor):
    """Runs tasks in its own processes, which are started when needed and then kept.

    A task whose process is lost raises `LostProcessError`; other tasks continue. Functions and
    arguments are pickled, so functions must be at the top level of their module.

    Args:
        max_workers: Most processes at a time; by default the number of processors.
    """

    def __init__(self, max_workers: int | None = None) -> None:
        self._threads = ThreadPoolExecutor(
            max_workers or _processor_count(), thread_name_prefix="windrow-isolated"
        )
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._busy: set[_Process] = set()
        self._killed = False

    def submit(self, fn: Callable[..., _Result], /, *args: Any, **kwargs: Any) -> Future[_Result]:
        """See `concurrent.futures.Executor.submit`."""
        return self._threads.submit(self._run, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """See `concurrent.futures.Executor.shutdown`; it always waits."""
        self._threads.shutdown(wait=True, cancel_futures=cancel_futures)
        while self._idle:
            self._idle.pop().close()

    def kill(self) -> None:
        """End all processes at once; running tasks are lost, and no new process starts."""
        with self._lock:
            self._killed = True
            for process in self._busy:
                process.kill()

    def _run(
        self, fn: Callable[..., _Result], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> _Result:
        with self._lock:
            process = self._idle.pop() if self._idle else None
        process = process or _Process()
        with self._lock:
            self._busy.add(process)
            if self._killed:
                process.kill()
        try:
            is_result, answer = process.ask((fn, args, kwargs))
        except BaseException:
            with self._lock:
                self._busy.discard(process)
            process.close()
            raise
        with self._lock:
            self._busy.discard(process)
            self._idle.append(process)
        if not is_result:
            raise answer
        result: _Result = answer
        return result


def _processor_count() -> int:
    # Not every platform tells which processors this process may use.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Process:
    """One process and the pipes to it."""

    def __init__(self) -> None:
        # A file, because a pipe that nobody reads would block the process once it is full.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - see close
        # Some packages are found only through sys.path, for example under pytest.
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            # Other allocators reserve a gigabyte at once, which would count towards the limit.
            "ARROW_DEFAULT_MEMORY_POOL": "system",
        }
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _CODE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env=environment,
                # Ctrl-C is meant for the caller, who then shuts this process down.
                start_new_session=True,
            )
        except OSError:
            self._stderr.close()
            raise
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        if self._answers.readline() != STARTED:
            words = self._last_words()
            self.close()
            raise RuntimeError(f"cannot start {sys.executable} to read footers: {words}")

    def ask(self, request: Any) -> tuple[bool, Any]:
        """Return whether the task succeeded, with its result or its error."""
        data = pickle.dumps(request)
        try:
            self._requests.write(data)
            self._requests.flush()
            answer: tuple[bool, Any] = pickle.load(self._answers)
        except (BrokenPipeError, EOFError, pickle.UnpicklingError) as error:
            raise LostProcessError(self._last_words()) from error
        return answer

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def close(self) -> None:
        """Tell the process to end, and wait until it has."""
        with contextlib.suppress(BrokenPipeError):
            self._requests.close()
        self._answers.close()
        self._process.wait()
        self._stderr.close()

    def _last_words(self) -> str:
        self._process.wait()
        end = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, end - _SHOWN_STDERR_BYTES))
        lines = self._stderr.read().decode(errors="replace").split("\n")
        words = " ".join(line.strip() for line in lines if line.strip())
        return words or f"exit status {self._process.returncode}"
