"""Splits as columns, and helpers for runs of equal keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Hashes: TypeAlias = npt.NDArray[np.uint64]
AnyValue = TypeVar("AnyValue", bound=np.generic)

# Upper bound of sums of costs: together with the bytes of all files they fit 64 bits.
MAX_COST = 2**60
NO_BUCKET = -1
_BLOCK = 2**18
NO_HOST = -1


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts of m splits, in compressed sparse rows.

    Attributes:
        names: Distinct host names, ascending.
        racks: The rack of each host, or "" if unknown.
        offsets: m + 1 positions in `codes`; row i is `codes[offsets[i]:offsets[i + 1]]`.
        codes: Positions in `names`, in the order in which the file lists its hosts.
        each: Number of hosts of every split, or None if it varies. A uniform number is the
            usual case, and saves most of the arithmetic.
    """

    names: tuple[str, ...]
    racks: tuple[str, ...]
    offsets: Ints
    codes: npt.NDArray[np.int32]
    each: int | None = None

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> Hosts:
        """Read a `list<string>` column of `name` or `/rack/name`."""
        lists = column.combine_chunks()
        lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
        offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        if offsets[-1] == 0:
            return cls((), (), offsets, np.empty(0, np.int32))
        coded = pc.list_flatten(lists).dictionary_encode()
        topology = [_rack_and_name(text) for text in coded.dictionary.to_pylist()]
        # A host named both with and without its rack is one host.
        rack_of: dict[str, str] = {}
        for rack, name in sorted(topology, reverse=True):
            rack_of.setdefault(name, rack)
        names = tuple(sorted(rack_of))
        position = {name: at for at, name in enumerate(names)}
        code = np.array([position[name] for _, name in topology], np.int32)
        racks = tuple(rack_of[name] for name in names)
        each = int(lengths[0]) if lengths.min() == lengths.max() else None
        codes = code[coded.indices.to_numpy(zero_copy_only=False)]
        return cls(names, racks, offsets, codes, each)

    @property
    def counts(self) -> Ints:
        """Number of hosts of each split."""
        if self.each is not None:
            return np.broadcast_to(np.int64(self.each), len(self.offsets) - 1)
        return np.diff(self.offsets)

    def repeat(self, values: npt.NDArray[AnyValue]) -> npt.NDArray[AnyValue]:
        """Repeat the value of each split once for each of its hosts."""
        return np.repeat(values, self.counts if self.each is None else self.each)

    def take(self, rows: Ints) -> Hosts:
        """Return the hosts of the splits at `rows`, in that order."""
        if not self.names:
            return Hosts((), (), np.zeros(len(rows) + 1, np.int64), self.codes)
        if _is_identity(rows, len(self.offsets) - 1):
            return self
        if self.each is not None:
            codes = self.codes.reshape(-1, self.each)[rows].reshape(-1)
            return replace(self, offsets=np.arange(len(rows) + 1) * self.each, codes=codes)
        counts = self.counts[rows]
        offsets = np.concatenate(([0], np.cumsum(counts)))
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        codes = self.codes[np.repeat(self.offsets[rows], counts) + within]
        return replace(self, offsets=offsets, codes=codes)

    def by_rack(self) -> Hosts:
        """Return the racks that hold a replica of each split, each once, in place of hosts."""
        names = tuple(sorted({rack for rack in self.racks if rack}))
        number = {rack: at for at, rack in enumerate(names)}
        rack = np.array([number.get(rack, -1) for rack in self.racks], np.int64)[self.codes]
        pairs = (run_numbers(self.offsets) * len(names) + rack)[rack >= 0]
        pairs = distinct(pairs)
        counts = np.bincount(pairs // len(names), minlength=len(self.offsets) - 1)
        offsets = np.concatenate(([0], np.cumsum(counts)))
        codes = (pairs % len(names)).astype(np.int32)
        return Hosts(names, ("",) * len(names), offsets, codes)

    def nth(self, position: Ints) -> Ints:
        """Return the code of the host at `position` of each split, or NO_HOST if it has fewer."""
        if not len(self.codes):
            return np.full(len(position), NO_HOST, np.int64)
        index = self.offsets[:-1] + position
        if self.each is not None and int(position.max()) < self.each:
            codes: Ints = self.codes[index].astype(np.int64)
            return codes
        exists = index < self.offsets[1:]
        return np.where(exists, self.codes[np.where(exists, index, 0)], NO_HOST)


@dataclass(frozen=True, slots=True)
class Deletes:
    """The delete files that a reader must apply to m splits.

    Attributes:
        count: Number of delete files of each split's file.
        size_bytes: Bytes of delete files that apply to it.
    """

    count: Ints
    size_bytes: Ints

    def take(self, rows: Ints) -> Deletes:
        """Return the delete files of the splits at `rows`, in that order."""
        return Deletes(self.count[rows], self.size_bytes[rows])


@dataclass(frozen=True, slots=True)
class Splits:
    """Splits as columns of the same length, ordered by path and position in the file.

    Attributes:
        file: Row of the split's file in the inventory.
        start: Offset of the first byte.
        length: Bytes.
        bucket: Bucket number, or NO_BUCKET.
        hosts: Hosts of each split's file.
        deletes: Delete files of each split's file; None if no file has any.
        fingerprints: A hash of each file of the inventory; only set for files with splits.
    """

    file: Ints
    start: Ints
    length: Ints
    bucket: Ints
    hosts: Hosts
    deletes: Deletes | None
    fingerprints: Hashes

    def __len__(self) -> int:
        return len(self.file)

    def take(self, rows: Ints) -> Splits:
        """Return the splits at `rows`, in that order."""
        return replace(
            self,
            file=self.file[rows],
            start=self.start[rows],
            length=self.length[rows],
            bucket=self.bucket[rows],
            hosts=self.hosts.take(rows),
            deletes=self.deletes and self.deletes.take(rows),
        )

    @property
    def fingerprint(self) -> Hashes:
        """A hash of each split's file, for choices that stay the same when files are added."""
        return self.fingerprints[self.file]

    def open_cost(self, cost: int) -> int:
        """Return the cost of opening a file: `cost`, reduced if sums of it would overflow."""
        opens = len(self)
        if self.deletes is not None:
            opens += int(self.deletes.count.sum())
        return min(cost, MAX_COST // max(opens, 1))

    def work(self, open_file_cost: int) -> Ints:
        """Return the cost of reading each split, in bytes of reading; at least 1.

        The cost is its bytes, those of its delete files, and the opening of all these files.
        """
        cost = self.length + open_file_cost
        if self.deletes is not None:
            cost += self.deletes.size_bytes + self.deletes.count * open_file_cost
        # Even an empty file that costs nothing to open is some work.
        return np.maximum(cost, 1)


@dataclass(frozen=True, slots=True)
class Groups:
    """An assignment of every split to one group: group g holds `order[offsets[g]:offsets[g + 1]]`.

    Attributes:
        order: A permutation of the splits' rows.
        offsets: Group boundaries in `order`, ascending from 0 to its length; no group is empty.
    """

    order: Ints
    offsets: Ints

    @classmethod
    def by_number(cls, number: Ints) -> Groups:
        """Group splits that have the same number; within a group they keep their order."""
        order = stable_order(number)
        return cls(order, run_offsets(number[order]))


def _is_identity(rows: Ints, count: int) -> bool:
    if len(rows) != count or count == 0 or rows[0] != 0 or rows[-1] != count - 1:
        return False
    return bool((rows[1:] > rows[:-1]).all())


def _rack_and_name(text: str) -> tuple[str, str]:
    rack, slash, name = text.rpartition("/")
    return (rack, name) if slash else ("", text)


def stable_order(keys: Ints) -> Ints:
    """Return the positions that sort keys of at least 0; equal keys keep their order.

    Complexity: O(n) for each 16 bits of the largest key: NumPy sorts 16-bit integers by radix
    sort, which is several times faster than sorting longer ones.
    """
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    top = int(keys.max(initial=0))
    shift = 16
    while top >> shift:
        digits = (keys >> shift).astype(np.uint16)
        order = order[np.argsort(digits[order], kind="stable")]
        shift += 16
    return order


def distinct(keys: Ints) -> Ints:
    """Return the distinct keys, ascending; several times faster than `np.unique`, which hashes."""
    in_order = np.sort(keys, kind="stable")
    return in_order[run_offsets(in_order)[:-1]]


def run_offsets(*keys: Ints) -> Ints:
    """Return where runs of equal keys begin, followed by the number of keys."""
    size = len(keys[0])
    if size == 0:
        return np.zeros(1, np.int64)
    change = np.zeros(size - 1, np.bool_)
    for key in keys:
        change |= key[1:] != key[:-1]
    return np.concatenate(([0], np.flatnonzero(change) + 1, [size])).astype(np.int64)


def key_blocks(keys: Ints) -> Iterator[tuple[int, int]]:
    """Yield ranges of keys with about _BLOCK splits, so that work on them fits the CPU caches.

    Args:
        keys: Starts of the runs of equal keys, followed by the number of splits.
    """
    first = 0
    while first < len(keys) - 1:
        end = int(np.searchsorted(keys, keys[first] + _BLOCK, side="right")) - 1
        end = max(end, first + 1)
        yield first, end
        first = end


def run_numbers(offsets: Ints) -> Ints:
    """Return the run number of each element; the reverse of `run_offsets`."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def walk(following: Ints) -> Ints:
    """Return 0, following[0], following[following[0]], … up to the end, one step per piece."""
    steps = following.data
    stops = []
    at = 0
    while at < len(steps):
        stops.append(at)
        at = steps[at]
    return np.array(stops, np.int64)
