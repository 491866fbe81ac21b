"""Processes that end with the one that started them, even if that is killed."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass

from windrow_calls.errors import WindrowError

_LOOK_S = 1.0


@dataclass(eq=False)
class LostProcessError(WindrowError):
    """A process that worked on files was lost; its files stay as they were.

    Attributes:
        work: What did not finish, such as "the erasure from table 'a'".
    """

    work: str
    message = (
        "{work} did not finish: a process was lost, most likely because memory ran out; {remedy}"
    )
    remedy = (
        "try again with fewer processes (--processes); a script that names a number needs "
        "`if __name__ == '__main__':` around what it does"
    )


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
