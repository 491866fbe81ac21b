"""The rows that delete files name, kept so that any batch of rows can be compared with them.

A row of a transactional table is named by the write that added it, the number that codes its
bucket, and its position there. The names of a run are kept sorted, as one integer each, so that a few
binary searches look up a batch of rows.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from windrow_tables.executor.sorting import scratch_file, scratching

_Ints: TypeAlias = npt.NDArray[np.int64]
_Bools: TypeAlias = npt.NDArray[np.bool_]


class RowNames(NamedTuple):
    """The names of n rows.

    Attributes:
        write: The write that added each row; 0 if the row is older than all writes.
        bucket: Its bucket and statement, in Hive's code.
        row: Its position among the rows of that write and bucket.
    """

    write: _Ints
    bucket: _Ints
    row: _Ints

    def take(self, mask: _Bools) -> RowNames:
        """Return the names of some of the rows."""
        return RowNames(*(part[mask] for part in self))


class Memory:
    """Bounds the names that the sets of one group keep in memory; the rest go to scratch files.

    Args:
        max_names: Most names in memory; at most half as many are sorted at a time.
    """

    def __init__(self, max_names: int) -> None:
        self.max_names = max_names
        self.held = 0
        self.spilled = 0
        self._files = ExitStack()

    def close(self) -> None:
        """Remove the scratch files."""
        self._files.close()

    def place(self, run: _Run) -> _Run:
        """Return a run, in a scratch file if memory is full."""
        size = len(run.codes)
        if self.held + size <= self.max_names:
            self.held += size
            return run
        self.spilled += size
        return _Run(*(self._in_file(part) for part in run))

    def _in_file(self, values: _Ints) -> _Ints:
        with scratching():
            file: Any = self._files.enter_context(scratch_file())
            file.write(values.data)
            file.flush()
        return np.memmap(file, np.int64, mode="r", shape=values.shape)


class _Run(NamedTuple):
    """Names of rows: each code combines positions in the three sorted lists of distinct parts."""

    write: _Ints
    bucket: _Ints
    row: _Ints
    codes: _Ints

    @classmethod
    def of(cls, names: RowNames) -> _Run:
        parts = [np.unique(part, return_inverse=True) for part in names]
        (writes, write), (buckets, bucket), (rows, row) = parts
        codes = (write * len(buckets) + bucket) * len(rows) + row
        return cls(writes, buckets, rows, np.unique(codes))

    def holds(self, names: RowNames) -> _Bools:
        mask = np.ones(len(names.write), np.bool_)
        codes = np.zeros(len(mask), np.int64)
        for own, part in zip(self[:3], names, strict=True):
            at = _positions(own, part)
            mask &= own[at] == part
            codes = codes * len(own) + at
        mask &= self.codes[_positions(self.codes, codes)] == codes
        return mask


def _positions(values: _Ints, keys: _Ints) -> _Ints:
    return np.minimum(np.searchsorted(values, keys), len(values) - 1)


class DeletedRows:
    """A set of names of rows.

    Args:
        memory: The memory that it shares with other sets.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._pending: list[RowNames] = []
        self._pending_count = 0
        self._runs: list[_Run] = []

    def add(self, names: RowNames) -> None:
        """Add names, in any order."""
        # Runs are short enough that a product of three positions does not overflow.
        most = max(1, min(self._memory.max_names // 2, _MAX_RUN))
        for start in range(0, len(names.write), most):
            part = RowNames(*(values[start : start + most] for values in names))
            if self._pending_count + len(part.write) > most:
                self._sort()
            self._pending.append(part)
            self._pending_count += len(part.write)

    def _sort(self) -> None:
        if self._pending_count:
            names = RowNames(*map(np.concatenate, zip(*self._pending, strict=True)))
            self._runs.append(self._memory.place(_Run.of(names)))
        self._pending, self._pending_count = [], 0

    def hold(self, names: RowNames) -> _Bools:
        """Return which of n rows are in the set."""
        self._sort()
        mask = np.zeros(len(names.write), np.bool_)
        for run in self._runs:
            mask |= run.holds(names)
        return mask


# Its cube fits into 63 bits.
_MAX_RUN = 2**20
