"""Groups for a query that needs only some rows, but cannot tell from which files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow_spark.relation.division import splits_of

# Spark reads one partition, then four times as many as before, until it has enough rows.
_GROWTH = 4

_Ints = npt.NDArray[np.int64]


def with_small_first_groups(groups: pa.Table) -> pa.Table:
    """Return groups of which the first has one split, and each further one four times as many.

    Spark runs the tasks of a limit in rounds; when the first files hold enough rows, none of the
    others is read. Splits that come from one group stay in groups of its hosts and filter.

    Args:
        groups: The groups of a scan.
    """
    counts = np.asarray(pc.list_value_length(groups["splits"]), np.int64)
    group, size = _pieces(counts.tolist())
    splits = splits_of(groups)
    begins = np.cumsum(size) - size
    lists = pa.ListArray.from_arrays(
        pa.array(np.append(begins, len(splits)), pa.int32()),
        splits.to_struct_array().combine_chunks(),
    )
    lengths = np.asarray(splits["length"], np.int64)
    pieces = groups.take(pa.array(group))
    for name, column in (
        ("group_id", pa.array(np.arange(len(group)), groups.schema.field("group_id").type)),
        ("size_bytes", pa.array(np.add.reduceat(lengths, begins))),
        ("splits", lists.cast(groups.schema.field("splits").type)),
    ):
        pieces = pieces.set_column(pieces.column_names.index(name), name, column)
    return pieces


def _pieces(counts: Sequence[int]) -> tuple[_Ints, _Ints]:
    """Return the group of each piece, and how many of its splits the piece has."""
    group, size, most = [], [], 1
    for number, count in enumerate(counts):
        left = count
        while left:
            group.append(number)
            size.append(min(most, left))
            left -= size[-1]
            most *= _GROWTH
    return np.array(group, np.int64), np.array(size, np.int64)
