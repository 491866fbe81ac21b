"""Hive's transactional tables, whose folders have the ids of their writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from windrow_core.files.formats import FORMATS, FileFormat
from windrow_core.kinds.kind import (
    REFRESH_IT,
    Reading,
    TableKind,
    files_unfit_for_engines,
    rows_unfit_for_engines,
)
from windrow_core.kinds.plain import without_blooms

Transactional: TypeAlias = Literal["full", "insert_only"]

COMPACT_IN_HIVE = "Hive's own compaction merges its files (ALTER TABLE … COMPACT 'major')"
# Hive deletes single rows in files of this format alone.
_ROW_BY_ROW = "orc"


def hive_reading(files: FileFormat, transactional: Transactional) -> Reading:
    """Return how files of transactional tables are read."""
    return Reading(files=files, nameless="transactional", names_rows=transactional == "full")


def _unfit_fields(files: FileFormat, transactional: Transactional) -> dict[str, str]:
    if transactional != "full":
        return without_blooms(files)
    unfit = without_blooms(files)
    if files.name != _ROW_BY_ROW:
        unfit["transactional"] = (
            f"transactional 'full' does not fit format {files.name}: Hive changes single "
            "rows only in ORC files; register the table as orc, or as 'insert_only'"
        )
    unfit.setdefault(
        "bloom_columns",
        "bloom_columns do not fit transactional 'full': leave them out, since Bloom filters "
        "are not built for rows that may be deleted",
    )
    return unfit


def _kind(files: FileFormat, transactional: Transactional) -> TableKind:
    reading = hive_reading(files, transactional)

    def unfit_for_engines(_: Mapping[str, str]) -> str | None:
        return rows_unfit_for_engines() if reading.names_rows else files_unfit_for_engines(files)

    return TableKind(
        noun="transactional",
        reading=reading,
        unfit_fields=_unfit_fields(files, transactional),
        takes_write_ids=True,
        publishing=REFRESH_IT,
        compacting=COMPACT_IN_HIVE,
        advising=COMPACT_IN_HIVE,
        packing="Hive deletes its rows one by one: let Hive compact it instead",
        writing="the table is transactional: write with Hive, then refresh the table",
        dropping="its own engine drops partitions, since the table is transactional",
        erasing="it is transactional: use DELETE FROM with Hive, then a major compaction",
        listing_on_spark="is transactional, and refreshed by the coordinator: leave out --on-spark",
        unfit_for_engines=unfit_for_engines,
    )


_TRANSACTIONAL: tuple[Transactional, ...] = ("full", "insert_only")
HIVE = {
    (name, transactional): _kind(files, transactional)
    for name, files in FORMATS.items()
    for transactional in _TRANSACTIONAL
}
