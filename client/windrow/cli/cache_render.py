"""Rendering of cache rules, caches and workers with rich."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from windrow.terminal.render import DASH, message, titled
from windrow_core.models import CacheRule, Filter, TableCache, WorkerInfo
from windrow_core.sizes import size_text


def rule_list(rules: Sequence[CacheRule], table: str | None) -> RenderableType:
    """List the cache rules of one table, or of all."""
    if not rules:
        has = f"{table} has no cache rules" if table else "no table has cache rules"
        return message(has, f"`windrow cache add {table or 'TABLE'} --where …` adds one")
    listing = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("table", "rule"):
        listing.add_column(name, no_wrap=True)
    listing.add_column("files", overflow="fold")
    listing.add_column("at most", justify="right", no_wrap=True)
    listing.add_column("until", no_wrap=True)
    for rule in rules:
        listing.add_row(
            Text(rule.table),
            Text(rule.rule),
            Text(filter_text(rule.filter)),
            _limit_text(rule.max_bytes),
            time_text(rule.expires_at),
        )
    return listing


def table_cache(cache: TableCache) -> RenderableType:
    """Show a table's cacheable files by rule, and the workers that cache them."""
    head = f"{cache.table}, snapshot {cache.snapshot_id}: " + _share(
        cache.cached_files, cache.cacheable_files, cache.cached_bytes, cache.cacheable_bytes
    )
    if not cache.complete:
        head += "; the cache map does not answer, so every file counts as not cached"
    parts: list[RenderableType] = [Text(head, "bold", overflow="fold")]
    parts.append(_rules(cache) if cache.rules else rule_list([], cache.table))
    if cache.workers:
        parts.append(titled("Workers", _workers(cache)))
    elif cache.complete:
        parts.append(message("no workers are running", "`windrow worker run` starts one"))
    return Group(*parts)


def _rules(cache: TableCache) -> Table:
    listing = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    listing.add_column("rule", no_wrap=True)
    listing.add_column("files", overflow="fold")
    for name in ("cacheable", "cached", "size", "cached size", "at most"):
        listing.add_column(name, justify="right", no_wrap=True)
    listing.add_column("until", no_wrap=True)
    for rule in cache.rules:
        listing.add_row(
            Text(rule.rule),
            Text(filter_text(rule.filter)),
            f"{rule.file_count:,}",
            f"{rule.cached_files:,}",
            size_text(rule.size_bytes),
            size_text(rule.cached_bytes),
            _limit_text(rule.max_bytes),
            time_text(rule.expires_at),
        )
    return listing


def _workers(cache: TableCache) -> Table:
    listing = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    listing.add_column("host", no_wrap=True)
    for name in ("cached", "size", "other files"):
        listing.add_column(name, justify="right", no_wrap=True)
    for worker in cache.workers:
        listing.add_row(
            Text(worker.host),
            f"{worker.file_count:,}",
            size_text(worker.size_bytes),
            f"{worker.other_files:,}",
        )
    return listing


def worker_list(workers: Sequence[WorkerInfo]) -> RenderableType:
    """List workers with the fill and statistics of their caches."""
    if not workers:
        return message("no workers are running", "`windrow worker run` starts one")
    listing = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("worker", "host"):
        listing.add_column(name, no_wrap=True)
    for name in (
        "used",
        "capacity",
        "hits",
        "misses",
        "elsewhere",
        "failures",
        "evictions",
        "read",
    ):
        listing.add_column(name, justify="right", no_wrap=True)
    listing.add_column("expires", no_wrap=True)
    for worker in workers:
        counters = worker.counters
        listing.add_row(
            Text(worker.worker_id),
            Text(worker.host),
            size_text(worker.used_bytes),
            size_text(worker.capacity_bytes),
            f"{counters.hits:,}",
            f"{counters.misses:,}",
            f"{counters.elsewhere:,}",
            f"{counters.failures:,}",
            f"{counters.evictions:,}",
            size_text(counters.hit_bytes + counters.miss_bytes),
            f"{worker.expires_at:%H:%M:%S %Z}",
        )
    return listing


def filter_text(filter: Filter) -> str:
    """Return a filter as it was given: SQL text, or JSON."""
    return filter if isinstance(filter, str) else filter.model_dump_json()


def time_text(at: datetime | None) -> str:
    """Return a time in its own time zone, or a dash for None."""
    return DASH if at is None else f"{at:%Y-%m-%d %H:%M:%S %Z}"


def _limit_text(max_bytes: int | None) -> str:
    return DASH if max_bytes is None else size_text(max_bytes)


def _share(files: int, all_files: int, size_bytes: int, all_bytes: int) -> str:
    return (
        f"{files:,} of {all_files:,} cacheable files are cached, "
        f"{size_text(size_bytes)} of {size_text(all_bytes)}"
    )
