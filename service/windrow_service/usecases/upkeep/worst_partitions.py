"""Find the partitions of a table that have the most excess files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow_core.sizes import WELL_SIZED_BYTES
from windrow_service.planner.folders import folders_of
from windrow_service.planner.splits import Ints
from windrow_service.usecases.snapshots.ports import SnapshotStore
from windrow_service.usecases.snapshots.scans import ManifestReader


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFiles:
    """The files of one partition; `folder` is relative to the table's location."""

    folder: str
    files: int
    size_bytes: int
    excess_files: int
    small_files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstPartitions:
    """Excess files by partition.

    Attributes:
        partitions: The partitions with the most excess files, worst first.
        count: Number of partitions with excess files.
        excess_files: The excess files of all of them.
    """

    partitions: Sequence[PartitionFiles]
    count: int
    excess_files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FindWorstPartitions:
    """Count the files of each partition beyond those that its bytes need."""

    snapshots: SnapshotStore
    manifests: ManifestReader

    async def __call__(self, name: str, small_bytes: int, limit: int) -> WorstPartitions:
        """Return the partitions with the most excess files, and how many are under `small_bytes`.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet.
            SnapshotNotFoundError: The snapshot was dropped meanwhile.
            BusyError: Too much is waiting already.
        """
        _, snapshot = await self.snapshots.get(name, None)
        return await self.manifests.scan(
            name, snapshot, lambda: None, lambda _, files: _worst(files, small_bytes, limit)
        )


def _worst(files: pa.Table, small_bytes: int, limit: int) -> WorstPartitions:
    codes = folders_of(files["path"]).combine_chunks().dictionary_encode()
    folder: Ints = codes.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    sizes: Ints = files["size_bytes"].to_numpy()
    count = len(codes.dictionary)
    all_files = np.bincount(folder, minlength=count)
    small_files = np.bincount(folder[sizes < small_bytes], minlength=count)
    # Exact, since no total is above 2^53.
    size = np.bincount(folder, sizes, count)
    excess = np.maximum(all_files - np.maximum(np.ceil(size / WELL_SIZED_BYTES), 1), 0)
    worst = np.lexsort((-small_files, -excess))[:limit]
    return WorstPartitions(
        partitions=[
            PartitionFiles(
                folder=codes.dictionary[at].as_py(),
                files=int(all_files[at]),
                size_bytes=int(size[at]),
                excess_files=int(excess[at]),
                small_files=int(small_files[at]),
            )
            for at in worst.tolist()
            if excess[at]
        ],
        count=int(np.count_nonzero(excess)),
        excess_files=int(excess.sum()),
    )
