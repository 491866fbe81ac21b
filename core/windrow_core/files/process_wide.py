"""Objects that a process keeps for all its reads.

Code that is pickled by value has no module whose globals would outlive a task.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable
from typing import TypeVar

_Kept = TypeVar("_Kept")

_HOME = "_windrow_kept"


def kept_by_process(name: str, make: Callable[[], _Kept]) -> _Kept:
    """Return the object that this process keeps under a name; make it on first use.

    A forked process makes its own: neither connections nor threads survive a fork.
    """
    home = sys.modules.setdefault(_HOME, types.ModuleType(_HOME))
    kept: dict[tuple[int, str], _Kept] = home.__dict__.setdefault("kept", {})
    key = os.getpid(), name
    # If two threads ask at once, both get the object that was stored first.
    return kept[key] if key in kept else kept.setdefault(key, make())
