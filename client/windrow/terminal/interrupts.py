"""Ctrl-C that is not lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def kept_interrupts() -> Iterator[Callable[[], None]]:
    """Remember a Ctrl-C in the block; yields a function that raises it again if there was one.

    Python drops an exception that is raised within a finalizer, and so a Ctrl-C that arrives there.
    Py4J has a finalizer for each object of the JVM, so that on Spark it may happen. What fails after
    a Ctrl-C is replaced by it: Spark may fail to clean up after a call that was broken off.
    """
    pressed = threading.Event()
    before = signal.getsignal(signal.SIGINT)

    def press(number: int, frame: FrameType | None) -> None:
        pressed.set()
        raise KeyboardInterrupt

    def check() -> None:
        if pressed.is_set():
            raise KeyboardInterrupt

    # Whoever has Ctrl-C ignored, or handled, keeps that; other threads do not get it.
    is_ours = before is signal.default_int_handler and (
        threading.current_thread() is threading.main_thread()
    )
    if is_ours:
        signal.signal(signal.SIGINT, press)
    try:
        yield check
    except Exception as error:
        if pressed.is_set():
            raise KeyboardInterrupt from error
        raise
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, before)
