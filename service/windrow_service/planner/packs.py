"""Which files packs hold, and which files are worth a pack.

A pack may stand for a file only if everything that the inventory knows the file by is what the pack
was made of: so `Coverage` is made from packs, asked with an inventory, and is the only way to a place
in a pack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.arrays import flat
from windrow_core.planning import AloneReason, UnpackedReason
from windrow_service.planner.splits import Bools, Ints

# What tells a file from any other, and from its replacement.
IDENTITY = ("path", "size_bytes", "mtime_ns", "etag", "row_count")
NO_PACK = -1
UNPACKED: tuple[UnpackedReason, ...] = get_args(UnpackedReason)
# Measured by benchmarks/packs.py, on files of 5 KB and 19 columns: packing a file, and what DuckDB
# needs to read it by itself rather than as a part of a pack.
PACK_SECONDS, READ_SECONDS = 0.00062, 0.00015
PACK_BYTES_PER_SECOND = 40 * 2**20
# About as many rows of a pack are decoded together; see `windrow_tables.packs.writing`.
GROUP_ROWS, _MOST_GROUPS = 20_000, 2**40
# Fewer files are opened as quickly as a pack is. Most rows that are decoded for one that is wanted.
_FEWEST_WANTED, _MOST_DECODED = 48, 4
# Of one piece: a process holds the rows of one pack at a time, so pieces need not be smaller.
_PIECE_FILES, _PIECE_BYTES = 50_000, 512 * 2**20


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


@dataclass(frozen=True, slots=True)
class Packing:
    """The files that are worth a pack.

    Attributes:
        files: They, piece by piece, and in each piece in the order in which packs have them.
        piece: For each, the number of its piece, ascending.
        left_alone: How many others there are, by reason.
    """

    files: pa.Table
    piece: Ints
    left_alone: dict[UnpackedReason, int]

    @property
    def core_seconds(self) -> float:
        """Predicted seconds of packing them, on one core."""
        return len(self.files) * PACK_SECONDS + self.size_bytes / PACK_BYTES_PER_SECOND

    @property
    def saved_seconds(self) -> float:
        """Predicted seconds that a read of all of them saves, on one core."""
        return len(self.files) * READ_SECONDS

    @property
    def size_bytes(self) -> int:
        """Their bytes."""
        return int(pc.sum(self.files["size_bytes"]).as_py() or 0)


def choose_files(
    files: pa.Table, coverage: Coverage | None, max_bytes: int, min_files: int, pieces: int
) -> Packing:
    """Choose the files of a table that are worth a pack.

    Args:
        files: An inventory.
        coverage: The packs that there are; None if there are none.
        max_bytes: Larger files are left as they are.
        min_files: Fewest files of a pack.
        pieces: Fewest pieces.

    Complexity: O(n log n).
    """
    partition = flat(files["partition"])
    values = partition.flatten()
    layouts = flat(files["layout"])
    has_null = np.zeros(len(files), np.bool_)
    for one in values:
        has_null |= np.asarray(one.is_null())
    is_packed = np.zeros(len(files), np.bool_)
    if coverage is not None:
        is_packed = coverage.of(files).pack != NO_PACK
    rows = files["row_count"]
    # The first reason that applies counts.
    reasons: list[Bools] = [
        is_packed,
        np.asarray(files["delete_count"]) > 0,
        np.asarray(pc.equal(pc.fill_null(rows, 0), 0)),
        np.asarray(files["size_bytes"]) > max_bytes,
        has_null,
        np.asarray(layouts.is_null()),
    ]
    reason = np.select(reasons, np.arange(len(reasons)), NO_PACK)
    left = np.flatnonzero(reason == NO_PACK)
    # Only files of one layout can be in a pack.
    kinds = layouts.dictionary_encode()
    kind = np.asarray(pc.fill_null(kinds.indices, 0), np.int64)[left]
    is_few = np.bincount(kind, minlength=len(kinds.dictionary) + 1)[kind] < min_files
    reason[left[is_few]] = UNPACKED.index("few")
    left, kind = left[~is_few], kind[~is_few]
    order = _order(kind, [one.take(pa.array(left)) for one in values], files["path"].take(left))
    files_to_pack = files.take(left[order])
    counts = np.bincount(reason[reason != NO_PACK], minlength=len(UNPACKED)).tolist()
    return Packing(
        files_to_pack,
        _pieces(kind[order], np.asarray(files_to_pack["size_bytes"], np.int64), pieces),
        {name: count for name, count in zip(UNPACKED, counts, strict=True) if count},
    )


def _order(kind: Ints, values: Sequence[pa.Array], paths: pa.ChunkedArray) -> Ints:
    names = [f"k{at}" for at in range(len(values) + 2)]
    columns = [pa.array(kind), *values, paths]
    keys = [(name, "ascending") for name in names]
    order: Ints = pc.sort_indices(pa.table(columns, names=names), sort_keys=keys).to_numpy()
    return order


def _pieces(kind: Ints, sizes: Ints, fewest: int) -> Ints:
    """Return for each file the number of its piece, which has files of one kind."""
    if not len(kind):
        return kind
    count = len(kind)
    piece_count = max(fewest, -(-count // _PIECE_FILES), -(-int(sizes.sum()) // _PIECE_BYTES))
    share = np.arange(count) * piece_count // count
    is_first = np.ones(count, np.bool_)
    is_first[1:] = (np.diff(kind) != 0) | (np.diff(share) != 0)
    piece: Ints = np.cumsum(is_first) - 1
    return piece
