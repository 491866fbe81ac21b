"""Check cache rules, and bind their filters to the columns of a snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from windrow_core.models import CacheRuleDefinition, Filter
from windrow_service.filters.limits import FilterLimits
from windrow_service.filters.reading import UNLIMITED, read_filter
from windrow_service.planner.pruning.expressions import Expression
from windrow_service.planner.pruning.outcomes import truth_values
from windrow_service.usecases.caches.errors import InvalidCacheRuleError
from windrow_service.usecases.caches.ports import CacheRuleStore, StoredCacheRule
from windrow_service.usecases.ports import Clock, Once, Runner
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore
from windrow_service.usecases.snapshots.scans import columns_beside_partitions, types_of

# Every plan of the table reads the rule.
_MAX_CHARACTERS = 100_000
_LONGEST = timedelta(days=36_500)


class _Anything:
    """One file about which nothing is known, so that it may hold any value."""

    file_count = 1

    def bounds(self, column: str) -> None:
        """Know nothing about the values of a column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefineCacheRule:
    """Make a cache rule, or change what it marks."""

    snapshots: SnapshotStore
    rules: CacheRuleStore
    runner: Runner
    clock: Clock
    filter_limits: FilterLimits

    async def __call__(
        self,
        table: str,
        rule: str,
        definition: CacheRuleDefinition,
        if_match: str | None,
        once: Once | None = None,
    ) -> tuple[StoredCacheRule, bool]:
        """Return the rule, and whether it is new.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot, so its partition columns are
                unknown.
            InvalidFilterError: The filter cannot be read, or names an unknown column.
            InvalidCacheRuleError: The filter names a column that is not a partition column, or
                the rule would have expired already, or could mark nothing.
            CacheRuleChangedError: The rule is not at version `if_match`.
            TooManyCacheRulesError: The rule is new, and the table has `MAX_CACHE_RULES`.
            BusyError: Too much is waiting already.
        """
        _, snapshot = await self.snapshots.get(table, None)

        def check() -> None:
            _check_definition(definition, self.clock())
            bound = bind_rule(definition.filter, snapshot, self.filter_limits)
            if not truth_values(bound, _Anything()).true.any():
                raise InvalidCacheRuleError(
                    "the filter is TRUE for no value at all, so that the rule would mark no file: "
                    "compare with values that its columns can have, and ask for nulls with IS NULL"
                )

        await self.runner.run(check)
        return await self.rules.put(table, rule, definition, if_match, once)


def bind_rule(filter: Filter, snapshot: Snapshot, limits: FilterLimits = UNLIMITED) -> Expression:
    """Return a rule's filter, bound to the partition columns of a snapshot."""
    bound = read_filter(filter, types_of(snapshot), limits)
    partition = snapshot.partition_schema.names
    others = columns_beside_partitions(bound, snapshot)
    if not partition:
        raise InvalidCacheRuleError(
            "the table has no partition columns, and a cache rule is a filter on those: give the "
            "table folders such as ds=2026-11-01, or do without a rule"
        )
    if others:
        raise InvalidCacheRuleError(
            f"{', '.join(map(repr, others))} cannot be in a cache rule, since files are cached "
            f"whole: use the partition columns alone, which are {', '.join(partition)}"
        )
    return bound


def _check_definition(definition: CacheRuleDefinition, now: datetime) -> None:
    ends = definition.expires_at
    if ends is not None and not now < ends <= now + _LONGEST:
        raise InvalidCacheRuleError(
            f"expires_at must lie in the future, and within 100 years; it is {ends.isoformat()}, "
            f"and now it is {now.isoformat(timespec='seconds')}"
        )
    text = definition.model_dump_json()
    if len(text) > _MAX_CHARACTERS:
        raise InvalidCacheRuleError(
            f"the rule takes {len(text):,} characters, and {_MAX_CHARACTERS:,} are allowed: ask "
            "for ranges in place of lists of values"
        )
    if CacheRuleDefinition.model_validate_json(text) != definition:
        raise InvalidCacheRuleError(
            "the filter holds NaN or an infinity as a number, which JSON does not have: write it "
            "as text, such as 'NaN'"
        )
