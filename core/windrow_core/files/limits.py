"""Limits on reading untrusted files: bytes of a footer, and memory of a process.

The settings import this module, so it needs neither NumPy nor pyarrow.
"""

from __future__ import annotations

import resource
from pathlib import Path

# Enough for 2,000 columns and 350 row groups with statistics. Parsed, that takes a gigabyte.
MAX_FOOTER_BYTES = 64 * 2**20

# The longest footer that is read by default takes half of this, and so does a large column.
MAX_GAINED_BYTES = 2 * 2**30

_DATA_PAGES = 5  # where statm has the pages of heap and stack


def bound_memory(gained_bytes: int = MAX_GAINED_BYTES) -> None:
    """Limit the memory that this process may allocate in addition to what it has; Linux only.

    Address space that is only reserved does not count: allocators reserve much more than they use.
    """
    counts = Path("/proc/self/statm")
    if counts.exists():
        used_bytes = int(counts.read_text().split()[_DATA_PAGES]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        limit_bytes = used_bytes + gained_bytes
        if hard == resource.RLIM_INFINITY or limit_bytes < hard:
            resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, limit_bytes))
