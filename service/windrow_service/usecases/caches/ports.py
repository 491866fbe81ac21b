"""Ports of the store of cache rules, and of the cache map: workers and the files they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from windrow_core.models import CacheRule, CacheRuleDefinition, Heartbeat, WorkerInfo
from windrow_service.planner.caching.file_keys import Holding
from windrow_service.planner.splits import Hashes
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import Once

# Each plan evaluates all rules of its table.
MAX_CACHE_RULES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCacheRule:
    """A rule, and the table that it belongs to.

    Attributes:
        table_id: The table's number.
        info: The rule as callers see it.
        version: Changes whenever the rule does; its ETag.
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
        if_match: str | None,
        once: Once | None = None,
    ) -> tuple[StoredCacheRule, bool]:
        """Make or replace a rule; return it, and whether it is new.

        Args:
            table: The table's name.
            rule: The rule's name.
            definition: What the rule marks.
            if_match: The version that the rule must have; `*` for any version, None for no
                condition.
            once: The caller's key.

        Raises:
            TableNotFoundError: No table has this name.
            CacheRuleChangedError: The rule is at another version, or does not exist.
            TooManyCacheRulesError: The rule is new, and the table has `MAX_CACHE_RULES`.
        """

    async def everywhere(
        self, now: datetime, limit: int, among: Names
    ) -> Sequence[StoredCacheRule]:
        """Return at most `limit` unexpired rules of some tables, by table and name.

        The filters of long rules are left out.
        """

    async def get(self, table: str, rule: str) -> StoredCacheRule:
        """Return a rule, even if it has expired.

        Raises:
            TableNotFoundError: No table has this name.
            CacheRuleNotFoundError: The table has no such rule.
        """

    async def delete(
        self, table: str, rule: str, if_match: str | None, once: Once | None = None
    ) -> None:
        """Delete a rule.

        Raises:
            TableNotFoundError: No table has this name.
            CacheRuleNotFoundError: The table has no such rule.
            CacheRuleChangedError: The rule is at another version than `if_match`.
        """

    async def list(self, table: str) -> Sequence[StoredCacheRule]:
        """Return all rules of a table by name, including those that have expired.

        Raises:
            TableNotFoundError: No table has this name.
        """

    async def active(self, table_id: int, now: datetime) -> Sequence[StoredCacheRule]:
        """Return the rules of a table that have not expired, by name."""

    async def purge(self, now: datetime) -> int:
        """Forget the rules that expired more than a day before `now`; return how many."""


# A worker's keys take 8 bytes each, here and in Redis.
MAX_CACHED_FILES = 2_000_000


# Each plan asks what all workers hold, which takes 15 ms for 1,000 workers.
MAX_WORKERS = 2_000


# How long operators are told of workers that fell silent, and of how many.
GONE_FOR = timedelta(days=1)
MAX_GONE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheReport:
    """A worker's report about its cache.

    Attributes:
        worker_id: The worker.
        session: The session of its last heartbeat.
        table_id: The table that the files belong to.
        added: Keys of files that the worker holds, in any order.
        removed: Keys of files that it no longer holds unless they are also in `added`, in any
            order.
        replace: Whether `added` names all files of the table that the worker holds.
    """

    worker_id: str
    session: str
    table_id: int
    added: Hashes
    removed: Hashes
    replace: bool


class Heartbeats(Protocol):
    """Workers that have sent a heartbeat within their time to live."""

    async def beat(self, worker_id: str, heartbeat: Heartbeat, now: datetime) -> WorkerInfo:
        """Record that a worker is live; an unknown one begins a session.

        Raises:
            TooManyWorkersError: The worker is new, and `MAX_WORKERS` are live.
            CacheUnavailableError: The cache map does not answer.
        """

    async def live(self, now: datetime) -> Sequence[WorkerInfo]:
        """Return the live workers, by id.

        Raises:
            CacheUnavailableError: The cache map does not answer.
        """

    async def gone(self, now: datetime) -> Sequence[WorkerInfo]:
        """Return workers that fell silent in the last `GONE_FOR`, the latest first, at most a hundred.

        Raises:
            CacheUnavailableError: The cache map does not answer.
        """

    async def forget(self, worker_id: str, now: datetime) -> None:
        """Forget a worker and what it holds.

        Raises:
            WorkerNotFoundError: No such worker is live.
            CacheUnavailableError: The cache map does not answer.
        """


class CacheMap(Protocol):
    """Which files live workers hold, as keys made by `planner.caching.file_keys`."""

    async def report(self, report: CacheReport, now: datetime) -> int:
        """Apply a report, completely or not at all; return how many files of the table it leaves.

        Raises:
            WorkerNotFoundError: No such worker is live, or it is in another session.
            CacheFullError: The worker would hold more than `MAX_CACHED_FILES` files.
            CacheUnavailableError: The cache map does not answer.
        """

    async def holdings(self, table_id: int, now: datetime) -> Sequence[Holding]:
        """Return what each live worker holds of a table, even if nothing, by worker id.

        Raises:
            CacheUnavailableError: The cache map does not answer.
        """

    async def ping(self) -> None:
        """Make sure that the cache map answers.

        Raises:
            CacheUnavailableError: The cache map does not answer.
        """
