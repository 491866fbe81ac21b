"""An executor whose tasks may crash: each runs in a separate process.

Arrow crashes the whole process on some damaged Parquet footers, so no footer is parsed in the
coordinator's own process. `ProcessPoolExecutor` is not suitable: one lost process breaks the
whole pool, and each process runs the caller's main script again, which a script with an embedded
coordinator does not expect. The memory that a hostile file can make a task allocate is also
limited. Processes are forked from a template that has imported what they need: each is new, and
starts in milliseconds.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import IO, Any, TypeVar

import pyarrow as pa

from windrow_core.files.isolated import EXIT_STATUS, STARTED, blame

_Result = TypeVar("_Result")

# What parsing damaged files raises where nothing expects it.
DAMAGES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    RecursionError,
    SystemError,
    TypeError,
    ValueError,
    pa.ArrowException,
    zlib.error,
)

_SHOWN_STDERR_BYTES = 1_000
_SHOWN_CHARACTERS = 200
# Import the readers of footers first, so that their memory does not count as caused by a file.
_CODE = (
    "from windrow_core.files import chunks, isolated; import windrow_service.orc.reading; "
    "import windrow_service.avro.headers; import windrow_service.delta.reading; "
    "isolated.fork_on_request()"
)


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

    def why(self, otherwise: str) -> str:
        """Return `otherwise`, or why the task is not to blame for the process's end."""
        return blame(self.last_words, otherwise)


def damage_in(error: Exception) -> str:
    """Return what one of `DAMAGES` says, in one line that is not long."""
    words = " ".join(str(error).split())[:_SHOWN_CHARACTERS]
    return words or type(error).__name__


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


class _Template:
    """The process that all others are forked from; started when it is first needed, and kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._executable = ""

    def fork(self, *descriptors: int) -> None:
        """Fork a process with these descriptors; see `fork_on_request`."""
        with self._lock:
            if not self._is_running():
                self._stop()
                self._start()
            socket.send_fds(self._requests, [b"f"], descriptors)

    def close(self) -> None:
        """Tell the process to end, and wait until it has."""
        with self._lock:
            self._stop()

    def _is_running(self) -> bool:
        process = self._process
        return process is not None and process.poll() is None and self._executable == sys.executable

    def _start(self) -> None:
        # Some packages are found only through sys.path, for example under pytest.
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            # Other allocators reserve a gigabyte at once, which would count towards the limit.
            "ARROW_DEFAULT_MEMORY_POOL": "system",
        }
        self._requests, theirs = socket.socketpair()
        with theirs, tempfile.TemporaryFile() as errors:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _CODE],
                    stdin=theirs.fileno(),
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=environment,
                    # Ctrl-C is meant for the caller, who then shuts its processes down.
                    start_new_session=True,
                )
            except OSError:
                self._requests.close()
                raise
            self._executable = sys.executable
            assert self._process.stdout is not None
            with self._process.stdout as answers:
                started = answers.read() == STARTED
            if not started:
                self._stop()
                words = _last_words(errors)
                raise RuntimeError(f"cannot start {sys.executable} to read footers: {words}")

    def _stop(self) -> None:
        if self._process is not None:
            self._requests.close()
            self._process.wait()
            self._process = None


_template = _Template()
atexit.register(_template.close)


class _Process:
    """One process and the pipes to it."""

    def __init__(self) -> None:
        self._status = b""
        with contextlib.ExitStack() as pipes:
            # A file, because a pipe that nobody reads would block the process once it is full.
            self._stderr = pipes.enter_context(tempfile.TemporaryFile())
            request_end, self._requests = _pipe(pipes)
            self._answers, answer_end = _pipe(pipes)
            self._end, end_of_life = _pipe(pipes)
            theirs = (request_end, answer_end, self._stderr, end_of_life)
            _template.fork(*(file.fileno() for file in theirs))
            for file in (request_end, answer_end, end_of_life):
                file.close()
            pipes.pop_all()
        try:
            pickle.dump(dict(os.environ), self._requests)
            self._requests.flush()
            self._id = int(self._answers.readline())
        except (BrokenPipeError, ValueError) as error:
            words = self._last_words()
            self.close()
            raise RuntimeError(f"a process that reads footers did not start: {words}") from error

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
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._id, signal.SIGKILL)

    def close(self) -> None:
        """Tell the process to end, and wait until it has."""
        with contextlib.suppress(BrokenPipeError):
            self._requests.close()
        self._answers.close()
        self._wait()
        self._end.close()
        self._stderr.close()

    def _wait(self) -> None:
        self._status += self._end.read()

    def _last_words(self) -> str:
        self._wait()
        return _last_words(self._stderr) or f"{EXIT_STATUS} {self._status.decode() or 'unknown'}"


def _pipe(pipes: contextlib.ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    """Return the ends of a pipe for reading and writing, which the stack closes."""
    reading, writing = os.pipe()
    return (
        pipes.enter_context(os.fdopen(reading, "rb")),
        pipes.enter_context(os.fdopen(writing, "wb")),
    )


def _last_words(errors: IO[bytes]) -> str:
    end = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, end - _SHOWN_STDERR_BYTES))
    lines = errors.read().decode(errors="replace").split("\n")
    return " ".join(line.strip() for line in lines if line.strip())
