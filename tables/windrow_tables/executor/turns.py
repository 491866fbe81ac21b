"""Turns of the threads of a process that read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from windrow_core.files.process_wide import kept_by_process

# Where files are slow, threads rather read at the same time.
_PATIENCE_S = 0.05


@contextmanager
def in_turn() -> Iterator[None]:
    """Do something that makes many short calls, while no other thread of this process does.

    Each short call hands Python's lock to a thread that waits for it, which takes longer than the
    call. Threads that decode meanwhile do not need the lock.
    """
    turn = kept_by_process("turn", threading.Lock)
    is_own = turn.acquire(timeout=_PATIENCE_S)
    try:
        yield
    finally:
        if is_own:
            turn.release()
