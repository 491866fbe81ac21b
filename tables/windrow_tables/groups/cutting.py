"""Groups cut into smaller ones, for readers that need only some rows, or that share the work."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.arrays import array_of, flat, numbers_of

# Spark reads one partition, then four times as many as before, until it has enough rows.
_GROWTH = 4
# The open cost, in bytes, as in the planner.
OPEN_COST = 32 * 2**10
_NO_PACK = -1

_Ints = npt.NDArray[np.int64]


def splits_of(groups: pa.Table) -> pa.Table:
    """Return the splits of all groups, in order."""
    chunks = [chunk.flatten() for chunk in groups["splits"].chunks]
    type_ = groups.schema.field("splits").type.value_type
    return pa.Table.from_struct_array(pa.chunked_array(chunks, type_))


def with_small_first_groups(groups: pa.Table) -> pa.Table:
    """Return groups of which the first has one split, and each further one four times as many.

    When the first files hold enough rows, none of the others is read. Splits that come from one
    group stay in groups of its hosts and filter.

    Args:
        groups: The groups of a plan; at least one.
    """
    return _cut(groups, *_growing(_split_counts(groups).tolist()))


def shares_of(groups: pa.Table, count: int) -> list[pa.Table]:
    """Divide groups among workers, so that each has about as much to read.

    Args:
        groups: The groups of a plan.
        count: The number of workers.

    Returns:
        The groups of each worker, which together have each split once; none if there are fewer
        splits than workers.
    """
    if not len(groups):
        return [groups] * count
    costs = numbers_of(splits_of(groups)["length"]) + OPEN_COST
    ends = np.cumsum(costs)
    # A split belongs to the worker in whose part of the work its middle lies.
    owner = (ends - costs / 2) * count // ends[-1]
    counts = _split_counts(groups)
    group = np.repeat(np.arange(len(groups)), counts)
    is_first = np.append(True, (np.diff(group) != 0) | (np.diff(owner) != 0))
    begins = np.flatnonzero(is_first)
    pieces = _cut(groups, group[begins], np.diff(np.append(begins, len(group))))
    edges = np.searchsorted(owner[begins], np.arange(count + 1)).tolist()
    return [pieces.slice(begin, end - begin) for begin, end in pairwise(edges)]


def by_pack(groups: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return groups without the splits that packs hold, and groups of these splits.

    The latter have the splits of one pack, in its order, so that whoever shares them decodes few of
    its rows twice; and of one filter.
    """
    if not len(groups) or groups.schema.field("splits").type.value_type.get_field_index("pack") < 0:
        return groups, groups.slice(0, 0)
    splits, counts = splits_of(groups), _split_counts(groups)
    group = np.repeat(np.arange(len(groups)), counts)
    pack = numbers_of(splits["pack"].fill_null(_NO_PACK))
    alone, in_packs = np.flatnonzero(pack == _NO_PACK), np.flatnonzero(pack != _NO_PACK)
    left = np.bincount(group[alone], minlength=len(groups))
    filters = flat(groups["residual_filter"]).dictionary_encode().indices.fill_null(-1)
    filter_ = numbers_of(filters)[group]
    row = numbers_of(splits["pack_row"].fill_null(0))
    in_packs = in_packs[np.lexsort((row[in_packs], pack[in_packs], filter_[in_packs]))]
    is_first = np.append(True, (np.diff(pack[in_packs]) != 0) | (np.diff(filter_[in_packs]) != 0))
    begins = np.flatnonzero(is_first[: len(in_packs)])
    return (
        _cut(groups, np.flatnonzero(left), left[left > 0], splits.take(array_of(alone))),
        _cut(
            groups,
            group[in_packs][begins],
            np.diff(np.append(begins, len(in_packs))),
            splits.take(array_of(in_packs)),
        ),
    )


def _cut(groups: pa.Table, group: _Ints, size: _Ints, splits: pa.Table | None = None) -> pa.Table:
    """Return groups cut into pieces.

    Args:
        groups: The groups.
        group: The group of each piece.
        size: How many splits the piece has.
        splits: The splits of all pieces; by default those of the groups, in order.
    """
    if not len(group):
        return groups.slice(0, 0)
    splits = splits_of(groups) if splits is None else splits
    begins = np.cumsum(size) - size
    lists = pa.ListArray.from_arrays(
        array_of(np.append(begins, len(splits)).astype(np.int32)),
        splits.to_struct_array().combine_chunks(),
    )
    lengths = numbers_of(splits["length"])
    pieces = groups.take(array_of(group))
    for name, column in (
        ("group_id", array_of(np.arange(len(group))).cast(groups.schema.field("group_id").type)),
        ("size_bytes", array_of(np.add.reduceat(lengths, begins))),
        ("splits", lists.cast(groups.schema.field("splits").type)),
    ):
        pieces = pieces.set_column(pieces.column_names.index(name), name, column)
    return pieces


def _split_counts(groups: pa.Table) -> _Ints:
    return numbers_of(pc.list_value_length(groups["splits"])).astype(np.int64)


def _growing(counts: Sequence[int]) -> tuple[_Ints, _Ints]:
    """Return the group of each piece, and how many of its splits the piece has."""
    group, size, most = [], [], 1
    for number, count in enumerate(counts):
        left = count
        while left:
            group.append(number)
            size.append(min(most, left))
            left -= size[-1]
            most *= _GROWTH
    return np.array(group, np.int64), np.array(size, np.int64)
