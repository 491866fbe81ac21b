"""Excerpts of Parquet files that are in memory."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from windrow_core.files.excerpts.chunk_ranges import chunk_ranges_in, in_plan, kept_columns_of
from windrow_core.files.excerpts.excerpt import ExcerptFile, excerpts_of
from windrow_core.files.excerpts.outlines import Outline, Outlines


def recorded(file: bytes) -> tuple[str, list[int]] | None:
    """Return the outline and numbers of a file, as in inventories; None if it has none."""
    metadata = pq.read_metadata(io.BytesIO(file))
    ranges = chunk_ranges_in(metadata, len(file))
    if ranges is None:
        return None
    codecs, numbers = ranges
    footer = file[-8 - int.from_bytes(file[-8:-4], "little") : -8]
    outline = Outlines().of(footer, metadata, codecs)
    return None if outline is None else (outline, numbers)


def planned(
    outline: str, numbers: Sequence[int], names: Sequence[str]
) -> tuple[Outline, np.ndarray]:
    """Return the outline of some columns, and a row of numbers for each row group, as in plans."""
    whole = Outline.of_text(outline)
    some, leaves = whole.only(names)
    at = np.arange(0, len(numbers), kept_columns_of(whole.leaf_count))
    return some, in_plan(np.array(numbers, np.int32), at, leaves)


def excerpt(file: bytes, some: Outline, groups: np.ndarray) -> tuple[ExcerptFile, bytes]:
    """Return the excerpt of some row groups of a file, and its bytes."""
    (whole,) = excerpts_of(some, groups.reshape(-1), len(file), len(file))
    return whole, content(file, whole)


def content(file: bytes, whole: ExcerptFile) -> bytes:
    """Return the bytes of an excerpt."""
    return whole.content([file[begin:end] for begin, end in whole.ranges])


def read(file: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """Return columns of a Parquet file."""
    return pq.ParquetFile(io.BytesIO(file), coerce_int96_timestamp_unit="us").read(columns)
