"""Withdraw packs that must not be used any more, and remove them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import partial
from itertools import groupby

import numpy as np

from windrow_core.models.packs import Pack
from windrow_service.logs import get_logger
from windrow_service.planner.packs import NO_PACK
from windrow_service.usecases.errors import UseCaseError
from windrow_service.usecases.packs.coverage import (
    TablePacks,
    UsablePacks,
    definition_digest,
    why_unused,
)
from windrow_service.usecases.packs.ports import PackFolder, PackStore, StoredPack
from windrow_service.usecases.packs.sources import SourceSample
from windrow_service.usecases.ports import Clock, Runner
from windrow_service.usecases.snapshots.errors import TableNotRefreshedError
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore
from windrow_service.usecases.snapshots.scans import ManifestReader
from windrow_service.usecases.tables.errors import TableNotFoundError
from windrow_service.usecases.tables.ports import StoredTable

# Plans and metadata may still name a pack that was withdrawn, so it stays on the disk for this long,
# or for less if its rows have to be gone sooner.
_LONGEST_GRACE = timedelta(hours=1)
_RECEIPTS_FOR = timedelta(days=90)
_CHECK_EVERY, _CHECK_DOUBTS_EVERY = timedelta(days=1), timedelta(minutes=1)
_LESS_OFTEN = 10
# Clocks of replicas, which follow the database's, differ by less.
_SKEW = timedelta(minutes=1)
_NEVER = datetime(1970, 1, 1, tzinfo=timezone.utc)
_GONE = "rows of it belong to files that are gone, or were replaced"
_REPLACED = "was replaced by a file of equal size and time, which no refresh has seen"
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepPacks:
    """Looks after packs: their rows leave the disk in time, and what is lost is not used.

    Attributes:
        snapshots: The store of snapshots.
        manifests: Reads the files of tables.
        packs: The store of packs.
        usable: Finds those that may stand for a table's files.
        folder: Where packs lie.
        runner: Looks at packs in threads.
        clock: The time.
        erase_within: How long after a source is gone its rows are gone from packs.
    """

    snapshots: SnapshotStore
    manifests: ManifestReader
    packs: PackStore
    usable: TablePacks
    folder: PackFolder
    runner: Runner
    clock: Clock
    erase_within: timedelta
    # When the bytes of packs, and of some of their sources, were last compared with their digests.
    _checked_at: dict[str, datetime] = field(default_factory=dict)
    _sampled_at: dict[str, datetime] = field(default_factory=dict)
    # When somebody last looked for what runs have left.
    _left_at: dict[str, datetime] = field(default_factory=dict)
    # By table, the snapshot and the packs that were compared last, and how many sources were live.
    _counts: dict[int, tuple[object, Mapping[str, int]]] = field(default_factory=dict)

    @property
    def grace(self) -> timedelta:
        """How long a withdrawn pack stays on the disk."""
        return min(_LONGEST_GRACE, self.erase_within / 2)

    async def __call__(self) -> None:
        """Look at all packs once."""
        everywhere = await self.packs.everywhere()
        self._forget_others(everywhere)
        for _, packs in groupby(everywhere, lambda one: one.table_id):
            try:
                await self._look_at(list(packs))
            except (UseCaseError, OSError) as error:
                # The next round tries again.
                _log.warning("packs could not be looked after", reason=str(error))
        await self._remove_left()
        await self.packs.purge(self.clock() - _RECEIPTS_FOR)

    def _forget_others(self, packs: Sequence[StoredPack]) -> None:
        """Forget what is remembered of packs, and of tables with packs, that are no more."""
        ids, tables = {one.pack.pack_id for one in packs}, {one.table_id for one in packs}
        for moments in (self._checked_at, self._sampled_at):
            for pack_id in moments.keys() - ids:
                del moments[pack_id]
        for table_id in self._counts.keys() - tables:
            del self._counts[table_id]

    async def _remove_left(self) -> None:
        """Remove what packers have left whose runs are over, and which nobody can publish any more.

        One that was stopped may go on, and write: so a run is looked at again, ever less often.
        """
        runs, now = await self.packs.lapsed_runs(), self.clock()
        for run_id in self._left_at.keys() - {one.run_id for one in runs}:
            del self._left_at[run_id]
        for run in runs:
            since = now - (run.lapsed_at or now)
            pause = min(self.grace, since / _LESS_OFTEN)
            if not _has_passed(self._left_at.get(run.run_id, _NEVER), pause, now):
                continue
            # Only now: what it published until it lapsed is recorded.
            paths_to_keep = await self.packs.paths(run.table_id)
            try:
                paths = await self.runner.run(partial(self.folder.remove_left, run, paths_to_keep))
            except (UseCaseError, OSError) as error:
                # The next round tries again.
                _log.warning("what a packer has left could not be removed", reason=str(error))
                continue
            self._left_at[run.run_id] = now
            for path in paths:
                _log.info("removed what a packer has left", path=path)

    async def _look_at(self, packs: Sequence[StoredPack]) -> None:
        """Look at the packs of one table."""
        current = await self._current(packs[0].table, packs[0].table_id)
        definition = hindrance = None
        if current is not None:
            definition = definition_digest(current[0], current[1].partition_schema)
            hindrance = why_unused(current[0].info)
        left = []
        for one in packs:
            if one.pack.state == "withdrawn":
                await self._remove(one, one.pack.withdrawn_at)
            elif one.definition != definition:
                reason = "its table is gone, or has other partition columns or another location"
                await self._withdraw(one, reason)
            elif hindrance is not None:
                # Rows of it that are to be forgotten would not be counted.
                await self._withdraw(one, hindrance)
            elif not await self.runner.run(partial(self._is_whole, one.pack)):
                await self._withdraw(one, "it is lost, or damaged")
            else:
                left.append(one)
        if left and current is not None:
            await self._forget_gone(left, *current)

    async def _current(
        self, name: str | None, table_id: int
    ) -> tuple[StoredTable, Snapshot] | None:
        """Return a table and its current snapshot; None if it is gone or has none."""
        if name is None:
            return None
        try:
            table, snapshot = await self.snapshots.get(name, None)
        except (TableNotFoundError, TableNotRefreshedError):
            return None
        return (table, snapshot) if table.table_id == table_id else None

    def _is_whole(self, pack: Pack) -> bool:
        """Return whether a pack is whole, or cannot be looked at now."""
        try:
            status = self.folder.status(pack.path)
            if status is None or status.size_bytes != pack.size_bytes:
                return False
            # Engines may not compare checksums of pages.
            every = _CHECK_DOUBTS_EVERY if pack.path in self.usable.doubts else _CHECK_EVERY
            if self.clock() < self._checked_at.get(pack.pack_id, _NEVER) + every:
                return True
            is_whole = self.folder.digest(pack.path) == pack.pack_id
        except OSError as error:
            _log.warning("a pack could not be looked at", pack=pack.path, reason=str(error))
            return True
        self._checked_at[pack.pack_id] = self.clock()
        self.usable.doubts.settle(pack.path)
        return is_whole

    async def _forget_gone(
        self, packs: Sequence[StoredPack], table: StoredTable, snapshot: Snapshot
    ) -> None:
        """Withdraw the packs of a table with rows that have to be gone by now."""
        usable = await self.usable(table, snapshot)
        if usable is None:
            return
        counts, now = await self._live_counts(usable, table, snapshot), self.clock()
        for one in packs:
            if one.pack.pack_id not in counts:
                continue
            pack, live = one.pack, counts[one.pack.pack_id]
            if not live:
                await self._withdraw(one, "its files are gone, replaced, or in newer packs")
                continue
            since = None if live == pack.source_count else pack.gone_since or now
            if since != pack.gone_since:
                await self.packs.note_gone(pack.pack_id, since)
            if since is not None and _has_passed(since, self.erase_within - self.grace, now):
                await self._withdraw(one, _GONE)
                continue
            path = await self.runner.run(partial(self._first_difference, pack, usable, table))
            if path is not None:
                await self._withdraw(one, f"{path} {_REPLACED}")

    def _first_difference(self, pack: Pack, usable: UsablePacks, table: StoredTable) -> str | None:
        """Return a source of a pack that was replaced unseen; None if none of some was."""
        if self.clock() < self._sampled_at.get(pack.pack_id, _NEVER) + _CHECK_EVERY:
            return None
        (rows,) = (one.rows for one in usable.coverage.packs if one.pack_id == pack.pack_id)
        location = table.info.definition.location
        try:
            path = SourceSample(folder=self.folder).first_difference(location, rows)
        except OSError as error:
            _log.warning("sources of a pack could not be read", pack=pack.path, reason=str(error))
            return None
        self._sampled_at[pack.pack_id] = self.clock()
        return path

    async def _live_counts(
        self, usable: UsablePacks, table: StoredTable, snapshot: Snapshot
    ) -> Mapping[str, int]:
        """Return how many files of a snapshot each pack stands for."""
        key = snapshot.info.snapshot_id, usable.key
        last_key, counts = self._counts.get(table.table_id, (None, {}))
        if key == last_key:
            return counts
        live = await self.manifests.scan(
            table.info.name,
            snapshot,
            lambda: None,
            lambda _, files: np.bincount(
                usable.coverage.of(files).pack - NO_PACK, minlength=len(usable.packs) + 1
            ),
        )
        counts = dict(zip(usable.packs, live[1:].tolist(), strict=True))
        self._counts[table.table_id] = key, counts
        return counts

    async def _withdraw(self, one: StoredPack, reason: str) -> None:
        if await self.packs.withdraw(one.pack.pack_id, one.table, reason):
            _log.info("withdrew a pack", pack=one.pack.pack_id[:32], reason=reason)
        if not self.grace:
            await self._remove(one, self.clock())

    async def _remove(self, one: StoredPack, withdrawn_at: datetime | None) -> None:
        """Remove a withdrawn pack whose time has come."""
        if withdrawn_at is None or not _has_passed(withdrawn_at, self.grace, self.clock()):
            return
        try:
            await self.runner.run(partial(self.folder.remove, one.pack.path))
        except OSError as error:
            # The next round tries again; the rows of other packs still leave the disk in time.
            _log.warning("a pack could not be removed", pack=one.pack.path, reason=str(error))
            return
        self._checked_at.pop(one.pack.pack_id, None)
        await self.packs.note_removed(one.pack.pack_id)
        await self.runner.run(partial(self.folder.tidy, one.pack.path))


def _has_passed(since: datetime, delay: timedelta, now: datetime) -> bool:
    """Return whether a delay has passed since a time, or may have: then the clock was set back."""
    return now >= since + delay or now < since - _SKEW
