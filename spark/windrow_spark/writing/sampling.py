"""Bytes per row of a table without files and history, measured by writing a few rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windrow_core.models import KeyCounts, TableInfo, WritePlan
from windrow_spark.writing.expressions import keys_of
from windrow_spark.writing.file_options import FileOptions
from windrow_spark.writing.staging import remove_staged, stage
from windrow_tables.commits.inventories import list_files, take_inventory

_ROWS = 100_000


def sampled_row_bytes(
    df: DataFrame,
    key_counts: KeyCounts | None,
    plan: WritePlan,
    table: TableInfo,
    folder: str,
    file_options: FileOptions,
) -> float | None:
    """Write a sample of the rows like the real ones, and return the bytes that a row takes.

    Args:
        df: The rows.
        key_counts: Their keys. The sample comes from two of them: the largest, and that of a typical
            row.
        plan: A plan with a single task.
        table: The table that the rows are for.
        folder: Absolute path, or URI, of a folder that the driver and all executors can reach. It is
            created and removed.
        file_options: How files are made.

    Returns:
        None if there are no rows.
    """
    rows = df
    if key_counts is not None and key_counts.columns:
        names = [column.name for column in key_counts.columns]
        rows = df.where(
            reduce(or_, (_is_key(df, names, key_counts, at) for at in _typical(key_counts)))
        )
    try:
        stage(rows.limit(_ROWS), plan, table, folder, file_options=file_options)
        files = take_inventory(folder, list_files(folder), ()).files
    finally:
        above, _, name = folder.rpartition("/")
        remove_staged(above, name)
    count = sum(files["row_count"].to_pylist())
    return sum(files["size_bytes"].to_pylist()) / count if count else None


def _typical(key_counts: KeyCounts) -> set[int]:
    by_size = sorted(range(len(key_counts.rows)), key=lambda at: key_counts.rows[at])
    half = sum(key_counts.rows) / 2
    rows_so_far = 0
    for at in by_size:
        rows_so_far += key_counts.rows[at]
        if rows_so_far >= half:
            return {at, by_size[-1]}
    return {by_size[-1]}


def _is_key(df: DataFrame, names: Sequence[str], key_counts: KeyCounts, at: int) -> Column:
    texts = [key_counts.values[column][at] for column in range(len(names))]
    same = [
        key.cast("string").eqNullSafe(
            F.lit(str(text).lower() if isinstance(text, bool) else text).cast("string")
        )
        for key, text in zip(keys_of(df, names), texts, strict=True)
    ]
    return reduce(and_, same)
