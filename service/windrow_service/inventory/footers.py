"""What the footers of a table's files say, read in parallel."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager

import pyarrow as pa

from windrow_service.inventory.chunks import ChunkFooters, FooterGroup, read_chunk
from windrow_service.inventory.errors import FileChangedError, UnreadableFileError
from windrow_service.inventory.isolation import IsolatedExecutor, LostProcessError
from windrow_service.inventory.progress import OnProgress, ProgressMeter

# More are not worth showing in an error.
MAX_SHOWN_FILES = 10

_FILES_PER_CHUNK = 256
# Chunks handed out at a time, so that cancelling, or a table of broken files, ends soon.
_MAX_CHUNKS_IN_FLIGHT = 32


def read_footers(
    location: str,
    files: pa.Table,
    on_progress: OnProgress | None = None,
    *,
    cancelled: threading.Event | None = None,
    executor: Executor | None = None,
) -> list[FooterGroup]:
    """Read the footers of n files, each with one read of the file's end.

    Args:
        location: Absolute path of the table's folder.
        files: n rows of a `Listing`.
        on_progress: Told about the progress, at a bounded rate.
        cancelled: Set it to stop.
        executor: Where the footers are parsed; it stays open. An `IsolatedExecutor` that is
            kept saves the start of processes. Threads parse one footer at a time, and some
            damaged footers would end the process. A new `IsolatedExecutor` where None.

    Returns:
        One group for each distinct schema, by the path of its first file; each file is in
        exactly one. None for no files.

    Raises:
        UnreadableFileError: Files are not Parquet, or may not be read.
        FileChangedError: Files are no longer what the listing says.
        InventoryCancelledError: `cancelled` was set.
    """
    return read_with(location, files, ProgressMeter(on_progress, cancelled), executor)


def read_with(
    location: str, files: pa.Table, meter: ProgressMeter, executor: Executor | None
) -> list[FooterGroup]:
    """Do what `read_footers` does, and report to a meter that the caller shares."""
    meter.enter(phase="reading footers", footers_total=files.num_rows)
    chunks: dict[int, ChunkFooters] = {}
    unread = deque(
        (start, min(_FILES_PER_CHUNK, files.num_rows - start))
        for start in range(0, files.num_rows, _FILES_PER_CHUNK)
    )
    pending: dict[Future[ChunkFooters], tuple[int, int]] = {}
    with _opened(executor) as pool:
        try:
            while unread or pending:
                while unread and len(pending) < _MAX_CHUNKS_IN_FLIGHT:
                    start, count = unread.popleft()
                    pending[_submit(pool, location, files.slice(start, count), start)] = (
                        start,
                        count,
                    )
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    start, count = pending.pop(future)
                    try:
                        chunks[start] = future.result()
                    except LostProcessError as error:
                        if count > 1:
                            # One of the files did that: halve until it is found.
                            half = count // 2
                            unread.extendleft([(start + half, count - half), (start, half)])
                            continue
                        reason = f"its footer is damaged ({error.last_words})"
                        unreadable = [(files["path"][start].as_py(), reason)]
                        chunks[start] = ChunkFooters(unreadable=unreadable)
                    meter.add(footers_read=count)
                if sum(len(c.unreadable) for c in chunks.values()) >= MAX_SHOWN_FILES:
                    unread.clear()
        finally:
            for future in pending:
                future.cancel()
    meter.report()
    in_order = [chunks[start] for start in sorted(chunks)]
    _raise_failures(in_order)
    return _joined(group for chunk in in_order for group in chunk.groups)


@contextmanager
def _opened(executor: Executor | None) -> Iterator[Executor]:
    if executor is not None:
        yield executor
        return
    with IsolatedExecutor() as isolated:
        yield isolated


def _submit(pool: Executor, location: str, chunk: pa.Table, start: int) -> Future[ChunkFooters]:
    columns = [chunk[name].to_pylist() for name in ("path", "size_bytes", "mtime_ns")]
    return pool.submit(read_chunk, location, start, *columns)


def _raise_failures(chunks: Sequence[ChunkFooters]) -> None:
    if unreadable := sorted(entry for chunk in chunks for entry in chunk.unreadable):
        raise UnreadableFileError(tuple(unreadable[:MAX_SHOWN_FILES]))
    if changed := sorted(path for chunk in chunks for path in chunk.changed):
        raise FileChangedError(tuple(changed[:MAX_SHOWN_FILES]))


def _joined(groups: Iterable[FooterGroup]) -> list[FooterGroup]:
    """Join groups of one schema, so that later steps run once per schema."""
    by_schema: dict[bytes, list[FooterGroup]] = {}
    for group in groups:
        schemas = (group.files.schema, group.bounded)
        key = b"".join(schema.serialize().to_pybytes() for schema in schemas)
        by_schema.setdefault(key, []).append(group)
    return [
        FooterGroup(same[0].files, same[0].bounded, pa.concat_tables([g.table for g in same]))
        for same in by_schema.values()
    ]
