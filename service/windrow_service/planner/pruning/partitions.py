"""The distinct partition values of a snapshot, numbered in their order, and the files that have them.

Two values are the same if they have the same bits, except that all NaN are the same: -0.0 and 0.0
come from different folders, and Spark may tell them apart. In each column null comes first and NaN
last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files.arrays import flat
from windrow_service.planner.pruning.bounds import Bools, Ints, mask

# The columns of a manifest that `PartitionTuples` are made from.
TUPLE_SOURCES = ("partition", "size_bytes", "row_count", "delete_count")
FIGURES = ("file_count", "size_bytes", "row_count")
# A column of an inventory: whether the file is in one of the partitions that a plan names.
IN_PARTITIONS = "in_partitions"
# Up to this many possible numbers for each row, a table of them is quicker than sorting the rows.
_FLAGS_PER_ROW = 8
_MAX_NUMBER = 2**62


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionTuples:
    """The distinct partition values in the rows of one manifest, which a snapshot may have reduced.

    Attributes:
        columns: For each partition column, its values in k tuples; the tuples ascend.
        code: For each row of the manifest, the position of its tuple; removed rows have one, too.
        file_count: Number of live rows of each tuple, which may be 0.
        size_bytes: Bytes of their files.
        row_count: Rows in their files, as far as they are counted.
        uncounted: Whether the rows of some file are not counted, or are partly deleted.
    """

    columns: tuple[pa.Array, ...]
    code: npt.NDArray[np.unsignedinteger]
    file_count: Ints
    size_bytes: Ints
    row_count: Ints
    uncounted: Bools

    @classmethod
    def of(cls, files: pa.Table, removals: npt.NDArray[np.int32]) -> PartitionTuples:
        """Return the tuples of a manifest.

        Args:
            files: All n rows of the manifest, with the columns `TUPLE_SOURCES` at least.
            removals: Positions of removed rows.

        Complexity: O(n), and O(n log n) if the columns have many distinct values.
        """
        partition = flat(files["partition"])
        columns = [partition.field(at) for at in range(partition.type.num_fields)]
        code, first = _numbered(columns, len(files))
        live = np.ones(len(files), np.bool_)
        live[removals] = False
        at, count = code[live], len(first)
        rows = files["row_count"]
        unsure = ~mask(rows.is_valid()) | (files["delete_count"].to_numpy() > 0)
        return cls(
            columns=tuple(column.take(pa.array(first)) for column in columns),
            code=code.astype(np.uint16 if count <= 2**16 else np.uint32),
            file_count=np.bincount(at, minlength=count),
            size_bytes=_sums(files["size_bytes"].to_numpy()[live], at, count),
            row_count=_sums(rows.fill_null(0).to_numpy()[live], at, count),
            uncounted=np.bincount(at[unsure[live]], minlength=count) > 0,
        )

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory."""
        arrays = (self.code, self.file_count, self.size_bytes, self.row_count, self.uncounted)
        return int(sum(one.nbytes for one in (*self.columns, *arrays)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Numbering:
    """The partitions of a snapshot: the distinct values among its files, ascending.

    Attributes:
        partitions: The partition columns, then `FIGURES`; the number of a partition is its row.
        numbers: For each manifest, the number of the partition of each of its tuples, or -1 if
            no live file has the tuple.
    """

    partitions: pa.Table
    numbers: tuple[npt.NDArray[np.int32], ...]

    @classmethod
    def of(cls, manifests: Sequence[PartitionTuples], schema: pa.Schema) -> Numbering:
        """Number the partitions of a snapshot.

        Args:
            manifests: The tuples of each of its manifests.
            schema: The partition columns.

        Complexity: O(n log n) for n tuples.
        """
        live = [np.flatnonzero(one.file_count) for one in manifests]
        columns = [
            pa.concat_arrays(
                [pa.array([], field.type)]
                + [
                    one.columns[at].take(pa.array(rows))
                    for one, rows in zip(manifests, live, strict=True)
                ]
            )
            for at, field in enumerate(schema)
        ]
        number, first = _numbered(columns, sum(map(len, live)))

        def totals(name: str) -> Ints:
            parts = [getattr(one, name)[rows] for one, rows in zip(manifests, live, strict=True)]
            joined = np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64)
            return _sums(joined, number, len(first))

        rows_of_manifests = []
        start = 0
        for one, rows in zip(manifests, live, strict=True):
            numbers = np.full(len(one.file_count), -1, np.int32)
            numbers[rows] = number[start : start + len(rows)]
            rows_of_manifests.append(numbers)
            start += len(rows)
        figures = [
            pa.array(totals("file_count")),
            pa.array(totals("size_bytes")),
            pa.array(totals("row_count"), mask=totals("uncounted") > 0),
        ]
        fields = [*schema, *(pa.field(name, pa.int64()) for name in FIGURES)]
        values = [column.take(pa.array(first)) for column in columns]
        partitions = pa.table([*values, *figures], schema=pa.schema(fields))
        return cls(partitions=partitions, numbers=tuple(rows_of_manifests))

    def __len__(self) -> int:
        return int(self.partitions.num_rows)

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory."""
        return int(self.partitions.nbytes) + sum(numbers.nbytes for numbers in self.numbers)

    def flags(self, ranges: Sequence[tuple[int, int]]) -> Bools:
        """Return which partitions are in ranges of their numbers.

        Args:
            ranges: Each `(first, end)`, ascending, without overlaps, within the numbers there are.
        """
        edges = np.array(ranges, np.int64).reshape(-1, 2)
        steps = np.zeros(len(self) + 1, np.int64)
        # The end of one range may be the beginning of the next.
        steps[edges[:, 0]] += 1
        steps[edges[:, 1]] -= 1
        return np.asarray(np.cumsum(steps)[:-1] > 0)

    def manifests(self, flags: Bools) -> Bools:
        """Return which manifests have live files of some partitions.

        Args:
            flags: For each partition, whether it is meant.
        """
        return np.array([_among(numbers, flags).any() for numbers in self.numbers], np.bool_)

    def files(self, at: int, code: npt.NDArray[np.unsignedinteger], flags: Bools) -> Bools:
        """Return which rows of a manifest are in some partitions.

        Args:
            at: Position of the manifest in the snapshot.
            code: `PartitionTuples.code` of the manifest.
            flags: For each partition, whether it is meant.
        """
        return np.asarray(_among(self.numbers[at], flags)[code])


def _among(numbers: npt.NDArray[np.int32], flags: Bools) -> Bools:
    # The last flag stands for -1.
    return np.append(flags, False)[numbers]


def _numbered(columns: Sequence[pa.Array], count: int) -> tuple[Ints, Ints]:
    """Number rows by their values in several columns.

    Returns:
        The number of each row, ascending with its values; and for each number a row that has it.
    """
    number: Ints = np.zeros(count, np.int64)
    size = 1
    for column in columns:
        rank, ranks = _ranks(column)
        if size * ranks > _MAX_NUMBER:
            number, first = _dense(number, size)
            size = len(first)
        number = number * ranks + rank
        size *= ranks
    return _dense(number, size)


def _dense(number: Ints, size: int) -> tuple[Ints, Ints]:
    """Number rows from 0 without gaps; also return a row for each number."""
    if size > _FLAGS_PER_ROW * len(number) + 1:
        _, first, dense = np.unique(number, return_index=True, return_inverse=True)
        return dense.reshape(-1), first
    is_there = np.zeros(size, np.bool_)
    is_there[number] = True
    dense_of = np.cumsum(is_there) - 1
    dense = dense_of[number]
    first = np.zeros(int(np.count_nonzero(is_there)), np.int64)
    first[dense] = np.arange(len(number))
    return dense, first


def _ranks(column: pa.Array) -> tuple[Ints, int]:
    """Return the rank of each value, null having rank 0; and the number of ranks."""
    if pt.is_null(column.type):
        return np.zeros(len(column), np.int64), 1
    coded = _keys(column).dictionary_encode()
    rank = np.zeros(len(coded.dictionary) + 1, np.int64)
    rank[pc.array_sort_indices(coded.dictionary).to_numpy()] = np.arange(1, len(rank))
    # The last rank is that of null: 0.
    codes = coded.indices.fill_null(len(rank) - 1).to_numpy(zero_copy_only=False)
    return rank[codes], len(rank)


def _keys(column: pa.Array) -> pa.Array:
    """Return keys with the order of the values, which are equal only if the values are the same."""
    if not pt.is_floating(column.type):
        return column
    numbers = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
    # The bits of negative numbers ascend as the numbers descend.
    keys = np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    return pa.array(keys, mask=column.is_null().to_numpy(zero_copy_only=False))


def _sums(values: Ints, number: Ints, count: int) -> Ints:
    # np.bincount would add floats, which are not exact.
    sums = np.zeros(count, np.int64)
    np.add.at(sums, number, values)
    return sums
