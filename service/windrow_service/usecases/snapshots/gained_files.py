"""Find folders that have gained files since a snapshot, so that overwrites spare those files."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.models import MAX_GAINED_FOLDERS, GainedFiles
from windrow_service.inventory.manifests.encoding import Manifest
from windrow_service.inventory.manifests.live_files import merge_files
from windrow_service.planner.folders import folders_of
from windrow_service.usecases.ports import Runner
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore
from windrow_service.usecases.snapshots.scans import ManifestReader

# Two files are the same if they agree in these columns.
_MAX_CHARACTERS = 8 * 2**20
_IDENTITY = ["path", "size_bytes", "mtime_ns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindGainedFiles:
    """Compare the files of two snapshots; manifests that both have are not read."""

    snapshots: SnapshotStore
    manifests: ManifestReader
    runner: Runner

    async def __call__(self, name: str, since: int) -> GainedFiles:
        """Return the folders of files that the current snapshot has and an older one lacks.

        Args:
            name: The table.
            since: The older snapshot; 0 for the empty table before the first one.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet.
            SnapshotNotFoundError: The older snapshot no longer exists.
            BusyError: Too much is waiting already.
        """
        _, now = await self.snapshots.get(name, None)
        then = (await self.snapshots.get(name, since))[1] if since else None
        common = {_key(one) for one in now.manifests} & {
            _key(one) for one in (then.manifests if then is not None else ())
        }
        after = await self._files(name, now, common)
        before = await self._files(name, then, common) if then is not None else None
        folders = await self.runner.run(lambda: _gained(before, after))
        fitting = _fitting(folders)
        return GainedFiles(
            snapshot_id=now.info.snapshot_id,
            folders=folders[:fitting],
            complete=fitting == len(folders),
        )

    async def _files(
        self, name: str, snapshot: Snapshot, common: set[tuple[str, bytes]]
    ) -> pa.Table | None:
        own = [manifest for manifest in snapshot.manifests if _key(manifest) not in common]
        if not own:
            return None
        decoded = await self.manifests.read(name, snapshot, own, bloom=False)
        narrow = [files.select(_IDENTITY) for files in decoded]
        return await self.runner.run(lambda: merge_files(narrow, [one.removed for one in own]))


def _fitting(folders: list[str]) -> int:
    """Return how many folders one answer may name."""
    characters = 0
    for at, folder in enumerate(folders[:MAX_GAINED_FOLDERS]):
        characters += len(folder)
        if characters > _MAX_CHARACTERS:
            return at
    return min(len(folders), MAX_GAINED_FOLDERS)


def _key(manifest: Manifest) -> tuple[str, bytes]:
    return manifest.manifest_id, manifest.removed.tobytes()


def _gained(before: pa.Table | None, after: pa.Table | None) -> list[str]:
    if after is None:
        return []
    new_files = after if before is None else after.join(before, _IDENTITY, join_type="left anti")
    folders: list[str] = pc.unique(folders_of(new_files["path"])).sort().to_pylist()
    return folders
