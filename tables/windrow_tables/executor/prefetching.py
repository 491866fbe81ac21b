"""Request a task's files and excerpts before they are decoded."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from windrow_core.files.footers import TAIL_BYTES
from windrow_tables.executor.caching import Content, Files
from windrow_tables.executor.pieces import Piece
from windrow_tables.executor.spec import MIB, ReadLimits

# Used if asking for a file keeps a thread busy.
_THREADS = 16
# Counts of tasks are added up, so the names of counts carry the maximum of each task.
_PREFETCHED_MIB = "prefetched_mib:"


def asked_ahead(
    files: Files,
    pieces: Iterable[tuple[Piece, bool]],
    limits: ReadLimits,
    counts: Counter[str],
    *,
    footers: bool,
) -> Iterator[tuple[Piece, Content]]:
    """Yield pieces in order, and ask for the next ones ahead.

    Args:
        files: The files to read from.
        pieces: The pieces, and whether to ask for each ahead.
        limits: How many files, and how many of their bytes, may be asked for ahead.
        counts: Records the most bytes that were held or on their way.
        footers: Whether the footers of files are enough.
    """
    ahead: deque[tuple[Piece, Content]] = deque()
    held_bytes = most_bytes = 0
    with ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(_THREADS))
        stack.callback(lambda: _cancel(ahead))
        for piece, is_asked in pieces:
            content: Content = None
            if is_asked and piece.excerpt is not None:
                content = files.ask_excerpt(piece.split, piece.excerpt)
            elif is_asked:
                content = files.ask(piece.split, threads, footer=footers)
            ahead.append((piece, content))
            held_bytes += _asked_bytes(piece, content, footers=footers)
            most_bytes = max(most_bytes, held_bytes)
            while len(ahead) > limits.prefetch_files or held_bytes > limits.prefetch_bytes:
                held_bytes -= _asked_bytes(*ahead[0], footers=footers)
                yield ahead.popleft()
        while ahead:
            yield ahead.popleft()
        counts[f"{_PREFETCHED_MIB}{-(-most_bytes // MIB)}"] += 1


def _asked_bytes(piece: Piece, content: Content, *, footers: bool) -> int:
    if content is None:
        return 0
    return min(piece.size_bytes, TAIL_BYTES) if footers else piece.size_bytes


def _cancel(ahead: Iterable[tuple[Piece, Content]]) -> None:
    for _, content in ahead:
        if content is not None and not isinstance(content, bytes):
            content.cancel()


def most_prefetched_bytes(counts: Mapping[str, int]) -> int:
    """Return the most bytes that a task held, in whole MiB.

    Args:
        counts: The counts of all tasks, added up.
    """
    names = (name for name in counts if name.startswith(_PREFETCHED_MIB))
    return max((int(name.removeprefix(_PREFETCHED_MIB)) for name in names), default=0) * MIB
