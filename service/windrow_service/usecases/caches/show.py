"""Show which files of a table's current snapshot are cacheable, and where they are cached."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_core.models import CacheRuleFigures, TableCache, WorkerFigures
from windrow_service.planner.caching.figures import cache_figures
from windrow_service.planner.pruning.expressions import Or
from windrow_service.usecases.caches.ports import CacheRuleStore
from windrow_service.usecases.caches.table_caching import TableCaching
from windrow_service.usecases.ports import Clock
from windrow_service.usecases.snapshots.ports import SnapshotStore
from windrow_service.usecases.snapshots.scans import ManifestReader


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowCache:
    """Count the files that a table's rules mark, and those that workers hold."""

    snapshots: SnapshotStore
    manifests: ManifestReader
    rules: CacheRuleStore
    caching: TableCaching
    clock: Clock

    async def __call__(self, name: str) -> TableCache:
        """Return the figures of unexpired rules and of live workers.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet.
            SnapshotNotFoundError: The snapshot was dropped meanwhile.
            BusyError: Too much is waiting already.
        """
        table, snapshot = await self.snapshots.get(name, None)
        rules = await self.rules.active(table.table_id, self.clock())
        marking_rules = [await self.caching.rule(rule, snapshot) for rule in rules]
        holdings = await self.caching.holdings(table.table_id)
        figures = await self.manifests.scan(
            name,
            snapshot,
            lambda: Or(tuple(rule.expression for rule in marking_rules if rule is not None)),
            lambda _, files: cache_figures(files, marking_rules, holdings or ()),
        )
        return TableCache(
            table=name,
            snapshot_id=snapshot.info.snapshot_id,
            cacheable_files=figures.cacheable.files,
            cacheable_bytes=figures.cacheable.size_bytes,
            cached_files=figures.cached.files,
            cached_bytes=figures.cached.size_bytes,
            rules=[
                CacheRuleFigures(
                    **rule.info.model_dump(),
                    file_count=total.files,
                    size_bytes=total.size_bytes,
                    cached_files=in_cache.files,
                    cached_bytes=in_cache.size_bytes,
                )
                for rule, (total, in_cache) in zip(rules, figures.rules, strict=True)
            ],
            workers=[
                WorkerFigures(
                    host=host.host,
                    file_count=host.cacheable.files,
                    size_bytes=host.cacheable.size_bytes,
                    other_files=host.other_files,
                )
                for host in figures.hosts
            ],
            complete=holdings is not None,
        )
