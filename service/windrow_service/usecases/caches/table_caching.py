"""What a plan knows about its table's caches: the rules, and what workers hold."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from cachetools import LRUCache

from windrow_core.models import CacheRule
from windrow_service.filters.errors import InvalidFilterError
from windrow_service.planner.caching.cacheable import MarkingRule, first_path_within
from windrow_service.planner.caching.cached import Cached
from windrow_service.planner.caching.file_keys import Holding
from windrow_service.planner.caching.workers import Caching
from windrow_service.planner.splits import Ints
from windrow_service.usecases.caches.errors import CacheUnavailableError, InvalidCacheRuleError
from windrow_service.usecases.caches.ports import CacheMap, CacheRuleStore, StoredCacheRule
from windrow_service.usecases.caches.rules import bind_rule
from windrow_service.usecases.ports import Clock, Runner
from windrow_service.usecases.snapshots.ports import Snapshot
from windrow_service.usecases.snapshots.scans import ManifestReader, SnapshotScan
from windrow_service.usecases.tables.ports import StoredTable

_MAX_RULES_KEPT = 10_000
# Each takes ten bytes per file.
_WHOLE_TABLES_KEPT = 4


@dataclass(frozen=True, slots=True)
class _Placement:
    """Where the files of a snapshot are read, as long as workers hold the same files."""

    holdings: Sequence[Holding]
    result: Cached

    def is_of(self, holdings: Sequence[Holding]) -> bool:
        """Return whether workers still hold the same files."""
        return len(holdings) == len(self.holdings) and all(
            (one.host, one.capacity_bytes) == (other.host, other.capacity_bytes)
            and np.array_equal(one.keys, other.keys)
            for one, other in zip(holdings, self.holdings, strict=True)
        )


@dataclass(frozen=True, slots=True)
class _WholeTableCaching(Caching):
    """A table's caches; for plans of all its files the result is remembered."""

    file_count: int = 0
    recall: Callable[[], _Placement | None] = lambda: None
    remember: Callable[[_Placement], None] = lambda placement: None

    def of(self, files: pa.Table, rows: Ints) -> Cached:
        """Return the workers of files, from the last plan of the whole table if it still holds."""
        if len(rows) != self.file_count:
            return Caching.of(self, files, rows)
        placement = self.recall()
        if placement is None or not placement.is_of(self.holdings):
            placement = _Placement(self.holdings, Caching.of(self, files, rows))
            self.remember(placement)
        return placement.result


class TableCaching:
    """Finds what is known about the caches of tables."""

    def __init__(
        self,
        rules: CacheRuleStore,
        cache: CacheMap,
        manifests: ManifestReader,
        runner: Runner,
        clock: Clock,
    ) -> None:
        self._rules = rules
        self._cache = cache
        self._manifests = manifests
        self._runner = runner
        self._clock = clock
        # By rule and snapshot; None if the rule marks none of its files.
        self._marking_rules: LRUCache[tuple[int, int, str, str], MarkingRule | None] = LRUCache(
            _MAX_RULES_KEPT
        )
        # By snapshot and rules. Placing a million files takes a third of the time of their plan.
        self._placements: LRUCache[tuple[int, int, tuple[str, ...]], _Placement] = LRUCache(
            _WHOLE_TABLES_KEPT
        )
        self._lock = threading.Lock()

    async def __call__(self, table: StoredTable, snapshot: Snapshot) -> Caching:
        """Return what is known about a table's caches; less if the cache map does not answer.

        A plan that is made without what workers hold is still correct, only less local.

        Raises:
            SnapshotNotFoundError: The snapshot was dropped meanwhile.
            BusyError: Too much is waiting already.
        """
        if not table.has_cache_rules:
            return Caching()
        entries = await self._rules.active(table.table_id, self._clock())
        candidates = [await self.rule(each, snapshot) for each in entries]
        rules = [rule for rule in candidates if rule is not None]
        if not rules:
            return Caching()
        versions = tuple(each.version for each in entries)
        key = table.table_id, snapshot.info.snapshot_id, versions

        # Planning calls these two functions from its threads.
        def recall() -> _Placement | None:
            with self._lock:
                return self._placements.get(key)

        def remember(placement: _Placement) -> None:
            with self._lock:
                self._placements[key] = placement

        holdings = await self.holdings(table.table_id) or ()
        return _WholeTableCaching(rules, holdings, snapshot.info.file_count, recall, remember)

    async def rule(self, entry: StoredCacheRule, snapshot: Snapshot) -> MarkingRule | None:
        """Return a rule in the planner's form; None if it marks no file of a snapshot."""
        key = entry.table_id, snapshot.info.snapshot_id, entry.info.rule, entry.version
        if key not in self._marking_rules:
            self._marking_rules[key] = await self._bound(entry.info, snapshot)
        return self._marking_rules[key]

    async def _bound(self, info: CacheRule, snapshot: Snapshot) -> MarkingRule | None:
        rule = await self._runner.run(lambda: _marking_rule(info, snapshot))
        if rule is None or info.max_bytes is None:
            return rule
        max_bytes = info.max_bytes

        def limited(_: SnapshotScan, files: pa.Table) -> MarkingRule | None:
            first = first_path_within(files, rule, max_bytes)
            return None if first is None else MarkingRule(rule.expression, first)

        return await self._manifests.scan(info.table, snapshot, lambda: rule.expression, limited)

    async def holdings(self, table_id: int) -> Sequence[Holding] | None:
        """Return what workers hold of a table; None while the cache map does not answer."""
        try:
            return await self._cache.holdings(table_id, self._clock())
        except CacheUnavailableError:
            return None


def _marking_rule(info: CacheRule, snapshot: Snapshot) -> MarkingRule | None:
    try:
        return MarkingRule(bind_rule(info.filter, snapshot))
    except (InvalidFilterError, InvalidCacheRuleError):
        # The table's partition columns have changed since.
        return None
