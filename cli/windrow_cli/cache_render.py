"""Rendering of cache rules, caches and workers with rich."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from windrow_calls.terminal.listings import ListTable
from windrow_calls.terminal.render import DASH, listing, message, section, utc_text
from windrow_core.cards import count_text
from windrow_core.filter_text import filter_text
from windrow_core.models import CacheRule, TableCache, WorkerInfo
from windrow_core.sizes import size_text


def rule_list(rules: Sequence[CacheRule], name: str | None) -> RenderableType:
    """List the cache rules of one table, or of all."""
    if not rules:
        has = f"{name} has no cache rules" if name else "no table has cache rules"
        return message(has, f"`windrow cache add {name or 'TABLE'} --where …` adds one")
    table = listing(
        "table", "rule", "files…", "at most>", "until (UTC)", drops=("until (UTC)", "at most")
    )
    for rule in rules:
        table.add_row(
            Text(rule.table),
            Text(rule.rule),
            Text(filter_text(rule.filter)),
            _limit_text(rule.max_bytes),
            utc_text(rule.expires_at),
        )
    return table


def table_cache(cache: TableCache) -> RenderableType:
    """Show a table's cacheable files by rule, and the workers that cache them."""
    head = f"{cache.table}, snapshot {cache.snapshot_id}: " + _share(
        cache.cached_files, cache.cacheable_files, cache.cached_bytes, cache.cacheable_bytes
    )
    if not cache.complete:
        head += "; the cache map does not answer, so every file counts as not cached"
    parts: list[RenderableType] = [Text(head, "bold", overflow="fold")]
    parts += [Text(""), _rules(cache)] if cache.rules else [rule_list([], cache.table)]
    if cache.workers:
        parts.append(section("Workers", _workers(cache)))
    elif cache.complete:
        parts.append(message("no workers are running", "`windrow worker run` starts one"))
    return Group(*parts)


def _rules(cache: TableCache) -> Table:
    table = ListTable(
        (
            "rule",
            "files…",
            "cacheable>",
            "cached>",
            "size>",
            "cached size>",
            "at most>",
            "until (UTC)",
        ),
        ("until (UTC)", "at most", "cached size", "size"),
        show_edge=False,
    )
    for rule in cache.rules:
        table.add_row(
            Text(rule.rule),
            Text(filter_text(rule.filter)),
            f"{rule.file_count:,}",
            f"{rule.cached_files:,}",
            size_text(rule.size_bytes),
            size_text(rule.cached_bytes),
            _limit_text(rule.max_bytes),
            utc_text(rule.expires_at),
        )
    return table


def _workers(cache: TableCache) -> Table:
    table = ListTable(("host", "cached>", "size>", "other files>"), show_edge=False)
    for worker in cache.workers:
        table.add_row(
            Text(worker.host),
            f"{worker.file_count:,}",
            size_text(worker.size_bytes),
            f"{worker.other_files:,}",
        )
    return table


def worker_list(workers: Sequence[WorkerInfo]) -> RenderableType:
    """List workers with the fill and statistics of their caches."""
    if not workers:
        return message("no workers are running", "`windrow worker run` starts one")
    table = listing(
        *("worker", "host", "used>", "capacity>", "hits>", "misses>", "elsewhere>", "failures>"),
        *("evictions>", "read>", "expires"),
        drops=("expires", "read", "evictions", "elsewhere", "failures", "misses"),
    )
    for worker in workers:
        counters = worker.counters
        table.add_row(
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
    return table


def time_text(at: datetime | None) -> str:
    """Return a time in its own time zone, or a dash for None."""
    return DASH if at is None else f"{at:%Y-%m-%d %H:%M:%S %Z}"


def _limit_text(max_bytes: int | None) -> str:
    return DASH if max_bytes is None else size_text(max_bytes)


def _share(files: int, all_files: int, size_bytes: int, all_bytes: int) -> str:
    return (
        f"{files:,} of {count_text(all_files, 'cacheable file')} cached, "
        f"{size_text(size_bytes)} of {size_text(all_bytes)}"
    )
