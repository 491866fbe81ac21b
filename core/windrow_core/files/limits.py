"""Limits on reading untrusted files: bytes of a footer, fields of a schema, memory of a process.

The settings import this module, so it needs neither NumPy nor pyarrow.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path

from windrow_core.cards import count_text

# Enough for 2,000 columns and 350 row groups with statistics. Parsed, that takes a gigabyte.
MAX_FOOTER_BYTES = 64 * 2**20

# Fields of a schema at all levels. Lists, maps and structs count besides what is in them, and so do
# the groups of Parquet between them.
MAX_FIELDS = 10_000
MAX_LEVELS = 100

# The longest footer that is read by default takes half of this, and so does a large column.
MAX_GAINED_BYTES = 2 * 2**30

# Most objects in JSON for each field: a field, what is known of it, and its type.
_OBJECTS = 4

_DATA_PAGES = 5  # where statm has the pages of heap and stack


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What is read of one untrusted file.

    Attributes:
        footer_bytes: Most bytes of a footer or header.
        fields: Most fields of a schema.
    """

    footer_bytes: int = MAX_FOOTER_BYTES
    fields: int = MAX_FIELDS


USUAL_LIMITS = ReadLimits()


class TooWideError(ValueError):
    """A schema has more fields or levels than are read; the text follows 'it has'."""


def refuse_wide(count: int, most: int) -> None:
    """Refuse a schema with too many fields."""
    if count > most:
        raise TooWideError(
            f"a schema of {count_text(count, 'field')}, and at most {most:,} are read: leave fields out, or "
            "raise WINDROW_LIMITS__MAX_FIELDS"
        )


def refuse_deep(levels: int) -> None:
    """Refuse a schema whose fields are nested too deeply."""
    if levels > MAX_LEVELS:
        raise TooWideError(
            f"a schema nested more than {MAX_LEVELS} levels deep, which is not read: write what is "
            "below as text"
        )


def refuse_wide_json(text: bytes, most: int) -> None:
    """Refuse a schema in JSON with too many fields, before it is decoded.

    In Avro, Delta and Iceberg, each field has a key `type`, and so has each list, map or struct.
    """
    # The letters of a key may be escaped, brackets may not.
    refuse_wide(max(text.count(b'"type"'), text.count(b"{") // _OBJECTS), most)


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
