"""What the use cases need of the store of cache rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from windrow.models import CacheRule, CacheRuleDefinition
from windrow_service.usecases.ports import Once

# A plan evaluates all of them.
MAX_CACHE_RULES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCacheRule:
    """A rule, and the table that it is of.

    Attributes:
        table_id: The table, whichever name it has by now.
        info: As callers see it.
        version: Another once the rule is: its ETag.
    """

    table_id: int
    info: CacheRule
    version: str


class CacheRuleStore(Protocol):
    """Cache rules, until they are deleted or have been expired for a while."""

    async def put(
        self,
        table: str,
        rule: str,
        definition: CacheRuleDefinition,
        expected: str | None,
        once: Once | None = None,
    ) -> tuple[StoredCacheRule, bool]:
        """Make a rule, or replace it; tell whether it is new.

        Args:
            table: The table's name.
            rule: The rule's name.
            definition: What it marks.
            expected: The version that it must have; `*` is any, None also that it is new.
            once: The caller's key.

        Raises:
            TableNotFoundError: No table has this name.
            CacheRuleChangedError: The rule is at another version, or not there.
            TooManyCacheRulesError: The rule is new, and the table has `MAX_CACHE_RULES`.
        """

    async def get(self, table: str, rule: str) -> StoredCacheRule:
        """Return a rule, also one that has expired.

        Raises:
            TableNotFoundError: No table has this name.
            CacheRuleNotFoundError: The table has no such rule.
        """

    async def delete(
        self, table: str, rule: str, expected: str | None, once: Once | None = None
    ) -> None:
        """Delete a rule.

        Raises:
            TableNotFoundError: No table has this name.
            CacheRuleNotFoundError: The table has no such rule.
            CacheRuleChangedError: The rule is at another version than `expected`.
        """

    async def list(self, table: str) -> Sequence[StoredCacheRule]:
        """Return all rules of a table by name, also those that have expired.

        Raises:
            TableNotFoundError: No table has this name.
        """

    async def active(self, table_id: int, now: datetime) -> Sequence[StoredCacheRule]:
        """Return the rules of a table that have not expired, by name."""

    async def purge(self, now: datetime) -> int:
        """Forget the rules that expired more than a day before `now`; return how many."""
