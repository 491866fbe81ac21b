"""Ctrl-C that is not lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def kept_interrupts() -> Iterator[Callable[[], None]]:
    """Remember a Ctrl-C in the block; yield a function that raises it again if there was one.

    Python drops exceptions that are raised in a finalizer, including a Ctrl-C. Py4J has a finalizer
    for each object of the JVM, so this may happen on Spark. A Ctrl-C replaces any later error:
    Spark may fail to clean up after an interrupted call.
    """
    ctrl_c = threading.Event()
    before = signal.getsignal(signal.SIGINT)

    def press(number: int, frame: FrameType | None) -> None:
        assert callable(before)
        try:
            before(number, frame)
        except KeyboardInterrupt:
            ctrl_c.set()
            raise

    def check() -> None:
        if ctrl_c.is_set():
            raise KeyboardInterrupt

    # Spark's handler cancels all jobs first. Only the main thread can set one.
    is_ours = callable(before) and threading.current_thread() is threading.main_thread()
    if is_ours:
        signal.signal(signal.SIGINT, press)
    try:
        yield check
    except Exception as error:
        if ctrl_c.is_set():
            raise KeyboardInterrupt from error
        raise
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, before)
