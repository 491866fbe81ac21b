"""What all tables have in common that keep a log of their files, which are Parquet."""

from __future__ import annotations

from collections.abc import Mapping

from windrow_core.files.formats import PARQUET
from windrow_core.kinds.kind import REFRESH_IT, Reading, TableKind

LOGGED_READING = Reading(files=PARQUET, nameless="Delta and Iceberg", is_logged=True)
_OF_THE_LOG = ("columns", "partition_columns", "bucket_spec", "sort_columns", "bloom_columns")


def logged_kind(format: str, compactor: str, eraser: str) -> TableKind:
    """Return a kind of tables that keep a log of their files, and versions in it.

    Args:
        format: The format of their definitions.
        compactor: The program that compacts them.
        eraser: The statements that erase rows of them.
    """
    return TableKind(
        noun=format,
        reading=LOGGED_READING,
        unfit_fields={
            **{
                name: f"{name} do not fit format {format}: leave them out, since the log of "
                "the table states its columns"
                for name in _OF_THE_LOG
            },
            "transactional": f"transactional does not fit format {format}: leave it out",
        },
        states_columns=True,
        has_versions=True,
        publishing=REFRESH_IT,
        compactor=compactor,
        compacting=f"compact it with {compactor}, then refresh it",
        packing=f"it is a {format} table: compact it with {compactor} instead",
        writing=f"the table is {format}: write with its own engine, compact with {compactor}, then "
        "refresh the table",
        dropping=f"its own engine drops partitions, since the table is {format}",
        erasing=f"it is a {format} table, whose log says which rows count: use {eraser}",
        listing_on_spark=f"is {format}, and refreshed from its log by the coordinator: leave out "
        "--on-spark",
        unfit_for_engines=_unfit_for_engines,
    )


def _unfit_for_engines(_: Mapping[str, str]) -> str | None:
    return None
