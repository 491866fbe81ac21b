"""What distinguishes a snapshot from an older one, in an order of files that never changes."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from cachetools import LRUCache

from windrow_service.inventory.manifests.encoding import Manifest
from windrow_service.usecases.ports import Checkpoint, Runner
from windrow_service.usecases.snapshots.ports import Snapshot
from windrow_service.usecases.snapshots.scans import ManifestReader

# Two files are the same if they agree in these columns.
_IDENTITY = ["path", "size_bytes", "mtime_ns"]
_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("size_bytes", pa.int64()),
        ("mtime_ns", pa.int64()),
        ("row", pa.int32()),
        ("manifest", pa.int32()),
    ]
)


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """Files that a snapshot has and an older one lacks, by path: 16 bytes for each.

    Attributes:
        manifest: For each file, the position of its manifest in the snapshot.
        row: For each file, its row in the manifest.
        end_bytes: For each file, the bytes of all files up to and including it.
        removal_count: Number of the older snapshot's files that are gone or rewritten.
    """

    manifest: npt.NDArray[np.int32]
    row: npt.NDArray[np.int32]
    end_bytes: npt.NDArray[np.int64]
    removal_count: int

    def __len__(self) -> int:
        """Return the number of files that were added."""
        return len(self.row)

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory."""
        return int(self.manifest.nbytes + self.row.nbytes + self.end_bytes.nbytes)

    def bytes_until(self, end: int) -> int:
        """Return the bytes of the files before a position."""
        return int(self.end_bytes[min(end, len(self)) - 1]) if end and len(self) else 0

    def end_within(self, first: int, max_files: int | None, max_bytes: int | None) -> int:
        """Return the position after the last file that fits within limits.

        Args:
            first: Position of the first file.
            max_files: Most files; None is no limit.
            max_bytes: Most bytes; a single file may have more.
        """
        first = min(first, len(self))
        end = len(self)
        if max_bytes is not None:
            limit = self.bytes_until(first) + max_bytes
            fitting = int(np.searchsorted(self.end_bytes, limit, "right"))
            end = min(end, max(fitting, first + 1))
        return end if max_files is None else min(end, first + max_files)

    def rows(self, first: int, end: int | None) -> dict[int, npt.NDArray[np.int64]]:
        """Return the rows of the files between two positions, by the position of their manifest.

        Args:
            first: Position of the first file.
            end: Position after the last one; None is the end.
        """
        manifest, row = self.manifest[first:end], self.row[first:end].astype(np.int64)
        if not len(row):
            return {}
        order = np.argsort(manifest, kind="stable")
        positions, starts = np.unique(manifest[order], return_index=True)
        return dict(zip(positions.tolist(), np.split(row[order], starts[1:]), strict=True))


class DifferenceReader:
    """Compares snapshots, and keeps what it has worked out last, which never changes.

    A stream asks for the same difference several times for each of its batches.

    Args:
        manifests: Reads manifests; those that both snapshots have are not read.
        runner: Compares files in threads.
        max_bytes: Most bytes to keep; the least recently used are dropped first.
    """

    def __init__(self, manifests: ManifestReader, runner: Runner, max_bytes: int) -> None:
        self._manifests = manifests
        self._runner = runner
        self._lock = threading.Lock()
        self._cache: LRUCache[bytes, Difference] = LRUCache(
            max_bytes, getsizeof=lambda one: one.memory_bytes
        )

    async def __call__(
        self,
        table: str,
        snapshot: Snapshot,
        older: Snapshot | None,
        check: Checkpoint = lambda: None,
    ) -> Difference:
        """Return what distinguishes a snapshot from an older one.

        Args:
            table: Name of the table.
            snapshot: A snapshot of the table.
            older: An older one; None is the empty table before the first.
            check: Called between manifests.

        Raises:
            SnapshotNotFoundError: One of the snapshots was dropped meanwhile.
            BusyError: Too much is waiting already.
        """
        key = _key_of_snapshots(snapshot, older)
        with self._lock:
            difference = self._cache.get(key)
        if difference is not None:
            return difference
        common = {_key_of(one) for one in snapshot.manifests} & {
            _key_of(one) for one in (older.manifests if older is not None else ())
        }
        after = await self._files(table, snapshot, common, check)
        before = await self._files(table, older, common, check)
        difference = await self._runner.run(lambda: compared(before, after))
        if difference.memory_bytes <= self._cache.maxsize:
            with self._lock:
                self._cache[key] = difference
        return difference

    async def _files(
        self,
        table: str,
        snapshot: Snapshot | None,
        common: set[bytes],
        check: Checkpoint,
    ) -> pa.Table:
        if snapshot is None:
            return _SCHEMA.empty_table()
        at = [at for at, one in enumerate(snapshot.manifests) if _key_of(one) not in common]
        own = [snapshot.manifests[one] for one in at]
        parts = await self._manifests.read_columns(table, snapshot, own, _IDENTITY, _live, check)
        positions = [
            part.append_column("manifest", pa.array(np.full(len(part), position)))
            for position, part in zip(at, parts, strict=True)
        ]
        return pa.concat_tables([_SCHEMA.empty_table(), *(one.cast(_SCHEMA) for one in positions)])


def compared(before: pa.Table, after: pa.Table) -> Difference:
    """Compare the files of two snapshots, apart from manifests that both have.

    Args:
        before: Files of the older one: their identity, and their place in the snapshot.
        after: Files of the newer one.
    """
    additions = after.join(before.select(_IDENTITY), _IDENTITY, join_type="left anti")
    removals = before.join(after.select(_IDENTITY), _IDENTITY, join_type="left anti")
    additions = additions.take(pc.sort_indices(additions, sort_keys=[("path", "ascending")]))
    return Difference(
        manifest=additions["manifest"].to_numpy(),
        row=additions["row"].to_numpy(),
        end_bytes=np.cumsum(additions["size_bytes"].to_numpy()),
        removal_count=len(removals),
    )


def _live(manifest: Manifest, files: pa.Table) -> pa.Table:
    rows = np.delete(np.arange(len(files)), manifest.removed)
    return files.select(_IDENTITY).take(rows).append_column("row", pa.array(rows))


def _key_of(manifest: Manifest) -> bytes:
    return hashlib.sha256(manifest.manifest_id.encode() + manifest.removed.tobytes()).digest()


def _key_of_snapshots(snapshot: Snapshot, older: Snapshot | None) -> bytes:
    digest = hashlib.sha256()
    for one in (snapshot.manifests, () if older is None else older.manifests):
        # Where one ends and the other begins is part of it.
        digest.update(len(one).to_bytes(8, "big"))
        for manifest in one:
            digest.update(_key_of(manifest))
    return digest.digest()
