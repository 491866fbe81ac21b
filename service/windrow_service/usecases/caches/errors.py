"""Errors of cache rules, and of workers and what they hold."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_core.errors import Call, Fault
from windrow_service.usecases.errors import (
    ConflictError,
    InvalidError,
    NotFoundError,
    UnavailableError,
    UseCaseError,
)


@dataclass(eq=False)
class CacheRuleNotFoundError(NotFoundError):
    """Cache rule not found."""

    table: str
    rule: str
    message = "table {table!r} has no cache rule {rule!r}: {remedy}"
    remedy = "{call} lists its rules"
    call = Call("list_cache_rules", name="table")


@dataclass(eq=False)
class CacheRuleChangedError(UseCaseError):
    """Cache rule has changed."""

    fault = Fault.CHANGED
    table: str
    rule: str
    expected: str
    actual: str
    message = (
        "cache rule {rule!r} of table {table!r} was expected at {expected} but is at "
        "{actual}; {remedy}"
    )
    remedy = "check it with {call}, then decide again"
    call = Call("get_cache_rule", name="table", rule="rule")


@dataclass(eq=False)
class CacheRulesTooLongError(ConflictError):
    """Cache rules of the table are too long."""

    table: str
    max_characters: int
    message = "the cache rules of table {table!r} may have {max_characters:,} characters together: {remedy}"
    remedy = "shorten their filters, or delete one"


@dataclass(eq=False)
class TooManyCacheRulesError(ConflictError):
    """Table has too many cache rules."""

    table: str
    max_rules: int
    message = "table {table!r} has {max_rules:,} cache rules already: {remedy}"
    remedy = "delete one, or combine several into one"


class InvalidCacheRuleError(InvalidError):
    """Cache rule is not valid."""


@dataclass(eq=False)
class WorkerNotFoundError(NotFoundError):
    """Worker not found.

    No such worker is live, or the session that it names has ended.
    """

    worker_id: str
    message = "no worker {worker_id!r} in this session: {remedy}"
    remedy = "{call}"
    call = Call("beat", worker_id="worker_id")


@dataclass(eq=False)
class TooManyWorkersError(ConflictError):
    """Too many live workers."""

    max_workers: int
    message = "live workers: {max_workers:,}, and no more are allowed: {remedy}"
    remedy = (
        "give each worker a permanent id, or a shorter ttl_seconds, so that stopped workers are "
        "forgotten sooner"
    )


@dataclass(eq=False)
class CacheFullError(ConflictError):
    """Worker holds too many files."""

    worker_id: str
    file_count: int
    max_files: int
    message = (
        "worker {worker_id!r} would hold {file_count:,} files, more than the {max_files:,} "
        "allowed for one worker; nothing was changed: {remedy}"
    )
    remedy = "report files as removed first, or forget the worker with {call}"
    call = Call("forget_worker", worker_id="worker_id")


@dataclass(eq=False)
class CacheUnavailableError(UnavailableError):
    """Cache map cannot be used.

    Attributes:
        reason: Why, in words that contain nothing from the server.
        retry_after_s: Seconds after which to try again.
        advice: What to do about it.
    """

    reason: str
    retry_after_s: int
    advice: str = "make sure that the Redis server runs and can be reached"
    message = "the cache map cannot be used ({reason}); plans are made without it: {remedy}"
    remedy = "{advice}, and try again in {retry_after_s} s"
