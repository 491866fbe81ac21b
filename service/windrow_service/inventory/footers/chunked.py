"""Process listed files, a few at a time, in processes that may crash."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager
from typing import Protocol, TypeVar

import pyarrow as pa

from windrow_core.files.access import is_of_system, why_inaccessible
from windrow_core.files.errors import RESTORE, FileChangedError, UnreadableFootersError
from windrow_core.files.listing import listed_of
from windrow_core.files.status import FileStatus
from windrow_service.inventory.footers.isolation import (
    DAMAGES,
    IsolatedExecutor,
    LostProcessError,
    damage_in,
)

# An error shows no more files than this.
MAX_SHOWN_FILES = 10

_FILES_PER_CHUNK = 256
# Chunks in flight; few, so that cancelling, or a table of broken files, ends soon.
_MAX_CHUNKS_IN_FLIGHT = 32
_CHECK_EVERY_S = 0.2


class Chunk(Protocol):
    """The results for a few files.

    Attributes:
        unreadable: Paths and reasons of files without a result.
        changed: Paths of files that differ from the listing.
    """

    unreadable: list[tuple[str, str]]
    changed: list[str]


AnyChunk = TypeVar("AnyChunk", bound=Chunk)


def in_chunks(
    files: pa.Table,
    read: Callable[[int, Sequence[str], Sequence[FileStatus]], AnyChunk],
    nothing: Callable[[list[tuple[str, str]]], AnyChunk],
    on_read: Callable[[int], None],
    executor: Executor | None,
    check: Callable[[], None] = lambda: None,
    *,
    table_format: str = "parquet",
) -> list[AnyChunk]:
    """Read n files and return the results in order.

    Args:
        files: n rows of a `Listing`.
        read: Gets the number of the first file, and paths and states as listed. It is
            pickled, and may crash its process.
        nothing: Returns what `read` would return for files that are all unreadable.
        on_read: Called with the number of files that were completed.
        executor: Where `read` runs; it stays open. If None, a new `IsolatedExecutor`, whose
            tasks are lost if this ends with an error.
        check: Called while waiting for files; raises to stop.
        table_format: Expected format of the files, for messages.
    """
    chunks: dict[int, AnyChunk] = {}
    unread = deque(
        (start, min(_FILES_PER_CHUNK, files.num_rows - start))
        for start in range(0, files.num_rows, _FILES_PER_CHUNK)
    )
    pending: dict[Future[AnyChunk], tuple[int, int]] = {}
    is_complete = True
    with _opened(executor) as pool:
        try:
            while unread or pending:
                while unread and len(pending) < _MAX_CHUNKS_IN_FLIGHT:
                    start, count = unread.popleft()
                    rows = files.slice(start, count)
                    pending[pool.submit(read, start, *listed_of(rows))] = (start, count)
                # Wide files take long, and a caller who cancels should not wait for them.
                done, _ = wait(pending, _CHECK_EVERY_S, FIRST_COMPLETED)
                check()
                for future in done:
                    start, count = pending.pop(future)
                    try:
                        chunks[start] = future.result()
                    except (LostProcessError, *DAMAGES) as error:
                        if count > 1:
                            # One of the files is to blame: halve until it is found.
                            half = count // 2
                            unread.extendleft([(start + half, count - half), (start, half)])
                            continue
                        reason = _why_damaged(error)
                        chunks[start] = nothing([(files["path"][start].as_py(), reason)])
                    except OSError as error:
                        # No process could be started, whatever is in the files.
                        if not is_of_system(error):
                            raise
                        reason = why_inaccessible(error)
                        some = files["path"].slice(start, count).to_pylist()
                        chunks[start] = nothing([(path, reason) for path in some])
                    on_read(count)
                if unread and sum(len(c.unreadable) for c in chunks.values()) >= MAX_SHOWN_FILES:
                    unread.clear()
                    is_complete = False
        finally:
            for future in pending:
                future.cancel()
    in_order = [chunks[start] for start in sorted(chunks)]
    _raise_failures(in_order, table_format, is_complete=is_complete)
    return in_order


def _why_damaged(error: Exception) -> str:
    if isinstance(error, LostProcessError):
        return error.why(f"its footer is damaged ({error.last_words}): {RESTORE}")
    return f"its footer is damaged ({type(error).__name__}: {damage_in(error)}): {RESTORE}"


@contextmanager
def _opened(executor: Executor | None) -> Iterator[Executor]:
    if executor is not None:
        yield executor
        return
    with IsolatedExecutor() as pool:
        try:
            yield pool
        except BaseException:
            pool.kill()
            raise


def _raise_failures(chunks: Sequence[Chunk], table_format: str, *, is_complete: bool) -> None:
    if unreadable := sorted(entry for chunk in chunks for entry in chunk.unreadable):
        raise UnreadableFootersError(tuple(unreadable), table_format, is_complete)
    if changes := sorted(path for chunk in chunks for path in chunk.changed):
        raise FileChangedError(tuple(changes[:MAX_SHOWN_FILES]))
