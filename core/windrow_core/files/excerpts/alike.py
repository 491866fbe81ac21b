"""Finds among small Parquet files in memory those that can be read as one.

What one writer writes of one table has footers of one shape: they differ in where column chunks lie
and in bounds, but not in schema, writer or codecs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from windrow_core.files.excerpts.chunk_ranges import Ints, are_possible, columns_for
from windrow_core.files.excerpts.excerpt import MAGIC
from windrow_core.files.excerpts.gathered import Gathered
from windrow_core.files.excerpts.lanes import Bytes, Lanes, Mask
from windrow_core.files.excerpts.thrift import INT, LIST, LONG, STRUCT, Skimmer, ThriftError

# Files of further shapes are read one by one.
_MAX_SHAPES = 4
# Longer footers are of files with many columns or row groups, where little is shared.
_MAX_FOOTER_BYTES = 64 * 2**10

_LENGTH_BYTES = 4
_END_BYTES = _LENGTH_BYTES + len(MAGIC)

# Fields of Parquet's FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
_VERSION, _SCHEMA, _ROW_GROUPS = 1, 2, 4
_CHUNKS, _ROW_COUNT = 1, 3
_FILE_OFFSET, _METADATA = 2, 3
# Where the indices of pages lie, which readers of all rows ignore.
_INDICES = (4, 5, 6, 7)
_CODEC, _VALUES, _DECODED_BYTES, _BYTES, _DATA, _DICTIONARY = 4, 5, 6, 7, 9, 11


class Alike(NamedTuple):
    """Files whose footers have one shape.

    Attributes:
        files: Their numbers, ascending; m numbers.
        groups: Numbers of their row groups, as in plans: m x row groups x numbers.
        decoded_bytes: Bytes of each leaf without compression, as declared: m x leaves.
    """

    files: Ints
    groups: Ints
    decoded_bytes: Ints

    @property
    def row_counts(self) -> Ints:
        """Rows of each file."""
        row_counts: Ints = self.groups[:, :, 0].sum(axis=1)
        return row_counts

    def only(self, files: Mask | slice) -> Alike:
        """Return some of the files."""
        return Alike(self.files[files], self.groups[files], self.decoded_bytes[files])

    def only_leaves(self, leaves: Sequence[int]) -> Alike:
        """Return the files with some of their leaves."""
        columns = columns_for(leaves)
        return Alike(self.files, self.groups[:, :, columns], self.decoded_bytes[:, list(leaves)])


def alike_files(files: Gathered, min_files: int) -> Iterator[Alike]:
    """Yield the files that share a shape with enough others.

    Args:
        files: n Parquet files, or what claims to be one.
        min_files: Fewest files of a shape.
    """
    left = np.flatnonzero(files.ends - files.begins >= 2 * len(MAGIC) + _LENGTH_BYTES)
    ends = files.ends - _END_BYTES
    tails = files.data[ends[left, np.newaxis] + np.arange(_END_BYTES)]
    lengths = np.zeros(len(ends), np.int64)
    lengths[left] = np.ascontiguousarray(tails[:, :_LENGTH_BYTES]).view("<u4")[:, 0]
    # Of the bytes before the footer.
    rooms = ends - lengths - files.begins
    has_footer = (tails[:, _LENGTH_BYTES:] == np.frombuffer(MAGIC, np.uint8)).all(axis=1)
    left = left[has_footer & (lengths <= _MAX_FOOTER_BYTES)[left] & (rooms > 0)[left]]
    for _ in range(_MAX_SHAPES):
        if len(left) < min_files:
            return
        footers = _Footers(files.data, (ends - lengths)[left], ends[left])
        try:
            groups, decoded_bytes = footers.read()
        except ThriftError:
            left = left[1:]
            continue
        is_alike = footers.lanes.alike
        alike = Alike(left[is_alike], groups[is_alike], decoded_bytes[is_alike])
        alike = alike.only(are_possible(alike.groups, rooms[alike.files]))
        if len(alike.files) >= min_files:
            yield alike
        left = left[~is_alike]


class _Footers:
    """Footers that are read along the first of them."""

    def __init__(self, data: Bytes, begins: Ints, ends: Ints) -> None:
        self.lanes = Lanes(data, begins, ends)
        self._first = data[begins[0] : ends[0]].tobytes()
        self._begin = int(begins[0])

    def read(self) -> tuple[Ints, Ints]:
        """Return the numbers of row groups, and bytes without compression; see `Alike`."""
        lanes = self.lanes
        for number, kind in lanes.fields():
            if (number, kind) == (_VERSION, INT):
                lanes.same_integer()
            elif (number, kind) == (_SCHEMA, LIST):
                lanes.same_bytes(self._length_here(LIST))
            elif (number, kind) == (_ROW_GROUPS, LIST):
                return self._row_groups()
            else:
                lanes.skip(kind)
        raise ThriftError

    def _length_here(self, kind: int) -> int:
        """Return how long a value of the first footer is."""
        skimmer = Skimmer(self._first)
        begin = skimmer.at = int(self.lanes.at[0]) - self._begin
        skimmer.skip(kind)
        return skimmer.at - begin

    def _row_groups(self) -> tuple[Ints, Ints]:
        lanes = self.lanes
        count, kind = lanes.listed()
        if kind != STRUCT or not count:
            raise ThriftError
        groups = [self._row_group() for _ in range(count)]
        # What follows says who wrote the file, and how it is to be read.
        lanes.same_rest()
        numbers = np.stack([np.stack(one, axis=-1) for one, _ in groups], axis=1)
        decoded_bytes = np.stack([np.stack(one, axis=-1) for _, one in groups]).sum(axis=0)
        return numbers, decoded_bytes

    def _row_group(self) -> tuple[list[Ints], list[Ints]]:
        lanes = self.lanes
        row_count: Ints | None = None
        numbers: list[Ints] = []
        decoded_bytes: list[Ints] = []
        for number, kind in lanes.fields():
            if (number, kind) == (_CHUNKS, LIST):
                count, _ = lanes.listed()
                for _ in range(count):
                    own, own_bytes = self._chunk()
                    numbers += own
                    decoded_bytes.append(own_bytes)
            elif (number, kind) == (_ROW_COUNT, LONG):
                row_count = lanes.integers()
            else:
                lanes.skip(kind)
        if row_count is None or not numbers:
            raise ThriftError
        return [row_count, *numbers], decoded_bytes

    def _chunk(self) -> tuple[tuple[Ints, Ints, Ints, Ints], Ints]:
        """Take a column chunk, and return its numbers, and its bytes without compression."""
        numbers: dict[int, Ints] = {}
        for number, kind in self.lanes.fields():
            if (number, kind) == (_METADATA, STRUCT):
                numbers = self._metadata()
            elif number in (_FILE_OFFSET, *_INDICES):
                self.lanes.skip(kind)
            else:
                # It lies in another file, or is encrypted.
                raise ThriftError
        try:
            values, length, data = numbers[_VALUES], numbers[_BYTES], numbers[_DATA]
            decoded_bytes = numbers[_DECODED_BYTES]
        except KeyError:
            raise ThriftError from None
        dictionary = numbers.get(_DICTIONARY, data)
        # As in Arrow: some writers state 0 for a missing dictionary.
        start = np.where((dictionary > 0) & (dictionary < data), dictionary, data)
        return (start, length, data - start, values), decoded_bytes

    def _metadata(self) -> dict[int, Ints]:
        lanes = self.lanes
        numbers: dict[int, Ints] = {}
        for number, kind in lanes.fields():
            if number == _CODEC and kind == INT:
                lanes.same_integer()
            elif number in (_VALUES, _DECODED_BYTES, _BYTES, _DATA, _DICTIONARY) and kind == LONG:
                numbers[number] = lanes.integers()
            else:
                lanes.skip(kind)
        return numbers
