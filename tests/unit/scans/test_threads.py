"""Threads read ahead of their consumer, within a bound, and end whenever the consumer does."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Generator

import pyarrow as pa
import pytest

from windrow_tables.scans.threads import THREAD_NAME, Batches

ROWS = 100
BATCH = pa.record_batch({"n": pa.array([0] * ROWS, pa.int64())})


class Sources:
    """Sources of equal batches that count what is open, and what has been yielded.

    Args:
        sizes: The number of batches of each source.
    """

    def __init__(self, *sizes: int) -> None:
        self._lock = threading.Lock()
        self.sizes = sizes
        self.opened = self.closed = self.yielded = 0

    def _read(self, size: int) -> Generator[pa.RecordBatch, None, None]:
        with self._lock:
            self.opened += 1
        try:
            for _ in range(size):
                with self._lock:
                    self.yielded += 1
                yield BATCH
        finally:
            with self._lock:
                self.closed += 1

    def __iter__(self) -> Generator[Callable[[], Generator[pa.RecordBatch, None, None]]]:
        for size in self.sizes:
            yield lambda size=size: self._read(size)


def readers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == THREAD_NAME]


def test_ctrl_c_before_all_threads_have_started_is_a_keyboard_interrupt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(thread: threading.Thread) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupt)
    with pytest.raises(KeyboardInterrupt):
        next(Batches(list(Sources(3, 3)), 2, 0))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("buffer_bytes", [0, BATCH.nbytes, 10**9])
def test_every_batch_of_every_source_comes_once_and_the_threads_end(
    threads: int, buffer_bytes: int
) -> None:
    sources = Sources(3, 0, 5, 1, 4)

    batches = Batches(list(sources), threads, buffer_bytes)

    assert sum(batch.num_rows for batch in batches) == 13 * ROWS
    assert sources.closed == 5
    assert readers() == []
    assert list(batches) == []


def test_no_more_bytes_wait_than_the_bound_and_one_batch_of_each_thread() -> None:
    threads, most_waiting = 3, 4
    sources = Sources(50, 50, 50, 50)
    batches = Batches(list(sources), threads, most_waiting * BATCH.nbytes)

    for taken, _ in enumerate(batches, 1):
        # A thread has yielded one batch more than it could hand over.
        assert sources.yielded - taken <= most_waiting + threads

    assert sources.yielded == 200


def test_nothing_is_read_before_it_is_asked_for() -> None:
    sources = Sources(5)

    Batches(list(sources), 2, 10**9).close()

    assert sources.opened == 0
    assert readers() == []


@pytest.mark.parametrize("how", ["closed", "forgotten"])
def test_the_threads_of_a_consumer_that_stops_early_end_and_close_what_they_read(how: str) -> None:
    sources = Sources(*[100] * 8)
    batches = Batches(list(sources), 3, BATCH.nbytes)
    next(batches)

    if how == "closed":
        batches.close()
        assert list(batches) == []
    del batches
    gc.collect()

    assert readers() == []
    assert sources.opened == sources.closed <= 3


def test_the_first_error_reaches_the_consumer_and_ends_all_threads() -> None:
    sources = Sources(*[100] * 8)

    def fail() -> Generator[pa.RecordBatch, None, None]:
        yield BATCH
        raise ValueError("a file is damaged")

    batches = Batches([*list(sources)[:1], fail, *list(sources)[1:]], 2, 10**9)

    with pytest.raises(ValueError, match="a file is damaged"):
        list(batches)

    assert readers() == []
    assert sources.opened == sources.closed
