"""Which files of a table are worth a pack, and which packs are to become one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.arrays import flat
from windrow_core.planning import UnpackedReason
from windrow_service.planner.packs import (
    NO_PACK,
    PACK_BYTES_PER_SECOND,
    PACK_SECONDS,
    READ_SECONDS,
    Coverage,
)
from windrow_service.planner.splits import Bools, Ints
from windrow_service.planner.writes.keys import Floats

UNPACKED: tuple[UnpackedReason, ...] = get_args(UnpackedReason)
# Of one piece: a process holds the rows of one pack at a time, so pieces need not be smaller.
_MOST_FILES, _MOST_BYTES = 50_000, 512 * 2**20
# A process starts in about the time in which it packs so many.
_FEWEST_FILES = 2_000
# So many packs of a tier become one, which has at least as many times the files: so each file is packed
# once more for each tier, of which there are four from 48 to 50,000 files.
_TIER = 16
# Larger ones would fall apart again: the decoded rows of a pack are limited.
_MOST_JOINED_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingRules:
    """What is worth a pack.

    Attributes:
        max_bytes: Larger files are left as they are.
        min_files: Fewest files of a pack.
        pieces: Most pieces that few files are divided into.
    """

    max_bytes: int
    min_files: int
    pieces: int


@dataclass(frozen=True, slots=True)
class PackedFiles:
    """The packs that a table has.

    Attributes:
        coverage: What they hold.
        kinds: For each, the kind of its files; only those of one kind can be in one pack. None if
            that is not known.
    """

    coverage: Coverage
    kinds: Sequence[str | None]


@dataclass(frozen=True, slots=True)
class Packing:
    """The files that are worth a pack.

    Attributes:
        files: They, piece by piece, and in each piece in the order in which packs have them.
        piece: For each, the number of its piece, ascending.
        is_new: For each, whether it is in no pack yet.
        live: For each pack that there is, how many files it stands for.
        is_joined: For each of them, whether its files are packed anew, so that packs become fewer.
        packed_bytes: Bytes of the files that are in packs.
        left_alone: How many others there are, by reason.
    """

    files: pa.Table
    piece: Ints
    is_new: Bools
    live: Ints
    is_joined: Bools
    packed_bytes: int
    left_alone: dict[UnpackedReason, int]

    @property
    def core_seconds(self) -> float:
        """Predicted seconds of packing them, on one core."""
        return float(pack_seconds(np.array([len(self.files)]), np.array([self.size_bytes]))[0])

    @property
    def saved_seconds(self) -> float:
        """Predicted seconds that a read of all of them saves, on one core."""
        return int(self.is_new.sum()) * READ_SECONDS

    @property
    def size_bytes(self) -> int:
        """Their bytes."""
        return int(pc.sum(self.files["size_bytes"]).as_py() or 0)


def pack_seconds(files: Ints, size_bytes: Ints) -> Floats:
    """Return the predicted seconds of packing so many files, on one core."""
    return np.asarray(files * PACK_SECONDS + size_bytes / PACK_BYTES_PER_SECOND, np.float64)


def choose_files(
    files: pa.Table,
    packs: PackedFiles | None,
    rules: PackingRules,
    apart: Mapping[UnpackedReason, Bools],
) -> Packing:
    """Choose the files of a table that are worth a pack.

    Args:
        files: An inventory.
        packs: The packs that there are; None if there are none.
        rules: What is worth a pack.
        apart: Files that the caller leaves alone, by reason.

    Complexity: O(n log n).
    """
    partition = flat(files["partition"])
    values = partition.flatten()
    layouts = flat(files["layout"])
    sizes = np.asarray(files["size_bytes"], np.int64)
    has_null = np.zeros(len(files), np.bool_)
    for one in values:
        has_null |= np.asarray(one.is_null())
    none = np.zeros(len(files), np.bool_)
    in_packs = is_again = none
    live, is_joined = np.zeros(0, np.int64), np.zeros(0, np.bool_)
    if packs is not None:
        pack = packs.coverage.of(files).pack
        in_packs = pack != NO_PACK
        live = np.bincount(pack[in_packs], minlength=len(packs.kinds))
        bytes_ = np.bincount(pack[in_packs], sizes[in_packs], len(packs.kinds)).astype(np.int64)
        is_joined = packs_to_join(packs.kinds, live, bytes_, rules.pieces)
        is_again = in_packs & is_joined[pack]
    # The first reason that applies counts.
    reasons: dict[UnpackedReason, Bools] = {
        "packed": in_packs & ~is_again,
        "excluded": apart.get("excluded", none) & ~is_again,
        "quiet": apart.get("quiet", none) & ~is_again,
        "deletes": np.asarray(files["delete_count"]) > 0,
        "no_rows": np.asarray(pc.equal(pc.fill_null(files["row_count"], 0), 0)),
        "large": sizes > rules.max_bytes,
        "null_partition": has_null,
        "unknown_layout": np.asarray(layouts.is_null()),
    }
    numbers = [UNPACKED.index(name) for name in reasons]
    reason = np.select(list(reasons.values()), numbers, NO_PACK)
    left = np.flatnonzero(reason == NO_PACK)
    # Only files of one layout can be in a pack.
    kinds = layouts.dictionary_encode()
    kind = np.asarray(pc.fill_null(kinds.indices, 0), np.int64)[left]
    is_few = np.bincount(kind, minlength=len(kinds.dictionary) + 1)[kind] < rules.min_files
    reason[left[is_few]] = UNPACKED.index("few")
    left, kind = left[~is_few], kind[~is_few]
    order = _order(kind, [one.take(pa.array(left)) for one in values], files["path"].take(left))
    left = left[order]
    counts = np.bincount(reason[reason != NO_PACK], minlength=len(UNPACKED)).tolist()
    return Packing(
        files.take(left),
        _pieces(kind[order], sizes[left], rules.pieces),
        ~is_again[left],
        live,
        is_joined,
        int(sizes[in_packs].sum()),
        {name: count for name, count in zip(UNPACKED, counts, strict=True) if count},
    )


def packs_to_join(
    kinds: Sequence[str | None], counts: Ints, size_bytes: Ints, pieces: int
) -> Bools:
    """Return which packs are to be packed anew, together, so that they become fewer.

    Args:
        kinds: For each pack, the kind of its files; None if that is not known.
        counts: For each, how many files it stands for.
        size_bytes: For each, the bytes of these files.
        pieces: Most pieces that few files are divided into.
    """
    tiers = defaultdict(list)
    tier = np.floor(np.log(np.maximum(counts, 1)) / np.log(_TIER)).astype(np.int64)
    for at, kind in enumerate(kinds):
        if kind is not None and counts[at]:
            tiers[kind, int(tier[at])].append(at)
    to_join = np.zeros(len(kinds), np.bool_)
    for some in tiers.values():
        count, bytes_ = int(counts[some].sum()), int(size_bytes[some].sum())
        becomes = max(_piece_count(count, bytes_, pieces), -(-bytes_ // _MOST_JOINED_BYTES))
        # Otherwise they would be packed again and again.
        if len(some) >= max(_TIER, 2 * becomes):
            to_join[some] = True
    return to_join


def worth_keeping(saved_seconds: Floats, size_bytes: Ints, max_bytes: int) -> Bools:
    """Return which packs stay within a limit of bytes: those that save most reading for their bytes.

    Args:
        saved_seconds: For each of n packs, what a read saves.
        size_bytes: For each, its bytes.
        max_bytes: Most bytes of all that stay.
    """
    order = np.argsort(-saved_seconds / np.maximum(size_bytes, 1), kind="stable")
    stays, left = np.zeros(len(order), np.bool_), max_bytes
    for at in order.tolist():
        # One that is too large leaves its room to others.
        stays[at] = size_bytes[at] <= left
        left -= int(size_bytes[at]) if stays[at] else 0
    return stays


def _order(kind: Ints, values: Sequence[pa.Array], paths: pa.ChunkedArray) -> Ints:
    names = [f"k{at}" for at in range(len(values) + 2)]
    columns = [pa.array(kind), *values, paths]
    keys = [(name, "ascending") for name in names]
    order: Ints = pc.sort_indices(pa.table(columns, names=names), sort_keys=keys).to_numpy()
    return order


def _pieces(kind: Ints, sizes: Ints, most: int) -> Ints:
    """Return for each file the number of its piece, which has files of one kind."""
    count = len(kind)
    if not count:
        return kind
    share = np.arange(count) * _piece_count(count, int(sizes.sum()), most) // count
    is_first = np.ones(count, np.bool_)
    is_first[1:] = (np.diff(kind) != 0) | (np.diff(share) != 0)
    piece: Ints = np.cumsum(is_first) - 1
    return piece


def _piece_count(count: int, size_bytes: int, most: int) -> int:
    few = min(most, count // _FEWEST_FILES)
    return max(1, few, -(-count // _MOST_FILES), -(-size_bytes // _MOST_BYTES))
