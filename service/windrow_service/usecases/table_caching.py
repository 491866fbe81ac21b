"""What a plan knows of the caches of its table: the rules, and what workers hold."""

from __future__ import annotations

from collections.abc import Sequence

from cachetools import LRUCache

from windrow.models import CacheRule
from windrow_service.filters.errors import InvalidFilterError
from windrow_service.planner.cacheable import MarkingRule, first_path_within
from windrow_service.planner.file_keys import Holding
from windrow_service.planner.placement import Caching
from windrow_service.usecases.cache_ports import CacheMap
from windrow_service.usecases.cache_rule_errors import InvalidCacheRuleError
from windrow_service.usecases.cache_rule_ports import CacheRuleStore, StoredCacheRule
from windrow_service.usecases.cache_rules import bind_rule
from windrow_service.usecases.errors import CacheUnavailableError
from windrow_service.usecases.manifests import ManifestReader
from windrow_service.usecases.ports import Clock, Runner, Snapshot, StoredTable
from windrow_service.usecases.scans import Scan

_MAX_RULES_KEPT = 10_000


class TableCaching:
    """Tells of tables what is known of their caches.

    Args:
        rules: What makes files cacheable.
        cache: What workers hold.
        manifests: For rules with a limit of bytes, which must see every file that they mark.
        runner: Where that is worked out.
        clock: The time.
    """

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
        # Of a rule and a snapshot; None where the rule marks nothing of it.
        self._known: LRUCache[tuple[int, int, str, str], MarkingRule | None] = LRUCache(
            _MAX_RULES_KEPT
        )

    async def __call__(self, table: StoredTable, snapshot: Snapshot) -> Caching:
        """Return what is known of a table's caches, as far as the cache map answers.

        A plan that is made without what workers hold is less local, and as right.

        Raises:
            SnapshotNotFoundError: The snapshot has been dropped since it was got.
            BusyError: Too much is waiting already.
        """
        if not table.has_cache_rules:
            return Caching()
        stored = await self._rules.active(table.table_id, self._clock())
        found = [await self.rule(each, snapshot) for each in stored]
        rules = [rule for rule in found if rule is not None]
        if not rules:
            return Caching()
        return Caching(rules, await self.holdings(table.table_id) or ())

    async def rule(self, stored: StoredCacheRule, snapshot: Snapshot) -> MarkingRule | None:
        """Return a rule as the planner applies it; None where it marks nothing of a snapshot.

        Raises:
            SnapshotNotFoundError: The snapshot has been dropped since it was got.
            BusyError: Too much is waiting already.
        """
        key = stored.table_id, snapshot.info.snapshot_id, stored.info.rule, stored.version
        if key not in self._known:
            self._known[key] = await self._bound(stored.info, snapshot)
        return self._known[key]

    async def _bound(self, info: CacheRule, snapshot: Snapshot) -> MarkingRule | None:
        rule = await self._runner.run(lambda: _marking_rule(info, snapshot))
        if rule is None or info.max_bytes is None:
            return rule
        max_bytes = info.max_bytes
        scan = Scan.of(snapshot, rule.expression)
        decoded = await self._manifests.read(info.table, snapshot, scan.manifests, bloom=False)

        def limited() -> MarkingRule | None:
            first = first_path_within(scan.files(decoded), rule, max_bytes)
            return None if first is None else MarkingRule(rule.expression, first)

        return await self._runner.run(limited)

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
        # The table's partition columns have changed since the rule was made.
        return None
