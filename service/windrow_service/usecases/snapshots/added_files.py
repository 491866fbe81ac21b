"""Files that a snapshot has and an older one lacks, in an order that never changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.models import AddedFiles, AddedFilesInfo
from windrow_service.inventory.manifests.encoding import Manifest
from windrow_service.planner.pruning.bounds import Bools
from windrow_service.planner.pruning.partitions import IN_PARTITIONS
from windrow_service.usecases.ports import Checkpoint, Runner
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore
from windrow_service.usecases.snapshots.scans import Choice, ManifestReader

# Two files are the same if they agree in these columns.
_IDENTITY = ["path", "size_bytes", "mtime_ns"]


@dataclass(frozen=True, slots=True)
class Difference:
    """What distinguishes a snapshot from an older one.

    Attributes:
        additions: New and rewritten files by path: `_IDENTITY`, then their `manifest`, which is its
            position in the snapshot, and their `row` in it.
        removal_count: Number of the older snapshot's files that are gone or rewritten.
    """

    additions: pa.Table
    removal_count: int


@dataclass(frozen=True, slots=True)
class AddedChoice:
    """Some added files: a `Choice` of scans.

    Attributes:
        rows: The rows of these files in each manifest that has some, by its position.
        manifest_count: Number of the snapshot's manifests.
        further: What files must satisfy besides; None is nothing.
    """

    rows: dict[int, npt.NDArray[np.int64]]
    manifest_count: int
    further: Choice | None

    def manifests(self) -> Bools:
        """See `Choice.manifests`."""
        flags = np.zeros(self.manifest_count, np.bool_)
        flags[list(self.rows)] = True
        return flags if self.further is None else flags & self.further.manifests()

    def marked(self, at: int, files: pa.Table) -> pa.Table:
        """See `Choice.marked`."""
        flags = np.zeros(len(files), np.bool_)
        flags[self.rows[at]] = True
        if self.further is not None:
            files = self.further.marked(at, files)
            flags &= files[IN_PARTITIONS].to_numpy()
            files = files.drop_columns([IN_PARTITIONS])
        return files.append_column(IN_PARTITIONS, pa.array(flags))


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFilesReader:
    """Compares snapshots; manifests that both have are not read."""

    snapshots: SnapshotStore
    manifests: ManifestReader
    runner: Runner

    async def choose(
        self,
        name: str,
        snapshot: Snapshot,
        files: AddedFiles,
        further: Choice | None,
        check: Checkpoint = lambda: None,
    ) -> AddedChoice:
        """Return the files that a plan asks for.

        Args:
            name: The table.
            snapshot: One of its snapshots.
            files: The files, as a request names them.
            further: What files must satisfy besides; None is nothing.
            check: Called between manifests.

        Raises:
            SnapshotNotFoundError: The older snapshot no longer exists.
            BusyError: Too much is waiting already.
        """
        difference = await self._difference(name, snapshot, files.since, check)
        end = len(difference.additions) if files.end is None else files.end
        some = difference.additions.slice(files.first, max(end - files.first, 0))
        rows = await self.runner.run(lambda: _by_manifest(some))
        return AddedChoice(rows, len(snapshot.manifests), further)

    async def __call__(
        self,
        name: str,
        snapshot_id: int,
        since: int,
        first: int,
        max_files: int | None,
        max_bytes: int | None,
    ) -> AddedFilesInfo:
        """Return how many files were added, and how many of them fit within limits.

        Args:
            name: The table.
            snapshot_id: The newer snapshot.
            since: The older one; 0 for the empty table before the first one.
            first: Position of the first file to count.
            max_files: Most files; None is no limit.
            max_bytes: Most bytes; a single file may have more.

        Raises:
            TableNotFoundError: No table has this name.
            SnapshotNotFoundError: One of the snapshots does not exist.
            BusyError: Too much is waiting already.
        """
        _, snapshot = await self.snapshots.get(name, snapshot_id)
        difference = await self._difference(name, snapshot, since)
        sizes = difference.additions["size_bytes"].to_numpy()[first:]
        ends = np.cumsum(sizes)
        count = len(sizes)
        if max_bytes is not None:
            count = min(count, max(int(np.searchsorted(ends, max_bytes, "right")), 1))
        if max_files is not None:
            count = min(count, max_files)
        return AddedFilesInfo(
            snapshot_id=snapshot_id,
            since=since,
            file_count=len(difference.additions),
            removed_file_count=difference.removal_count,
            end=first + count,
            size_bytes=int(ends[count - 1]) if count else 0,
        )

    async def _difference(
        self, name: str, snapshot: Snapshot, since: int, check: Checkpoint = lambda: None
    ) -> Difference:
        older = (await self.snapshots.get(name, since))[1] if since else None
        common = {_key(one) for one in snapshot.manifests} & {
            _key(one) for one in (older.manifests if older is not None else ())
        }
        after = await self._files(name, snapshot, common, check)
        before = await self._files(name, older, common, check)
        return await self.runner.run(lambda: _compared(before, after))

    async def _files(
        self,
        name: str,
        snapshot: Snapshot | None,
        common: set[tuple[str, bytes]],
        check: Checkpoint,
    ) -> pa.Table:
        if snapshot is None:
            return _SCHEMA.empty_table()
        at = [at for at, one in enumerate(snapshot.manifests) if _key(one) not in common]
        own = [snapshot.manifests[one] for one in at]
        parts = await self.manifests.read_columns(name, snapshot, own, _IDENTITY, _live, check)
        numbered = [
            part.append_column("manifest", pa.array(np.full(len(part), position)))
            for position, part in zip(at, parts, strict=True)
        ]
        return pa.concat_tables([_SCHEMA.empty_table(), *(one.cast(_SCHEMA) for one in numbered)])


_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("size_bytes", pa.int64()),
        ("mtime_ns", pa.int64()),
        ("row", pa.int64()),
        ("manifest", pa.int64()),
    ]
)


def _live(manifest: Manifest, files: pa.Table) -> pa.Table:
    rows = np.delete(np.arange(len(files)), manifest.removed)
    return files.select(_IDENTITY).take(rows).append_column("row", pa.array(rows))


def _by_manifest(files: pa.Table) -> dict[int, npt.NDArray[np.int64]]:
    """Return the rows of files in each manifest that has some, by its position."""
    order = np.argsort(files["manifest"].to_numpy(), kind="stable")
    rows = files["row"].to_numpy()[order]
    positions, starts = np.unique(files["manifest"].to_numpy()[order], return_index=True)
    return (
        dict(zip(positions.tolist(), np.split(rows, starts[1:]), strict=True)) if len(rows) else {}
    )


def _compared(before: pa.Table, after: pa.Table) -> Difference:
    additions = after.join(before.select(_IDENTITY), _IDENTITY, join_type="left anti")
    removals = before.join(after.select(_IDENTITY), _IDENTITY, join_type="left anti")
    order = pc.sort_indices(additions, sort_keys=[("path", "ascending")])
    return Difference(additions.take(order), len(removals))


def _key(manifest: Manifest) -> tuple[str, bytes]:
    return manifest.manifest_id, manifest.removed.tobytes()
