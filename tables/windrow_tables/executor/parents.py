"""Processes that end with the one that started them, even if that is killed."""

from __future__ import annotations

import os
import threading
import time

_LOOK_S = 1.0


def end_with_parent(parent: int) -> None:
    """Let this process end once the one that started it is gone.

    Args:
        parent: Number of that process.
    """
    threading.Thread(target=_wait_for, args=(parent,), daemon=True).start()


def _wait_for(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os._exit(1)
