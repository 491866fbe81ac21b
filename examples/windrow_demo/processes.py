"""Running work on all cores, with progress."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any


def run_in_processes(
    work: Callable[..., int], arguments: Sequence[tuple[Any, ...]], on_done: Callable[[int], None]
) -> None:
    """Call `work` once per entry of `arguments`, spread over processes.

    Args:
        work: A module-level function that returns the amount of work that it did.
        arguments: Arguments of each call.
        on_done: Called in this process with the result of each call as it ends.
    """
    if len(arguments) == 1:
        # Starting a process takes longer than most single calls.
        on_done(work(*arguments[0]))
        return
    # spawn instead of fork, since the parent may run threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(core_count(), mp_context=context) as pool:
        calls = [pool.submit(work, *entry) for entry in arguments]
        try:
            for call in as_completed(calls):
                on_done(call.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def core_count() -> int:
    """Return the number of cores that this process may use."""
    # A container may be allowed fewer cores than the machine has.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
