"""An excerpt: the chunks of some columns of a Parquet file, made into a Parquet file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from windrow_core.files.excerpts.chunk_ranges import Ints, columns_of, read_bytes, require_possible
from windrow_core.files.excerpts.outlines import Outline

# A request costs about as much as this many bytes, given how many requests a store takes in a
# second: gaps between chunks that are no longer than this are read as well.
REQUEST_BYTES = 128 * 2**10

MAGIC = b"PAR1"


@dataclass(frozen=True)
class ExcerptFile:
    """Some columns of some row groups of a file.

    Attributes:
        row_count: Number of its rows.
        ranges: Byte ranges to read, ascending; the end is exclusive.
        tail: Bytes that follow the content of all ranges in the excerpt.
    """

    row_count: int
    ranges: Sequence[tuple[int, int]]
    tail: bytes

    @property
    def read_bytes(self) -> int:
        """Bytes of the ranges."""
        return sum(end - begin for begin, end in self.ranges)

    def content(self, parts: Sequence[Any]) -> bytes:
        """Return the excerpt, a Parquet file.

        Args:
            parts: Content of each range, as buffers.
        """
        return b"".join((MAGIC, *parts, self.tail))


def tail_of(footer: bytes) -> bytes:
    """Return a footer with what follows it in a file."""
    return footer + len(footer).to_bytes(4, "little") + MAGIC


def excerpts_of(
    outline: Outline, numbers: Ints, size_bytes: int, max_bytes: int
) -> list[ExcerptFile]:
    """Return the excerpts of a file that a plan asks for, in the order of row groups.

    Args:
        outline: Outline of the wanted columns.
        numbers: Numbers of their leaves in each wanted row group; see `chunk_ranges`.
        size_bytes: Length of the file.
        max_bytes: Maximum bytes of chunks in an excerpt, unless it is a single row group.

    Raises:
        ValueError: The numbers are impossible.
    """
    width = columns_of(outline.leaf_count)
    if width == 1 or numbers.size % width:
        raise ValueError("its plan locates other columns than those that were requested")
    groups = numbers.reshape(-1, width)
    require_possible(groups, size_bytes)
    with_rows = groups[groups[:, 0] != 0]
    begins, own_bytes = [0], 0
    for at, more in enumerate(read_bytes(with_rows).tolist()):
        if own_bytes and own_bytes + more > max_bytes:
            begins.append(at)
            own_bytes = 0
        own_bytes += more
    return [
        _excerpt_of(outline, with_rows[begin:end])
        for begin, end in pairwise([*begins, len(with_rows)])
    ]


def _excerpt_of(outline: Outline, groups: Ints) -> ExcerptFile:
    chunks = groups[:, 1:].reshape(-1, 4)
    order = np.argsort(chunks[:, 0])
    begins = chunks[order, 0]
    ends = begins + chunks[order, 1]
    apart = np.append(True, begins[1:] - ends[:-1] > REQUEST_BYTES)[: len(begins)]
    firsts = np.flatnonzero(apart)
    lasts = np.append(ends[firsts[1:] - 1], ends[-1:])
    # The distance by which all chunks of a range move.
    lengths = lasts - begins[firsts]
    moves = len(MAGIC) + np.cumsum(lengths) - lengths - begins[firsts]
    copies = chunks.copy()
    copies[order, 0] += moves[np.cumsum(apart) - 1]
    footer = outline.footer(
        np.column_stack((groups[:, 0], copies.reshape(len(groups), groups.shape[1] - 1)))
    )
    return ExcerptFile(
        row_count=int(groups[:, 0].sum()),
        ranges=list(zip(begins[firsts].tolist(), lasts.tolist(), strict=True)),
        tail=tail_of(footer),
    )
