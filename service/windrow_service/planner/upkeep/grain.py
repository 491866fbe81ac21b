"""Whether a table's partitions are finer than its bytes can fill."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow_core.files.rows import most_rows
from windrow_core.sizes import SMALL
from windrow_service.planner.folders import FolderBuckets, folders_of
from windrow_service.planner.splits import Ints
from windrow_service.planner.upkeep.origins import ideal_files

# With fewer partitions there is little to gain.
_FEW = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grain:
    """Partitions that are too fine, and a coarser partitioning that would suffice.

    Attributes:
        partitions: Number of folders that hold files.
        small: How many of them hold less than half of the target in all.
        file_rows: Rows of the inventory that are in those small folders.
        levels: How many of the partition columns, counted from the first, would suffice.
        becomes: Files that an exact write plan would make of the table with those columns.
    """

    partitions: int
    small: int
    file_rows: Ints
    levels: int
    becomes: int


def find_grain(
    files: pa.Table, folders: FolderBuckets, levels: int, target_bytes: int
) -> Grain | None:
    """Return whether most partitions cannot fill half a file; None if they can, or if there are few.

    Args:
        files: n files, with the schema of `columns.inventory_schema`.
        folders: The folders and buckets of the files.
        levels: Number of partition columns of the table.
        target_bytes: Target size of a file.
    """
    sizes: Ints = files["size_bytes"].to_numpy()
    rows: Ints = most_rows(files)
    folder = folders.folder[folders.of_file]
    folder_bytes = np.bincount(folder, sizes, len(folders.names))
    small = folder_bytes < SMALL * target_bytes
    count = int(np.count_nonzero(small))
    if levels == 0 or len(folder_bytes) < _FEW or 2 * count < len(folder_bytes):
        return None
    names = pa.chunked_array([folders.names])
    above = np.arange(len(names))
    # If no number of columns is coarse enough, none (0) comes closest.
    depth = levels
    while depth:
        depth -= 1
        names = folders_of(names)
        coded = names.combine_chunks().dictionary_encode()
        above = coded.indices.to_numpy().astype(np.int64)
        if folder_bytes.sum() >= SMALL * target_bytes * len(coded.dictionary):
            break
    return Grain(
        partitions=len(folder_bytes),
        small=count,
        file_rows=np.flatnonzero(small[folder]),
        levels=depth,
        becomes=ideal_files(sizes, rows, above[folder], target_bytes),
    )
