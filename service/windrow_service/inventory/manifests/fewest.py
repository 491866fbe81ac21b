"""The fewest files that a table can have if its files are well sized and its folders stay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.sizes import WELL_SIZED_BYTES
from windrow_service.inventory.manifests.encoding import Manifest
from windrow_service.planner.folders import FolderBuckets, folders_of
from windrow_service.planner.pruning.bounds import mask


def fewest_files(files: pa.Table) -> int:
    """Return how many files of `WELL_SIZED_BYTES` would hold the bytes of some files.

    Each folder, and each bucket in it, has files of its own, so it needs at least one.

    Args:
        files: n files in path order, with the columns of an inventory.
    """
    if not len(files):
        return 0
    homes = FolderBuckets.of(files)
    # Exact, since no total is above 2^53.
    size = np.bincount(homes.of_file, files["size_bytes"].to_numpy(), len(homes))
    return int(np.maximum(np.ceil(size / WELL_SIZED_BYTES), 1).sum())


def fewest_gained(manifests: Sequence[Manifest], gains: pa.Table) -> int:
    """Return the fewest files of the folders that only a change has.

    A folder whose paths lie within the range of a manifest may be in the table already: it counts
    with the next whole inventory.

    Args:
        manifests: Manifests before the change.
        gains: The files that the change adds, in path order.
    """
    if not len(gains):
        return 0
    folder = folders_of(gains["path"]).combine_chunks().dictionary_encode()
    names = folder.dictionary
    is_root = pc.equal(names, "")
    # All paths of a folder lie between these: "0" follows "/".
    first = pc.if_else(is_root, "", pc.binary_join_element_wise(names, "/", ""))
    last = pc.if_else(is_root, "\U0010ffff", pc.binary_join_element_wise(names, "0", ""))
    is_new = np.ones(len(names), np.bool_)
    for one in manifests:
        is_new &= ~mask(
            pc.and_(pc.less_equal(first, one.last_path), pc.greater(last, one.first_path))
        )
    if not is_new.any():
        return 0
    of_file = folder.indices.to_numpy(zero_copy_only=False)
    return fewest_files(gains.filter(pa.array(is_new[of_file])))
