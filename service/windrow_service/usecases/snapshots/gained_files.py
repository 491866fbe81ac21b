"""Find folders that have gained files since a snapshot, so that overwrites spare those files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.models import MAX_GAINED_FOLDERS, GainedFiles
from windrow_service.inventory.manifests.encoding import Manifest
from windrow_service.inventory.manifests.live_files import merge_files
from windrow_service.planner.folders import folders_of
from windrow_service.usecases.ports import Runner
from windrow_service.usecases.snapshots.errors import SnapshotNotFoundError
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore, WriteCommits
from windrow_service.usecases.snapshots.scans import ManifestReader

# Two files are the same if they agree in these columns.
_MAX_CHARACTERS = 8 * 2**20
_IDENTITY = ["path", "size_bytes", "mtime_ns"]
_ROWS = "row_count"


@dataclass(frozen=True, slots=True, kw_only=True)
class FindGainedFiles:
    """Compare the files of two snapshots; manifests that both have are not read.

    What compactions publish is no gain, since they add no rows: snapshots are compared from the
    older one to the one before the first compaction, from that one's to the next, and so on. One
    that has published other rows as well, which it found when it listed the table, counts like any
    other.
    """

    snapshots: SnapshotStore
    writes: WriteCommits
    manifests: ManifestReader
    runner: Runner

    async def __call__(self, name: str, since: int) -> GainedFiles:
        """Return the folders of files that others than compactions have added since a snapshot.

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
        then = await self._snapshot(name, since)
        compactions = await self.writes.compactions(name, since)
        try:
            spans = [
                (await self._snapshot(name, begin), await self._snapshot(name, end), is_merge)
                for begin, end, is_merge in _spans(since, now.info.snapshot_id, compactions)
            ]
        except SnapshotNotFoundError:
            # Without those in between, compactions count as well.
            spans = [(then, now, False)]
        folders: set[str] = set()
        for before, after, is_merge in spans:
            assert after is not None
            folders |= set(await self._between(name, before, after, is_merge))
        names = sorted(folders)
        fitting = _fitting(names)
        return GainedFiles(
            snapshot_id=now.info.snapshot_id,
            folders=names[:fitting],
            complete=fitting == len(names),
        )

    async def _snapshot(self, name: str, snapshot_id: int) -> Snapshot | None:
        return (await self.snapshots.get(name, snapshot_id))[1] if snapshot_id else None

    async def _between(
        self, name: str, then: Snapshot | None, now: Snapshot, is_merge: bool
    ) -> list[str]:
        common = {_key(one) for one in now.manifests} & {
            _key(one) for one in (then.manifests if then is not None else ())
        }
        after = await self._files(name, now, common)
        before = await self._files(name, then, common) if then is not None else None
        return await self.runner.run(
            lambda: [] if is_merge and _same_rows(before, after) else _gained(before, after)
        )

    async def _files(
        self, name: str, snapshot: Snapshot, common: set[tuple[str, bytes]]
    ) -> pa.Table | None:
        own = [manifest for manifest in snapshot.manifests if _key(manifest) not in common]
        if not own:
            return None
        decoded = await self.manifests.read(name, snapshot, own, bloom=False)
        narrow = [files.select([*_IDENTITY, _ROWS]) for files in decoded]
        return await self.runner.run(lambda: merge_files(narrow, [one.removed for one in own]))


def _spans(since: int, now: int, compactions: Sequence[int]) -> list[tuple[int, int, bool]]:
    """Return pairs of snapshots from the first to the last, and which of them are compactions.

    Args:
        since: The first snapshot.
        now: The last one.
        compactions: The snapshots in between that compactions published, and the last one if one of
            them did, ascending.
    """
    spans, begin = [], since
    for compaction in compactions:
        spans += [(begin, compaction - 1, False), (compaction - 1, compaction, True)]
        begin = compaction
    return [one for one in [*spans, (begin, now, False)] if one[0] < one[1]]


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


def _same_rows(before: pa.Table | None, after: pa.Table | None) -> bool:
    """Return whether two lists of files certainly have the same number of rows."""
    counts = [one[_ROWS] for one in (before, after) if one is not None]
    if any(one.null_count for one in counts):
        return False
    rows = [0 if one is None else pc.sum(one[_ROWS]).as_py() or 0 for one in (before, after)]
    return bool(rows[0] == rows[1])


def _gained(before: pa.Table | None, after: pa.Table | None) -> list[str]:
    if after is None:
        return []
    new_files = (
        after
        if before is None
        else after.join(before.select(_IDENTITY), _IDENTITY, join_type="left anti")
    )
    folders: list[str] = pc.unique(folders_of(new_files["path"])).to_pylist()
    return folders
