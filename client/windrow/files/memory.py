"""How much memory a process may take that reads files of strangers."""

from __future__ import annotations

import resource
from pathlib import Path

# The longest footer that is read by default takes half of it, and so does a large column.
MAX_GAINED_BYTES = 2 * 2**30

_DATA_PAGES = 5  # where statm has the pages of heap and stack


def bound_memory(gained_bytes: int = MAX_GAINED_BYTES) -> None:
    """Let this process allocate so much more than it has by now; on Linux alone.

    Address space that is only reserved does not count: allocators reserve much more than they use.
    """
    counts = Path("/proc/self/statm")
    if counts.exists():
        held = int(counts.read_text().split()[_DATA_PAGES]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        wanted = held + gained_bytes
        if hard == resource.RLIM_INFINITY or wanted < hard:
            resource.setrlimit(resource.RLIMIT_DATA, (wanted, wanted))
