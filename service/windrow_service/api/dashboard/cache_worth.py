"""Whether the cache of a worker is worth its disk, in words."""

from __future__ import annotations

from windrow_core.cards import count_text
from windrow_core.models import CacheCounters
from windrow_core.sizes import size_text

# Fewer reads than this say nothing.
_FEW_READS = 100


def worth_of(counters: CacheCounters) -> str:
    """Return whether a cache is worth its disk, and why."""
    hits, reads = counters.hits, counters.hits + counters.misses
    if not reads:
        if counters.elsewhere:
            return "no: tasks here read only files that belong on other workers"
        return "unused: nothing has been read through it"
    of = f"{hits:,} of {count_text(reads, 'read')} came from it"
    if counters.hit_bytes:
        of += f", {size_text(counters.hit_bytes)} that need not be fetched"
    if reads < _FEW_READS:
        return f"too early to say: {of}"
    if 2 * hits >= reads:
        return f"yes: {of}"
    if counters.evictions > hits:
        return (
            f"no, it is too small: {of}, and it removed {count_text(counters.evictions, 'file')} "
            "for others"
        )
    return f"hardly: {of}"
