"""What is known about the columns of a whole manifest, so that many manifests need not be read.

One row per manifest: `file_count`, `size_bytes`, and `columns`, a struct with one
struct<min, max, value, nan, null> for each column of the table whose type is ordered. `min` and
`max` are null if unknown; the flags tell whether any row may hold a value that is neither null nor
NaN, NaN, or null.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_service.planner.pruning.bounds import Bools, Bounds, FileFacts, SortKeys, mask
from windrow_service.planner.pruning.expressions import Expression
from windrow_service.planner.pruning.outcomes import truth_values
from windrow_service.planner.pruning.prune import Pruned

_FLAGS = ("value", "nan", "null")


def range_of(files: pa.Table, check: Callable[[], None] = lambda: None) -> pa.Table:
    """Return the range of one manifest, as one row.

    Args:
        files: The manifest's n files, with the schema of `columns.inventory_schema`.
        check: Called between columns; raises to stop.
    """
    inventory = FileFacts(files, evidence="statistics")
    fields, values = [], []
    partition, stats = files["partition"], files["stats"]
    # Flatten all parts at once: one part alone takes as long.
    sources = [
        *(
            (field, [part, part])
            for field, part in zip(partition.type, partition.flatten(), strict=True)
        ),
        *((field, part.flatten()) for field, part in zip(stats.type, stats.flatten(), strict=True)),
    ]
    for field, ends in sources:
        check()
        bounds = inventory.bounds(field.name)
        assert bounds is not None
        low = _end(ends[0], bounds.lower.known, bounds.value, "min")
        high = _end(ends[1], bounds.upper.known, bounds.value, "max")
        flags = [pa.array([bool(flag.any())]) for flag in (bounds.value, bounds.nan, bounds.null)]
        row = pa.StructArray.from_arrays([low, high, *flags], names=["min", "max", *_FLAGS])
        fields.append(pa.field(field.name, row.type))
        values.append(row)
    columns = (
        pa.StructArray.from_arrays(values, fields=fields)
        if fields
        else pa.Array.from_buffers(pa.struct([]), 1, [None])
    )
    size_bytes = int(files["size_bytes"].to_numpy().sum())
    return pa.table(
        [pa.array([len(files)]), pa.array([size_bytes]), columns],
        names=["file_count", "size_bytes", "columns"],
    )


def join_ranges(rows: Sequence[pa.Table]) -> pa.Table:
    """Join the ranges of a table's manifests, one row each, into one table."""
    nothing = pa.table([pa.array([], pa.int64())] * 2, names=["file_count", "size_bytes"])
    return pa.concat_tables(rows).combine_chunks() if rows else nothing


def prune_manifests(
    ranges: pa.Table,
    expression: Expression | None,
    unsure: Collection[str] = (),
    among: Bools | None = None,
) -> tuple[Bools, Pruned]:
    """Return which manifests may hold a row for which `expression` is TRUE.

    Args:
        ranges: One row for each of n manifests of one table.
        expression: The filter; None keeps every manifest.
        unsure: Columns whose ranges must not be relied on.
        among: For each manifest, whether it may be kept; None keeps all that the filter keeps.

    Returns:
        n flags, and the totals of the manifests that are ruled out.
    """
    kept = np.ones(len(ranges), np.bool_)
    if expression is not None and len(ranges):
        kept = truth_values(expression, _Ranges(ranges, unsure)).true
    if among is not None:
        kept = kept & among
    gone = ranges.filter(pa.array(~kept))
    return kept, Pruned(*(int(gone[name].to_numpy().sum()) for name in gone.column_names[:2]))


class _Ranges:
    """The `Facts` of manifests."""

    def __init__(self, ranges: pa.Table, unsure: Collection[str]) -> None:
        self._columns = ranges["columns"]
        self._unsure = unsure
        self._bounds: dict[str, Bounds | None] = {}
        self.file_count = len(ranges)

    def bounds(self, column: str) -> Bounds | None:
        """See `Facts.bounds`."""
        if column not in self._bounds:
            self._bounds[column] = self._read(column)
        return self._bounds[column]

    def _read(self, column: str) -> Bounds | None:
        at = self._columns.type.get_field_index(column)
        if at < 0 or column in self._unsure:
            return None
        # By position, because pyarrow could interpret a name as a path of names.
        lower, upper, *flags = pc.struct_field(self._columns, [at]).flatten()
        value, nan, null = (mask(flag) for flag in flags)
        return Bounds(
            SortKeys.of(lower), SortKeys.of(upper, round_up=True), value, nan, null, exact=False
        )


def _end(ends: pa.ChunkedArray, known: Bools, value: Bools, which: str) -> pa.Array:
    """Return the least or greatest bound of the files with values; null if one of them lacks it."""
    if not value.any() or (value & ~known).any():
        return pa.nulls(1, ends.type)
    # Stay in Arrow: not every timestamp can become a Python value.
    return pa.repeat(pc.min_max(ends.filter(pa.array(value)))[which], 1)
