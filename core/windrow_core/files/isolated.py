"""Code of the processes that read untrusted files, and may crash on them."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import socket
import traceback
from typing import NoReturn

from windrow_core.files.limits import MAX_GAINED_BYTES, bound_memory
from windrow_core.files.without_pandas import keep_pandas_out

STARTED = b"started"

# Begins the last words of a process that said nothing; its exit code follows.
EXIT_STATUS = "exit status"
_KILLED = f"{EXIT_STATUS} {-signal.SIGKILL}"


def blame(last_words: str, otherwise: str) -> str:
    """Return why a process that read a file has ended.

    Args:
        last_words: The end of its standard error, or its exit status if it said nothing.
        otherwise: What to say if the file is to blame: parsers end by themselves or by a fault, and
            only the system or a person kills.
    """
    if last_words != _KILLED:
        return otherwise
    return (
        "cannot be read: the process that read it was killed, as the system does when memory runs "
        "out; give this process more memory"
    )


def fork_on_request() -> None:
    """For each request on the socket at standard input, fork a process that runs `serve`.

    The new process shares the imports of this one, which take longer than reading most tables. A
    request brings four pipes or files: the new process's standard input, output and error, and one
    for its exit status.
    """
    keep_pandas_out()
    # Nobody waits for the processes that run `_watch`.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=os.dup(0)) as requests:
        os.write(1, STARTED)
        os.close(1)
        while True:
            _, descriptors, _, _ = socket.recv_fds(requests, 1, 4)
            if not descriptors:
                return
            if os.fork() == 0:
                _watch(*descriptors)
            for descriptor in descriptors:
                os.close(descriptor)


def _watch(requests: int, answers: int, errors: int, end: int) -> NoReturn:
    """Fork a process that runs `serve`, wait for its end, and report its exit status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    process = os.fork()
    if process == 0:
        code = 1
        try:
            for standard, descriptor in enumerate((requests, answers, errors)):
                os.dup2(descriptor, standard)
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            serve()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(process, 0)
    os.write(end, b"%d" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def serve() -> None:
    """Answer requests on standard input until it ends.

    First come the environment variables; the answer is the process id. After that, each request is
    a pickled function with its arguments; the answer says whether the call succeeded, with its
    result or its error. A call that needs too much memory ends the process, because its state would
    be unknown afterwards.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    bound_memory()
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as answers:
        # Output that a library prints must not end up among the answers.
        os.dup2(2, 1)
        os.environ.clear()
        os.environ.update(pickle.load(requests))
        answers.write(b"%d\n" % os.getpid())
        answers.flush()
        while True:
            try:
                fn, args, kwargs = pickle.load(requests)
            except EOFError:
                return
            try:
                try:
                    answer = (True, fn(*args, **kwargs))
                except MemoryError:
                    raise
                except Exception as error:
                    answer = (False, error)
                content = pickle.dumps(answer)
            except MemoryError:
                os.write(2, b"it takes more than %d bytes of memory" % MAX_GAINED_BYTES)
                os._exit(1)
            answers.write(content)
            answers.flush()
