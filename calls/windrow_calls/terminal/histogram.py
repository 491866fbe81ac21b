"""Histograms of sizes by powers of two."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class SizeBin:
    """The number of sizes from `low_bytes` up to, but not including, twice that."""

    low_bytes: int
    count: int


def size_bins(sizes: pa.Array | pa.ChunkedArray) -> list[SizeBin]:
    """Count sizes by powers of two, from the smallest that occurs to the largest.

    Args:
        sizes: Sizes in bytes, below 2**53; an empty array gives no bins.
    """
    if len(sizes) == 0:
        return []
    sizes = pc.max_element_wise(sizes.cast(pa.int64()), 1)
    power = pc.floor(pc.log2(sizes)).cast(pa.int64())
    # Just below a large power of two, the logarithm rounds up.
    power = pc.if_else(pc.greater(pc.power(2, power), sizes), pc.subtract(power, 1), power)
    counts = {entry["values"].as_py(): entry["counts"].as_py() for entry in pc.value_counts(power)}
    return [
        SizeBin(2**power, counts.get(power, 0)) for power in range(min(counts), max(counts) + 1)
    ]


def file_sizes(groups: pa.Table) -> pa.ChunkedArray:
    """Return the size of each file in a plan's groups; a file in many splits counts once."""
    splits = pa.concat_arrays(
        [chunk.flatten() for chunk in groups["splits"].chunks]
        or [pa.array([], groups["splits"].type.value_type)]
    )
    files = pa.table(
        {"path": pc.struct_field(splits, "path"), "size": pc.struct_field(splits, "size_bytes")}
    )
    return files.group_by("path").aggregate([("size", "max")])["size_max"]
