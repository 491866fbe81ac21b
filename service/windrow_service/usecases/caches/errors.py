"""Errors of cache rules, and of workers and what they hold.

* UseCaseError
  + NotFoundError
    - CacheRuleNotFoundError
    - WorkerNotFoundError
  + CacheRuleChangedError
  + TooManyCacheRulesError
  + InvalidCacheRuleError
  + TooManyWorkersError
  + CacheFullError
  + CacheUnavailableError
"""

from __future__ import annotations

from windrow_service.usecases.errors import NotFoundError, UseCaseError


class CacheRuleNotFoundError(NotFoundError):
    """The table has no such cache rule."""

    def __init__(self, table: str, rule: str) -> None:
        super().__init__(table, rule)
        self.table = table
        self.rule = rule

    def __str__(self) -> str:
        return (
            f"table {self.table!r} has no cache rule {self.rule!r}: "
            f"GET /tables/{self.table}/cache-rules lists those it has"
        )


class CacheRuleChangedError(UseCaseError):
    """The cache rule is not in the state that the caller said it must be in."""

    def __init__(self, table: str, rule: str, expected: str, actual: str) -> None:
        super().__init__(table, rule, expected, actual)
        self.table = table
        self.rule = rule
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        return (
            f"cache rule {self.rule!r} of table {self.table!r} was expected at {self.expected} "
            f"and is at {self.actual}; GET /tables/{self.table}/cache-rules/{self.rule} and "
            "decide again"
        )


class TooManyCacheRulesError(UseCaseError):
    """The table has as many cache rules as it may."""

    def __init__(self, table: str, max_rules: int) -> None:
        super().__init__(table, max_rules)
        self.table = table
        self.max_rules = max_rules

    def __str__(self) -> str:
        return (
            f"table {self.table!r} has {self.max_rules:,} cache rules already: delete one, or let "
            "one rule say what several do"
        )


class InvalidCacheRuleError(UseCaseError):
    """A cache rule cannot be kept as it was given."""


class WorkerNotFoundError(NotFoundError):
    """No such worker lives, or it has been forgotten since the session that it speaks of."""

    def __init__(self, worker_id: str) -> None:
        super().__init__(worker_id)
        self.worker_id = worker_id

    def __str__(self) -> str:
        return (
            f"no worker {self.worker_id!r} in this session: send PUT /workers/{self.worker_id}, "
            "then report all the files that it holds under the session of the answer"
        )


class TooManyWorkersError(UseCaseError):
    """As many workers live as may."""

    def __init__(self, max_workers: int) -> None:
        super().__init__(max_workers)
        self.max_workers = max_workers

    def __str__(self) -> str:
        return (
            f"{self.max_workers:,} workers live already: give each a lasting id, or a shorter "
            "ttl_seconds, so that those which are gone are forgotten"
        )


class CacheFullError(UseCaseError):
    """A worker reports more files than the cache map takes of one."""

    def __init__(self, worker_id: str, file_count: int, max_files: int) -> None:
        super().__init__(worker_id, file_count, max_files)
        self.worker_id = worker_id
        self.file_count = file_count
        self.max_files = max_files

    def __str__(self) -> str:
        return (
            f"worker {self.worker_id!r} would hold {self.file_count:,} files, and {self.max_files:,} "
            "are kept of one; nothing was changed: report files as removed first, or forget the "
            f"worker with DELETE /workers/{self.worker_id} and report anew"
        )


class CacheUnavailableError(UseCaseError):
    """The cache map does not answer."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(retry_after_s)
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return (
            "the cache map cannot be used; plans are made without it: look after the Redis server, "
            f"and try again in {self.retry_after_s} s"
        )
