"""Batches that threads read ahead of their consumer, within a bound of bytes."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing

import pyarrow as pa

# Begins to read a part of the rows.
Source = Callable[[], Generator[pa.RecordBatch, None, None]]

THREAD_NAME = "windrow-scan"


class Batches(Iterator[pa.RecordBatch]):
    """The batches of several sources, as they come.

    The threads begin with the first batch that is asked for. They end with the last batch, at the
    first error, when `close` is called, when nobody refers to this object any more, or when the
    interpreter ends.

    Args:
        sources: What to read; each by one thread, in this order.
        threads: How many threads read.
        buffer_bytes: Most bytes of batches that wait for the consumer, unless it is one batch.
    """

    def __init__(self, sources: Sequence[Source], threads: int, buffer_bytes: int) -> None:
        self._work = _Work(sources, buffer_bytes)
        self._threads = threads
        self._is_begun = False
        # The threads know the work alone, so that they do not keep this object alive.
        self._end = weakref.finalize(self, self._work.end)

    def __next__(self) -> pa.RecordBatch:
        if not self._is_begun:
            self._is_begun = True
            self._work.begin(self._threads)
        try:
            batch = self._work.next_batch()
        except BaseException:
            self.close()
            raise
        if batch is None:
            self.close()
            raise StopIteration
        return batch

    def close(self) -> None:
        """End the threads, and wait until each has closed what it reads."""
        self._end()


class _Work:
    """What the threads share with the consumer."""

    def __init__(self, sources: Sequence[Source], buffer_bytes: int) -> None:
        self._sources = deque(sources)
        self._buffer_bytes = buffer_bytes
        self._batches: deque[pa.RecordBatch] = deque()
        self._batch_bytes = 0
        self._error: BaseException | None = None
        self._is_over = False
        self._readers: list[threading.Thread] = []
        self._busy = 0
        self._changes = threading.Condition()

    def begin(self, threads: int) -> None:
        with self._changes:
            if self._is_over:
                return
            self._busy = min(threads, len(self._sources))
            self._readers = [
                threading.Thread(target=self._read, name=THREAD_NAME, daemon=True)
                for _ in range(self._busy)
            ]
        for reader in self._readers:
            reader.start()

    def next_batch(self) -> pa.RecordBatch | None:
        """Return the next batch; None after the last one, unless an error came first."""
        with self._changes:
            self._changes.wait_for(lambda: self._batches or self._error or not self._busy)
            if not self._batches:
                if self._error is not None:
                    raise self._error
                return None
            batch = self._batches.popleft()
            self._batch_bytes -= batch.nbytes
            self._changes.notify_all()
            return batch

    def end(self) -> None:
        with self._changes:
            self._is_over = True
            self._batches.clear()
            self._changes.notify_all()
        for reader in self._readers:
            # Ctrl-C may have come before the last of them was started.
            if reader.ident is not None:
                reader.join()

    def _read(self) -> None:
        try:
            while (source := self._next_source()) is not None:
                with closing(source()) as batches:
                    for batch in batches:
                        if not self._put(batch):
                            return
        except BaseException as error:
            with self._changes:
                self._error = self._error or error
                self._is_over = True
        finally:
            with self._changes:
                self._busy -= 1
                self._changes.notify_all()

    def _next_source(self) -> Source | None:
        with self._changes:
            return self._sources.popleft() if self._sources and not self._is_over else None

    def _put(self, batch: pa.RecordBatch) -> bool:
        """Hand a batch to the consumer once there is room; tell whether to go on."""
        size_bytes = batch.nbytes
        with self._changes:
            self._changes.wait_for(
                lambda: (
                    self._is_over
                    or not self._batches
                    or self._batch_bytes + size_bytes <= self._buffer_bytes
                )
            )
            if self._is_over:
                return False
            self._batches.append(batch)
            self._batch_bytes += size_bytes
            self._changes.notify_all()
            return True
