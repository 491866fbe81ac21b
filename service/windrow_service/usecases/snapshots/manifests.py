"""The files of a snapshot's manifests; those that were read lately are at hand."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa
from cachetools import LRUCache

from windrow_service.inventory.manifests.encoding import decode_manifest
from windrow_service.usecases.ports import Checkpoint, Runner
from windrow_service.usecases.snapshots.ports import ManifestEntry, Snapshot, SnapshotStore

_Key: TypeAlias = tuple[str, bool]


class ManifestReader:
    """Fetches and decodes manifests, and keeps decoded ones: they never change.

    Args:
        snapshots: Where manifests are.
        runner: Where they are decoded.
        max_bytes: Most bytes that are kept decoded; the longest unused go first.
    """

    def __init__(self, snapshots: SnapshotStore, runner: Runner, max_bytes: int) -> None:
        self._snapshots = snapshots
        self._runner = runner
        self._lock = threading.Lock()
        self._kept: LRUCache[_Key, pa.Table] = LRUCache(max_bytes, getsizeof=_size)

    async def read(
        self,
        table: str,
        snapshot: Snapshot,
        manifests: Sequence[ManifestEntry],
        *,
        bloom: bool,
        check: Checkpoint = lambda: None,
    ) -> list[pa.Table]:
        """Return the rows of some of a snapshot's manifests, in the order given.

        Rows that the snapshot no longer has are among them.

        Args:
            table: Name of the table.
            snapshot: Has the manifests.
            manifests: Which.
            bloom: Whether Bloom filters are wanted.
            check: Called between manifests.

        Raises:
            SnapshotNotFoundError: The snapshot has been dropped since it was got.
            CorruptManifestError: A manifest cannot be decoded.
            BusyError: Too much is waiting already.
        """
        found = self.at_hand(snapshot, manifests, bloom=bloom)
        bloom = bloom and bool(snapshot.bloom_columns)
        missing = [entry for entry in manifests if entry.manifest_id not in found]
        if missing:
            bodies = await self._snapshots.bodies(table, snapshot, missing)

            def decode() -> None:
                for entry, body in zip(missing, bodies, strict=True):
                    check()
                    found[entry.manifest_id] = decode_manifest(body, bloom=bloom)

            await self._runner.run(decode)
            for entry in missing:
                self._keep((entry.manifest_id, bloom), found[entry.manifest_id])
        return [found[entry.manifest_id] for entry in manifests]

    def at_hand(
        self, snapshot: Snapshot, manifests: Sequence[ManifestEntry], *, bloom: bool
    ) -> dict[str, pa.Table]:
        """Return the rows of those manifests that are kept decoded, by id; from any thread."""
        bloom = bloom and bool(snapshot.bloom_columns)
        with self._lock:
            kept = {
                entry.manifest_id: self._kept.get((entry.manifest_id, bloom)) for entry in manifests
            }
        return {manifest_id: table for manifest_id, table in kept.items() if table is not None}

    def _keep(self, key: _Key, files: pa.Table) -> None:
        if _size(files) <= self._kept.maxsize:
            with self._lock:
                self._kept[key] = files


def _size(files: pa.Table) -> int:
    return int(files.nbytes)
