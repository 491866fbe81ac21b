"""Bytes per row of a write: as given, or learnt from earlier writes or the table's files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa

from windrow_core.models import RowSize, WritePlanRequest, WriteReport
from windrow_service.planner.writes.key_values import numbered
from windrow_service.planner.writes.keys import Floats
from windrow_service.planner.writes.row_sizes import RowSizes, row_sizes
from windrow_service.usecases.writes.keys import KeyTable, partition_values

RowSizeSource: TypeAlias = Literal["request", "history", "files"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRowSize:
    """The bytes that a row takes.

    Attributes:
        mean: Mean of all rows.
        low: A tenth of the rows are in files with fewer bytes per row.
        high: A tenth of the rows are in files with more bytes per row.
        rows: Number of rows that the size is based on.
        source: Where the size comes from.
        of_key: Bytes per row of each key; one value for all if keys are not known.
    """

    mean: float
    low: float
    high: float
    rows: int
    source: RowSizeSource
    of_key: Floats

    def wire(self) -> RowSize:
        """Return the size as callers see it."""
        return RowSize(
            bytes_per_row=self.mean,
            low=self.low,
            high=self.high,
            source=self.source,
            rows=self.rows,
        )


def row_size_of(
    request: WritePlanRequest,
    files: pa.Table | None,
    reports: Sequence[WriteReport],
    keys: KeyTable | None,
    columns: int,
) -> KnownRowSize | None:
    """Return the bytes per row of a write; None if unknown.

    The request comes first, then earlier writes, then files.

    Args:
        request: The request, which may state the size.
        files: The table's inventory.
        reports: Reports of earlier writes.
        keys: The keys that are written; a key that the files have gets an average of its own.
        columns: Number of columns in the files.
    """
    if request.bytes_per_row is not None:
        size = request.bytes_per_row
        return KnownRowSize(
            mean=size, low=size, high=size, rows=0, source="request", of_key=np.array([size])
        )
    if request.keys is not None and request.keys.bytes is not None:
        return _from_keys(request.keys.rows, request.keys.bytes)
    return _from_reports(reports) or _from_files(files, keys, columns)


def _from_keys(rows: Sequence[int], size_bytes: Sequence[int]) -> KnownRowSize | None:
    row_counts, sizes = np.array(rows, np.float64), np.array(size_bytes, np.float64)
    if not row_counts.any() or not sizes.any():
        return None
    mean = float(sizes.sum() / row_counts.sum())
    return KnownRowSize(
        mean=mean,
        low=mean,
        high=mean,
        rows=int(row_counts.sum()),
        source="request",
        of_key=sizes / np.maximum(row_counts, 1),
    )


def _from_reports(reports: Sequence[WriteReport]) -> KnownRowSize | None:
    samples = [report for report in reports if report.rows and report.files]
    # Per file, so that a write of few rows counts by the size of its files.
    size = np.array([report.bytes / report.files for report in samples])
    rows = np.array([report.rows / report.files for report in samples])
    files = np.array([report.files for report in samples], np.int64)
    # Means do not show how many bytes a file takes besides its rows.
    sizes = row_sizes(size, rows, None, files=files)
    if sizes is None:
        return None
    return _of_sizes(sizes, "history", np.array([sizes.mean]))


def _from_files(files: pa.Table | None, keys: KeyTable | None, columns: int) -> KnownRowSize | None:
    if files is None:
        return None
    size = files["size_bytes"].to_numpy()
    rows = files["row_count"].fill_null(0).to_numpy()
    if keys is None:
        sizes = row_sizes(size, rows, columns)
        of_key = None if sizes is None else np.array([sizes.mean])
    else:
        of_files, of_keys, count = _numbered_alike(partition_values(files), len(files), keys)
        sizes = row_sizes(size, rows, columns, group=of_files, groups=count)
        of_key = None if sizes is None else sizes.of_group[of_keys]
    if sizes is None or of_key is None:
        return None
    return _of_sizes(sizes, "files", of_key)


def _of_sizes(sizes: RowSizes, source: RowSizeSource, of_key: Floats) -> KnownRowSize:
    return KnownRowSize(
        mean=sizes.mean,
        low=sizes.low,
        high=sizes.high,
        rows=sizes.rows,
        source=source,
        of_key=of_key,
    )


def _numbered_alike(
    partitions: list[pa.Array], count: int, keys: KeyTable
) -> tuple[np.ndarray, np.ndarray, int]:
    """Give files and keys of one partition the same number."""
    both = [
        pa.concat_arrays([of_files, _as(of_keys, of_files.type)])
        for of_files, of_keys in zip(partitions, keys.values, strict=True)
    ]
    numbers, distinct = numbered(both, count + len(keys))
    return numbers[:count], numbers[count:], distinct


def _as(values: pa.Array, type_: pa.DataType) -> pa.Array:
    try:
        return values.cast(type_)
    except pa.ArrowException:
        return pa.nulls(len(values), type_)
