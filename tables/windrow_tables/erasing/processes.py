"""Who works on an erasure: processes, which end with whoever started them, or threads."""

from __future__ import annotations

import itertools
import multiprocessing.spawn
import os
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from windrow_tables.erasing.task import (
    ErasedFile,
    ErasingJob,
    Keys,
    Refusal,
    begin_process,
    erase_in,
)
from windrow_tables.executor.parents import LostProcessError

# A piece is worth a trip to a process, and little is lost with one.
_PIECE_BYTES = 64 * 2**20
_OPEN_FILE_BYTES = 256 * 2**10

Answer: TypeAlias = tuple[list[ErasedFile], list[Refusal]]


class Workers:
    """Work on files in several processes or threads; use it as a context manager.

    Args:
        table: Name of the table, for messages.
        processes: How many processes; None for as many threads of this one as there are cores. A
            single piece is worked on in this thread.

    Raises:
        RuntimeError: This is a process that runs the script of the one that started it, whose end the
            erasure of this one would wait for.
    """

    def __init__(self, table: str, processes: int | None) -> None:
        if processes:
            # Raises what starting a process would raise, before there is anything to wait for.
            multiprocessing.spawn.get_preparation_data(table)
        self._table = table
        self._count = processes or os.cpu_count() or 1
        self._as_threads = not processes
        self._pool: Executor | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            # Those at work come to an end, so that nothing is written any more.
            self._pool.shutdown(cancel_futures=True)

    def answers(
        self,
        job: ErasingJob,
        keys: pa.Array | None,
        files: pa.Table,
        on_done: Callable[[int], None],
    ) -> Iterator[Answer]:
        """Yield what comes of pieces of the files, a bounded number of which wait for processes.

        Args:
            job: What is to be done.
            keys: The keys, the same each time; None for a condition.
            files: The files.
            on_done: Called with the number of files of each piece that is done.

        Raises:
            LostProcessError: A process was lost.
        """
        pieces = _pieces(files)
        if len(pieces) == 1 and self._pool is None:
            yield erase_in(job, files, Keys.of(keys))
            on_done(len(files))
            return
        # Processes are given them once.
        here = Keys.of(keys) if self._as_threads else None
        waiting: dict[Future[Answer], int] = {}
        try:
            if self._pool is None:
                self._pool = (
                    ThreadPoolExecutor(self._count)
                    if self._as_threads
                    else _pool(self._count, keys)
                )
            for piece in [*pieces, None]:
                while waiting and (piece is None or len(waiting) >= 2 * self._count):
                    for one in wait(waiting, return_when=FIRST_COMPLETED).done:
                        on_done(waiting.pop(one))
                        yield one.result()
                if piece is not None:
                    waiting[self._pool.submit(erase_in, job, piece, here)] = len(piece)
        except BrokenProcessPool as error:
            raise LostProcessError(f"the erasure from table {self._table!r}") from error


def _pool(count: int, keys: pa.Array | None) -> ProcessPoolExecutor:
    # Forked processes would share connections, and locks of Arrow's threads.
    spawn = multiprocessing.get_context("spawn")
    # Whoever hands many keys to a process that ends as it begins would wait for ever: the pipe is full.
    with ProcessPoolExecutor(1, mp_context=spawn) as first:
        first.submit(os.getpid).result()
    return ProcessPoolExecutor(
        count,
        mp_context=spawn,
        initializer=begin_process,
        initargs=(keys, os.getpid()),
    )


def _pieces(files: pa.Table) -> list[pa.Table]:
    work = np.cumsum(files["size_bytes"].to_numpy() + _OPEN_FILE_BYTES)
    _, firsts = np.unique(work // _PIECE_BYTES, return_index=True)
    edges = [*firsts.tolist(), len(files)]
    return [files.slice(a, b - a) for a, b in itertools.pairwise(edges)]
