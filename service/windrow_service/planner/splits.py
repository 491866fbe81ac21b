"""Splits as columns, and the runs that packing makes of them."""

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

# What sums of costs may come to: with the bytes of all files they fit 64 bits.
MAX_COST = 2**60
NO_BUCKET = -1
_BLOCK = 2**18
NO_HOST = -1


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts of m splits, in compressed sparse rows.

    Attributes:
        names: Distinct host names, ascending.
        racks: The rack of each of them, or "" where it is not known.
        offsets: m + 1 positions in `codes`; row i is `codes[offsets[i]:offsets[i + 1]]`.
        codes: Positions in `names`, in the order in which the file names its hosts.
        each: How many hosts every split has, or None if not all have as many; this is the
            usual case, and spares most of the arithmetic.
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
        # A host that is named with its rack and without is one host.
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
        """How many hosts each split has."""
        if self.each is not None:
            return np.broadcast_to(np.int64(self.each), len(self.offsets) - 1)
        return np.diff(self.offsets)

    def repeat(self, values: npt.NDArray[AnyValue]) -> npt.NDArray[AnyValue]:
        """Return a value of each split for each of its hosts."""
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
        """Return the racks that hold a replica of each split, each once, as if they were hosts."""
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
        """Return the code of host number `position` of each split, or NO_HOST past its last."""
        if not len(self.codes):
            return np.full(len(position), NO_HOST, np.int64)
        index = self.offsets[:-1] + position
        if self.each is not None and int(position.max()) < self.each:
            codes: Ints = self.codes[index].astype(np.int64)
            return codes
        found = index < self.offsets[1:]
        return np.where(found, self.codes[np.where(found, index, 0)], NO_HOST)


@dataclass(frozen=True, slots=True)
class Deletes:
    """The delete files that a reader must apply to m splits.

    Attributes:
        count: Delete files of each split's file.
        size_bytes: What they hold of it.
    """

    count: Ints
    size_bytes: Ints

    def take(self, rows: Ints) -> Deletes:
        """Return those of the splits at `rows`, in that order."""
        return Deletes(self.count[rows], self.size_bytes[rows])


@dataclass(frozen=True, slots=True)
class Splits:
    """Splits as columns of the same length, ordered by path and position in the file.

    Attributes:
        file: Row of the split's file in the inventory.
        start: Offset of the first byte.
        length: Bytes.
        bucket: Bucket number, or NO_BUCKET.
        hosts: Hosts of the file.
        deletes: Its delete files; None where no file has any.
        fingerprints: A hash of each file of the inventory, as far as it has splits.
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
        """A hash of each split's file, for choices that should not move when others come."""
        return self.fingerprints[self.file]

    def open_cost(self, asked: int) -> int:
        """Return what opening a file may cost, at most what is asked, so that sums of it fit."""
        opened = len(self)
        if self.deletes is not None:
            opened += int(self.deletes.count.sum())
        return min(asked, MAX_COST // max(opened, 1))

    def work(self, open_file_cost: int) -> Ints:
        """Return what reading each split costs, in bytes of reading; at least 1.

        A split costs its bytes, those of its delete files, and the opening of all of them.
        """
        cost = self.length + open_file_cost
        if self.deletes is not None:
            cost += self.deletes.size_bytes + self.deletes.count * open_file_cost
        # Even an empty file that costs nothing to open is something to do.
        return np.maximum(cost, 1)


@dataclass(frozen=True, slots=True)
class Groups:
    """Every split in exactly one group: group g holds `order[offsets[g]:offsets[g + 1]]`.

    Attributes:
        order: A permutation of the splits' rows.
        offsets: Group boundaries in `order`, ascending from 0 to its length; no group is empty.
    """

    order: Ints
    offsets: Ints

    @classmethod
    def by_number(cls, number: Ints) -> Groups:
        """Gather splits that carry the same number; inside a group they keep their order."""
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
    """Return the positions that sort keys of at least 0; equal ones keep their order.

    Complexity: O(n) for each 16 bits of the largest key: NumPy sorts so short integers by
    radix, several times faster than longer ones.
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
    """Return the different keys, ascending; several times faster than `np.unique`, which hashes."""
    in_order = np.sort(keys, kind="stable")
    return in_order[run_offsets(in_order)[:-1]]


def run_offsets(*keys: Ints) -> Ints:
    """Return where runs of equal keys begin, and the length at the end."""
    size = len(keys[0])
    if size == 0:
        return np.zeros(1, np.int64)
    change = np.zeros(size - 1, np.bool_)
    for key in keys:
        change |= key[1:] != key[:-1]
    return np.concatenate(([0], np.flatnonzero(change) + 1, [size])).astype(np.int64)


def key_blocks(keys: Ints) -> Iterator[tuple[int, int]]:
    """Yield ranges of keys with about so many splits that work on them stays in the caches.

    Args:
        keys: Where runs of equal keys begin, and the number of splits at the end.
    """
    first = 0
    while first < len(keys) - 1:
        end = int(np.searchsorted(keys, keys[first] + _BLOCK, side="right")) - 1
        end = max(end, first + 1)
        yield first, end
        first = end


def run_numbers(offsets: Ints) -> Ints:
    """Return the number of its run for each element; the reverse of `run_offsets`."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def walk(following: Ints) -> Ints:
    """Return 0, following[0], following[following[0]], … up to the end: one step per piece."""
    steps = following.data
    visited = []
    at = 0
    while at < len(steps):
        visited.append(at)
        at = steps[at]
    return np.array(visited, np.int64)
