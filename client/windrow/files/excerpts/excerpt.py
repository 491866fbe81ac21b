"""An excerpt: the chunks of some columns of a Parquet file, made into a Parquet file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windrow.files.excerpts.outlines import Outline, RowGroup
from windrow.files.excerpts.places import Ints, columns_of, require_possible

# A request takes about as long as this many bytes: what lies between two chunks is read as well
# if it is shorter.
REQUEST_BYTES = 64 * 2**10

_MAGIC = b"PAR1"


@dataclass(frozen=True)
class Excerpt:
    """Some columns of some row groups of a file.

    Attributes:
        ranges: Where to read it: first byte, and the one behind the last; ascending.
        footer: Of the excerpt, in which the ranges lie one after the other.
    """

    ranges: Sequence[tuple[int, int]]
    footer: bytes

    @property
    def read_bytes(self) -> int:
        """Bytes of the ranges."""
        return sum(end - begin for begin, end in self.ranges)

    def content(self, parts: Sequence[bytes]) -> bytes:
        """Return the excerpt, a Parquet file.

        Args:
            parts: What was read of each range.
        """
        return b"".join((_MAGIC, *parts, self.tail))

    @property
    def tail(self) -> bytes:
        """What follows the ranges."""
        return self.footer + len(self.footer).to_bytes(4, "little") + _MAGIC


def excerpt_of(outline: Outline, numbers: Ints, size_bytes: int) -> Excerpt:
    """Return the excerpt of a file that a plan asks for.

    Args:
        outline: Of the columns wanted.
        numbers: Of their leaves in each row group wanted; see `places`.
        size_bytes: Length of the file.

    Raises:
        ValueError: The numbers are impossible.
    """
    leaf_count = outline.leaf_count
    if not leaf_count or len(numbers) % columns_of(leaf_count):
        raise ValueError("its plan says where other columns lie than those asked for")
    groups = numbers.reshape(-1, columns_of(leaf_count))
    require_possible(groups, size_bytes)
    groups = groups[groups[:, 0] != 0]
    chunks = groups[:, 1:].reshape(-1, 4)
    order = np.argsort(chunks[:, 0])
    begins = chunks[order, 0]
    ends = begins + chunks[order, 1]
    apart = np.append(True, begins[1:] - ends[:-1] > REQUEST_BYTES)[: len(begins)]
    firsts = np.flatnonzero(apart)
    ranges = list(
        zip(
            begins[firsts].tolist(),
            np.append(ends[firsts[1:] - 1], ends[-1:]).tolist(),
            strict=True,
        )
    )
    # What all chunks of a range move by.
    lengths = np.array([end - begin for begin, end in ranges], np.int64)
    moves = len(_MAGIC) + np.cumsum(lengths) - lengths - begins[firsts]
    moved = chunks.copy()
    moved[order, 0] += moves[np.cumsum(apart) - 1]
    row_groups = [
        RowGroup(
            row_count,
            [(start, length, dictionary, values) for start, length, dictionary, values in of],
        )
        for row_count, of in zip(
            groups[:, 0].tolist(), moved.reshape(len(groups), leaf_count, 4).tolist(), strict=True
        )
    ]
    return Excerpt(ranges, outline.footer(row_groups))
