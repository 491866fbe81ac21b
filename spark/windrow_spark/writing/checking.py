"""Comparing the staged files of a write with its input and its plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from windrow_core.cards import count_text
from windrow_core.models import Column, KeyCounts, KeyReport, Scalar, WritePlan, WriteReport
from windrow_core.sizes import SMALL
from windrow_spark.writing.counting import RowSums, unhashed_columns
from windrow_spark.writing.errors import NotReproducibleError
from windrow_spark.writing.folder_names import folder_texts, wire_values


@dataclass(frozen=True, slots=True)
class Seconds:
    """Durations of the steps of a write."""

    count: float
    write: float
    check: float


def check_files(
    table: str,
    files: pa.Table,
    sums: RowSums,
    report: KeyReport | None,
    key_counts: KeyCounts | None,
) -> None:
    """Make sure that the files hold the rows that the writing tasks were given.

    Args:
        table: Name of the table, for errors.
        files: The staged files, as rows of an inventory.
        sums: Sums of the rows as the tasks saw them.
        report: Rows of each key according to folders and footers.
        key_counts: Rows of each key according to the data, if they were counted.
    """
    rows = int(pc.sum(files["row_count"]).as_py() or 0)
    if rows != sums.rows:
        raise NotReproducibleError(table, count_text(sums.rows, "row"), count_text(rows, "row"))
    if key_counts is None:
        return
    data_rows = _rows_by_key(key_counts.values, key_counts.rows)
    file_rows = _rows_by_key(report.values, report.rows) if report is not None else Counter()
    for key in data_rows | file_rows:
        if data_rows[key] != file_rows[key]:
            raise NotReproducibleError(
                table,
                f"{count_text(data_rows[key], 'row')} of key ({', '.join(key)})",
                f"{file_rows[key]:,}",
            )


def _rows_by_key(values: Sequence[Sequence[Scalar]], rows: Sequence[int]) -> Counter[Sequence[str]]:
    # As text, since NaN does not equal itself.
    total: Counter[Sequence[str]] = Counter()
    keys = zip(*values, strict=True) if values else [()] * len(rows)
    for key, count in zip(keys, rows, strict=True):
        total[tuple(map(str, key))] += count
    return total


def write_report(
    df: DataFrame,
    plan: WritePlan,
    partition_columns: Sequence[Column],
    files: pa.Table,
    sums: RowSums,
    seconds: Seconds,
) -> WriteReport:
    """Return a report of the planned and actual figures of a write.

    Args:
        df: The written DataFrame.
        plan: The plan of the write.
        partition_columns: The table's partition columns.
        files: The staged files, as rows of an inventory.
        sums: Sums of the rows in them.
        seconds: Durations of the steps.
    """
    sizes = files["size_bytes"].to_numpy()
    counts = files["row_count"].to_numpy()
    target = plan.target_file_bytes or 0
    # If the bytes per row are unknown, the target is a number of rows.
    small = sizes < target * SMALL if target else counts < (plan.target_file_rows or 0) * SMALL
    return WriteReport(
        scheme=plan.scheme,
        basis=plan.basis,
        target_file_bytes=target,
        planned_files=plan.files,
        tasks=plan.tasks,
        rows=sums.rows,
        files=len(files),
        small_files=int(np.count_nonzero(small)),
        bytes=int(sizes.sum()),
        largest_file_bytes=int(sizes.max(initial=0)),
        row_hash=f"{sums.hash:016x}",
        unhashed_columns=unhashed_columns(df),
        count_seconds=round(seconds.count, 3),
        write_seconds=round(seconds.write, 3),
        check_seconds=round(seconds.check, 3),
        commit_seconds=0.0,
        keys=_key_report(plan, partition_columns, files),
    )


def _key_report(plan: WritePlan, columns: Sequence[Column], files: pa.Table) -> KeyReport | None:
    if not len(files):
        return None
    folders = [path.rpartition("/")[0] for path in files["path"].to_pylist()]
    encoded = pa.array(folders).dictionary_encode()
    number = encoded.indices.to_numpy(zero_copy_only=False)
    count = len(encoded.dictionary)
    texts = [folder_texts(folder) for folder in encoded.dictionary.to_pylist()]
    values = [
        wire_values(column, [of_key[at] for of_key in texts]) for at, column in enumerate(columns)
    ]

    def total(column: str) -> list[int]:
        sums = np.zeros(count, np.int64)
        np.add.at(sums, number, files[column].to_numpy())
        return [int(each) for each in sums]

    targets = _planned_files(plan)
    keys = list(zip(*values, strict=True)) if values else [()] * count
    return KeyReport(
        columns=list(columns),
        values=values,
        rows=total("row_count"),
        files=np.bincount(number, minlength=count).tolist(),
        bytes=total("size_bytes"),
        planned_files=None if targets is None else [targets.get(key, 0) for key in keys],
    )


def _planned_files(plan: WritePlan) -> dict[tuple[Scalar, ...], int] | None:
    """Return the planned files of each key, with all its buckets together."""
    if plan.keys is None:
        return None
    files_of: dict[tuple[Scalar, ...], int] = {}
    keys = zip(*plan.keys.values, strict=True) if plan.keys.values else [()] * len(plan.keys.files)
    for key, files in zip(keys, plan.keys.files, strict=True):
        files_of[key] = files_of.get(key, 0) + files
    return files_of
