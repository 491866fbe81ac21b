"""Which blocks of their files splits cover: row groups or stripes, by number."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_service.planner.splits import Splits


def covered_blocks(files: pa.Table, splits: Splits) -> tuple[pa.Array, pa.Array]:
    """Return the first block of each of n splits, and how many it covers; null for whole files.

    Args:
        files: An inventory.
        splits: n splits of its files, cut where blocks begin.
    """
    size = files["size_bytes"].to_numpy()
    whole = (splits.start == 0) & (splits.length >= size[splits.file])
    first, count = np.zeros(len(whole), np.int64), np.zeros(len(whole), np.int64)
    parts = np.flatnonzero(~whole)
    if len(parts):
        cut, place = np.unique(splits.file[parts], return_inverse=True)
        lists = files["row_group_offsets"].take(pa.array(cut)).combine_chunks()
        of_file = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
        # Files laid end to end, so that one search serves all of them.
        base = np.cumsum(size[cut]) - size[cut]
        begins = base[of_file] + pc.list_flatten(lists).to_numpy()
        before = np.searchsorted(of_file, np.arange(len(cut)))
        start = base[place] + splits.start[parts]
        stop = start + splits.length[parts]
        first[parts] = np.searchsorted(begins, start) - before[place]
        count[parts] = np.searchsorted(begins, stop) - np.searchsorted(begins, start)
    return pa.array(first, mask=whole), pa.array(count, mask=whole)
