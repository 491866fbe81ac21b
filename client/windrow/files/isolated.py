"""What a process runs that reads untrusted files, and may die of it."""

from __future__ import annotations

import os
import pickle
import resource
import sys

from windrow.files.limits import MAX_GAINED_BYTES, bound_memory

STARTED = b"started\n"


def serve() -> None:
    """Answer requests on standard input until it ends.

    A request is a function and its arguments, pickled; the answer is whether it gave a result,
    and that result or its error. A task that needs too much memory ends the process, because
    nobody knows in what state it would be left.
    """
    sys.meta_path.insert(0, _NoPandas())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    bound_memory()
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as answers:
        # What a library prints must not end up among the answers.
        os.dup2(2, 1)
        answers.write(STARTED)
        answers.flush()
        while True:
            try:
                fn, args, kwargs = pickle.load(requests)
            except EOFError:
                return
            try:
                answer = (True, fn(*args, **kwargs))
            except MemoryError:
                os.write(2, b"it takes more than %d bytes of memory" % MAX_GAINED_BYTES)
                os._exit(1)
            except Exception as error:
                answer = (False, error)
            answers.write(pickle.dumps(answer))
            answers.flush()


class _NoPandas:
    """Keeps pyarrow from importing pandas, only to ask whether values come from there.

    The import takes longer than most tables take to read.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("not needed to read footers", name=name)
