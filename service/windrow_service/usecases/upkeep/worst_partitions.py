"""Find the partitions of a table that hold the most small files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow_service.planner.folders import folders_of
from windrow_service.planner.splits import Ints
from windrow_service.usecases.snapshots.ports import SnapshotStore
from windrow_service.usecases.snapshots.scans import ManifestReader


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFiles:
    """The files of one partition; `folder` is relative to the table's location."""

    folder: str
    files: int
    small_files: int
    small_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FindWorstPartitions:
    """Count the small files of each partition."""

    snapshots: SnapshotStore
    manifests: ManifestReader

    async def __call__(self, name: str, small_bytes: int, limit: int) -> Sequence[PartitionFiles]:
        """Return the partitions with the most files under `small_bytes`, worst first.

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


def _worst(files: pa.Table, small_bytes: int, limit: int) -> list[PartitionFiles]:
    codes = folders_of(files["path"]).combine_chunks().dictionary_encode()
    folder: Ints = codes.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    sizes: Ints = files["size_bytes"].to_numpy()
    small = sizes < small_bytes
    count = len(codes.dictionary)
    all_files = np.bincount(folder, minlength=count)
    small_files = np.bincount(folder[small], minlength=count)
    size = np.zeros(count, np.int64)
    np.add.at(size, folder[small], sizes[small])
    worst = np.argsort(-small_files, kind="stable")[:limit]
    return [
        PartitionFiles(
            folder=codes.dictionary[at].as_py(),
            files=int(all_files[at]),
            small_files=int(small_files[at]),
            small_bytes=int(size[at]),
        )
        for at in worst.tolist()
        if small_files[at]
    ]
