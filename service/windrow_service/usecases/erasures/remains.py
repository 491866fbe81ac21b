"""What the coordinator keeps of a table beside its current files, erased after rows have gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from windrow_service.inventory.manifests.changes import Applied
from windrow_service.inventory.manifests.encoding import cut_files, decode_manifest
from windrow_service.inventory.manifests.live_files import merge_files
from windrow_service.planner.caching.file_keys import file_keys
from windrow_service.planner.packs import NO_PACK
from windrow_service.usecases.caches.errors import CacheUnavailableError
from windrow_service.usecases.caches.ports import CacheMap, Heartbeats
from windrow_service.usecases.erasures.errors import RemainsError
from windrow_service.usecases.packs.coverage import TablePacks
from windrow_service.usecases.packs.ports import PackFolder, PackStore
from windrow_service.usecases.ports import Clock, Runner
from windrow_service.usecases.snapshots.errors import SnapshotNotFoundError
from windrow_service.usecases.snapshots.next_snapshot import next_after_delta
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotKeeping, SnapshotStore
from windrow_service.usecases.snapshots.scans import ManifestReader
from windrow_service.usecases.tables.errors import TableChangedError
from windrow_service.usecases.tables.ports import StoredTable

_ATTEMPTS = 32
_MANIFESTS_AT_ONCE = 50
_WHY = "rows of its files were erased"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """Erases what is left of rows in manifests, snapshots and packs, and finds it in host caches.

    Attributes:
        snapshots: The store of snapshots.
        keeping: Drops snapshots and manifests.
        manifests: Reads manifests.
        packs: The store of packs.
        usable: Finds packs that stand for files.
        folder: Where packs lie; None if there are none.
        holdings: Which files host caches hold.
        heartbeats: The hosts.
        runner: Works in threads.
        clock: The time.
    """

    snapshots: SnapshotStore
    keeping: SnapshotKeeping
    manifests: ManifestReader
    packs: PackStore
    usable: TablePacks
    folder: PackFolder | None
    holdings: CacheMap
    heartbeats: Heartbeats
    runner: Runner
    clock: Clock

    async def rewrite_manifests(self, name: str) -> int:
        """Write anew the manifests that still have rows of files that are gone; return how many.

        Such rows have bounds, which may be values of erased rows.
        """
        for _ in range(_ATTEMPTS):
            table, snapshot = await self.snapshots.get(name, None)
            olds = [one for one in snapshot.manifests if len(one.removed)]
            if not olds:
                return 0
            try:
                bodies = await self.snapshots.bodies(name, snapshot, olds)
                outcome = await self.runner.run(partial(_without_gone, snapshot, bodies))
                upcoming = next_after_delta(snapshot, outcome, snapshot.bloom_columns)
                await self.snapshots.publish(table, upcoming, table.checked_at)
            except (TableChangedError, SnapshotNotFoundError):
                # Somebody was faster: look again.
                continue
            return len(olds)
        raise RemainsError(name, "others change the table faster than its manifests are rewritten")

    async def drop_snapshots(self, table: StoredTable) -> tuple[int, Snapshot]:
        """Drop all snapshots but the current one; return how many, and that one."""
        now = self.clock()
        old = await self.keeping.expire(
            table, keep_last=1, max_count=1, created_before=now, now=now
        )
        while await self.keeping.collect(_MANIFESTS_AT_ONCE) == _MANIFESTS_AT_ONCE:
            pass
        _, current = await self.snapshots.get(table.info.name, None)
        return len(old), current

    async def remove_unpublished(self, table: StoredTable) -> int:
        """Let packers of the table publish nothing any more, and remove what they have written.

        Their snapshots must have been dropped before. Return how many may be at work.
        """
        if self.folder is None:
            return 0
        runs, now = await self.packs.lapsed_runs(table.table_id), self.clock()
        paths_to_keep = await self.packs.paths(table.table_id)
        try:
            for run in runs:
                await self.runner.run(partial(self.folder.remove_left, run, paths_to_keep))
        except OSError as error:
            raise RemainsError(table.info.name, f"what packers have left stays: {error}") from error
        return sum(one.lease_until > now for one in runs)

    async def remove_packs(self, table: StoredTable, snapshot: Snapshot) -> tuple[int, list[str]]:
        """Withdraw packs with rows of files that are gone, and remove them at once.

        Those of deleted tables go, too: one may have had the same folder.

        Returns:
            How many, and why packs of deleted tables stay.
        """
        if self.folder is None:
            return 0, []
        live = await self._live_sources(table, snapshot)
        count, left = 0, []
        for one in await self.packs.everywhere():
            pack = one.pack
            if one.table is not None and (
                one.table_id != table.table_id or live.get(pack.pack_id) == pack.source_count
            ):
                continue
            await self.packs.withdraw(pack.pack_id, one.table, _WHY)
            try:
                await self.runner.run(partial(self.folder.remove, pack.path))
            except OSError as error:
                if one.table is None:
                    left.append(f"a pack of a deleted table: {error}")
                    continue
                raise RemainsError(table.info.name, f"pack {pack.path!r} stays: {error}") from error
            await self.packs.note_removed(pack.pack_id)
            count += 1
        return count, left

    async def _live_sources(self, table: StoredTable, snapshot: Snapshot) -> dict[str, int]:
        usable = await self.usable(table, snapshot)
        if usable is None:
            return {}
        coverage = usable.coverage
        counts = await self.manifests.scan(
            table.info.name,
            snapshot,
            lambda: None,
            lambda _, files: np.bincount(
                coverage.of(files).pack - NO_PACK, minlength=len(usable.packs) + 1
            ),
        )
        return dict(zip(usable.packs, counts[1:].tolist(), strict=True))

    async def hosts_with_old_files(self, table: StoredTable, snapshot: Snapshot) -> list[str]:
        """Return the hosts whose caches hold files of the table that are gone, or may hold some."""
        now = self.clock()
        try:
            holdings = await self.holdings.holdings(table.table_id, now)
            silent = {one.host for one in await self.heartbeats.gone(now)}
        except CacheUnavailableError:
            return ["hosts that the cache map knows, which does not answer"]
        if not any(len(one.keys) for one in holdings):
            return sorted(silent)

        def old(files: pa.Table) -> set[str]:
            keys = file_keys(files)
            return {one.host for one in holdings if not np.isin(one.keys, keys).all()}

        hosts = await self.manifests.scan(
            table.info.name, snapshot, lambda: None, lambda _, files: old(files)
        )
        return sorted(hosts | silent)


def _without_gone(snapshot: Snapshot, bodies: Sequence[bytes]) -> Applied:
    """Return the manifests of a snapshot, with those written anew that note removed files.

    Args:
        snapshot: The snapshot.
        bodies: The rows of these manifests, in order.
    """
    olds = [one for one in snapshot.manifests if len(one.removed)]
    files = merge_files(list(map(decode_manifest, bodies)), [one.removed for one in olds])
    others = [one for one in snapshot.manifests if not len(one.removed)]
    manifests = sorted(
        [*others, *cut_files(files)],
        key=lambda one: (one.first_path, one.last_path, one.manifest_id),
    )
    return Applied(
        manifests=tuple(manifests),
        files_added=0,
        files_removed=0,
        rows_gained=0,
        sizes_gained=np.zeros(64, np.int64),
        fewest_gained=0,
    )
