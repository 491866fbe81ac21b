"""The kind of a table, from its definition; the way to read a plan, from what the plan says."""

from __future__ import annotations

from windrow_core.files.formats import FORMATS
from windrow_core.kinds.delta import DELTA
from windrow_core.kinds.hive import HIVE, Transactional, hive_reading
from windrow_core.kinds.iceberg import ICEBERG
from windrow_core.kinds.kind import Reading, TableKind
from windrow_core.kinds.logged import LOGGED_READING
from windrow_core.kinds.plain import PLAIN, plain_reading

# Formats that are kinds of their own, whatever the format of their files.
OWN_KINDS = {kind.noun: kind for kind in (DELTA, ICEBERG)}


def kind_of(format: str, transactional: Transactional | None) -> TableKind:
    """Return the kind of the tables with a format, and with transactions or without."""
    if format in OWN_KINDS:
        return OWN_KINDS[format]
    return PLAIN[format] if transactional is None else HIVE[format, transactional]


def reading_of(format: str, transactional: Transactional | None, *, is_logged: bool) -> Reading:
    """Return how the files of a plan are read, given what the plan says about its table."""
    if is_logged:
        return LOGGED_READING
    files = FORMATS[format]
    return plain_reading(files) if transactional is None else hive_reading(files, transactional)
