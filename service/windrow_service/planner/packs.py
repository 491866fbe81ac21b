"""Which files packs hold, and where that pays off.

A pack may stand for a file only if everything that the inventory knows the file by is what the pack
was made of: so `Coverage` is made from packs, asked with an inventory, and is the only way to a place
in a pack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.arrays import flat
from windrow_core.planning import AloneReason
from windrow_service.planner.splits import Bools, Ints

# What tells a file from any other, and from its replacement.
IDENTITY = ("path", "size_bytes", "mtime_ns", "etag", "row_count")
NO_PACK = -1
# Measured by benchmarks/packs.py, on files of 5 KB and 19 columns: packing a file, and what DuckDB
# needs to read it by itself rather than as a part of a pack.
PACK_SECONDS, READ_SECONDS = 0.00062, 0.00015
PACK_BYTES_PER_SECOND = 40 * 2**20
# About as many rows of a pack are decoded together; see `windrow_tables.packs.writing`.
GROUP_ROWS, _MOST_GROUPS = 20_000, 2**40
# Fewer files are opened as quickly as a pack is. Most rows that are decoded for one that is wanted.
_FEWEST_WANTED, _MOST_DECODED = 48, 4


@dataclass(frozen=True, slots=True)
class PackSources:
    """The sources of a pack.

    Attributes:
        pack_id: The pack.
        rows: Its sources in its order, with at least the columns `IDENTITY`.
    """

    pack_id: str
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class Places:
    """Where packs hold n files.

    Attributes:
        pack: For each file, the position of its pack, or NO_PACK.
        source: For each of them, its number in that pack.
        first_row: For each of them, its first row there.
    """

    pack: Ints
    source: Ints
    first_row: Ints


class Coverage:
    """The files that some packs hold.

    Args:
        packs: The packs. A file that several hold belongs to the first.
        are_suspect: For each source of all packs, whether it may be another file of equal path, size
            and time; none by default.
    """

    def __init__(self, packs: Sequence[PackSources], are_suspect: Bools | None = None) -> None:
        self.packs = packs
        self._are_suspect = are_suspect
        counts = [len(one.rows) for one in packs]
        self._pack = np.repeat(np.arange(len(packs)), counts)
        self._source = np.concatenate([np.arange(count) for count in counts])
        rows = pa.concat_tables([one.rows for one in packs])
        sizes = np.asarray(rows["row_count"], np.int64)
        begins = [np.concatenate(([0], np.cumsum(some)))[:-1] for some in _cut(sizes, counts)]
        self._first_row = np.concatenate(begins)
        # Rows of each pack.
        self.row_counts = np.array([some.sum() for some in _cut(sizes, counts)], np.int64)
        self._identity = {name: flat(rows[name]) for name in IDENTITY}

    def of(self, files: pa.Table) -> Places:
        """Return where files are in packs.

        Args:
            files: n files of an inventory, with the columns `IDENTITY`.
        """
        at = pc.index_in(flat(files["path"]), self._identity["path"])
        is_same = at.is_valid()
        for name in IDENTITY[1:]:
            theirs, own = self._identity[name].take(at), flat(files[name])
            both_null = pc.and_(theirs.is_null(), own.is_null())
            is_same = pc.and_(
                is_same, pc.or_(pc.fill_null(pc.equal(theirs, own), False), both_null)
            )
        rows = np.asarray(pc.fill_null(at, 0), np.int64)
        in_packs = np.asarray(is_same)
        if self._are_suspect is not None:
            in_packs = in_packs & ~self._are_suspect[rows]
        return Places(
            np.where(in_packs, self._pack[rows], NO_PACK),
            np.where(in_packs, self._source[rows], NO_PACK),
            np.where(in_packs, self._first_row[rows], NO_PACK),
        )


def _cut(values: Ints, counts: Sequence[int]) -> list[Ints]:
    return np.split(values, np.cumsum(counts)[:-1])


@dataclass(frozen=True, slots=True)
class PackedSplits:
    """Where packs hold the files of m splits.

    Attributes:
        packs: Positions of the packs among those of the coverage.
        pack: For each split, the position of its pack in `packs`, or NO_PACK.
        first_row: For each of them, its first row there.
        alone: How many files have no split there, by reason.
    """

    packs: Ints
    pack: Ints
    first_row: Ints
    alone: dict[AloneReason, int]

    @property
    def file_count(self) -> int:
        """How many files have their rows read from packs: each is a split."""
        return int(np.count_nonzero(self.pack != NO_PACK))


def packed_splits(
    coverage: Coverage, files: pa.Table, file: Ints, are_whole: Bools
) -> PackedSplits:
    """Choose the splits whose rows are read from packs, which may be none.

    It pays off where a pack holds many of the files that are wanted, and few rows beside theirs.

    Args:
        coverage: What packs hold.
        files: n files of an inventory, with the columns `IDENTITY`.
        file: For each split, its file.
        are_whole: For each split, whether it is all of its file.
    """
    places = coverage.of(files)
    pack = np.where(are_whole, places.pack[file], NO_PACK)
    first_row = places.first_row[file]
    in_packs = np.flatnonzero(pack != NO_PACK)
    count = len(coverage.packs)
    counts_wanted = np.bincount(pack[in_packs], minlength=count)
    rows = np.asarray(files["row_count"].fill_null(0), np.int64)[file[in_packs]]
    # A row group is decoded whole, or not at all.
    decoded = (
        np.unique(pack[in_packs] * _MOST_GROUPS + first_row[in_packs] // GROUP_ROWS) // _MOST_GROUPS
    )
    wanted_rows = np.bincount(pack[in_packs], weights=rows, minlength=count)
    decoded_rows = np.minimum(
        np.bincount(decoded, minlength=count) * GROUP_ROWS, coverage.row_counts
    )
    pays_off = (counts_wanted >= _FEWEST_WANTED) & (decoded_rows <= _MOST_DECODED * wanted_rows)
    is_packed = (pack != NO_PACK) & pays_off[pack]
    packs, pack_of = np.unique(pack[is_packed], return_inverse=True)
    pack = np.full(len(file), NO_PACK)
    pack[is_packed] = pack_of
    is_wanted = np.zeros(len(files), np.bool_)
    is_wanted[file] = True
    is_cut = np.zeros(len(files), np.bool_)
    is_cut[file[~are_whole]] = True
    counts: dict[AloneReason, int] = {
        "in_no_pack": int(np.count_nonzero(is_wanted & (places.pack == NO_PACK))),
        "cut": int(np.count_nonzero(is_cut & (places.pack != NO_PACK))),
        "few_wanted": len(in_packs) - int(np.count_nonzero(is_packed)),
    }
    alone = {reason: count for reason, count in counts.items() if count}
    return PackedSplits(packs, pack, first_row, alone)
