"""What a plan knows of the caches of its table: the rules, and what workers hold."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import structlog
from cachetools import LRUCache

from windrow.models import CacheRule
from windrow_service.filters.bind import bind
from windrow_service.filters.errors import InvalidFilterError
from windrow_service.filters.sql import parse_sql
from windrow_service.planner.cacheable import MarkingRule, first_path_within
from windrow_service.planner.file_keys import Holding
from windrow_service.planner.placement import Caching
from windrow_service.usecases.cache_ports import CacheMap
from windrow_service.usecases.cache_rule_ports import CacheRuleStore, StoredCacheRule
from windrow_service.usecases.errors import CacheUnavailableError
from windrow_service.usecases.manifests import ManifestReader
from windrow_service.usecases.ports import Clock, Runner, Snapshot, StoredTable
from windrow_service.usecases.scans import Scan

_MAX_RULES_KEPT = 10_000
_log = structlog.get_logger(__name__)


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
        stored = await self._rules.active(table.table_id, self._clock())
        if not stored:
            return Caching()
        rules = [await self.rule(each, snapshot) for each in stored]
        return Caching(
            [rule for rule in rules if rule is not None], await self._holdings(table.table_id) or ()
        )

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
        try:
            rule = marking_rule(info, snapshot)
        except InvalidFilterError as error:
            # The table's partition columns have changed since the rule was made.
            _log.warning(
                "a cache rule marks nothing",
                table=info.table,
                rule=info.rule,
                reason=str(error),
                remedy="drop it, or put it anew",
            )
            return None
        if info.max_bytes is None:
            return rule
        max_bytes = info.max_bytes
        scan = Scan.of(snapshot, rule.expression)
        decoded = await self._manifests.read(info.table, snapshot, scan.manifests, bloom=False)

        def limited() -> MarkingRule | None:
            first = first_path_within(scan.files(decoded), rule, max_bytes)
            return None if first is None else MarkingRule(rule.expression, first)

        return await self._runner.run(limited)

    async def _holdings(self, table_id: int) -> Sequence[Holding] | None:
        """Return what workers hold of a table; None while the cache map does not answer."""
        try:
            return await self._cache.holdings(table_id, self._clock())
        except CacheUnavailableError:
            return None


def marking_rule(info: CacheRule, snapshot: Snapshot) -> MarkingRule:
    """Return a rule for a snapshot, without regard to its limit of bytes.

    Raises:
        InvalidFilterError: Its filter is not one on the partition columns.
    """
    # It kept to the limits of filters when it was made.
    most = sys.maxsize
    tree = (
        parse_sql(info.filter, max_nodes=most, max_depth=most)
        if isinstance(info.filter, str)
        else info.filter
    )
    types = {field.name: field.type for field in snapshot.partition_schema}
    return MarkingRule(bind(tree, types, max_nodes=most, max_depth=most))
