"""Which delete files apply to the splits of each group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.acid.names import buckets_of, file_folders
from windrow_service.planner.splits import Ints, Splits, distinct, run_numbers, run_offsets


@dataclass(frozen=True, slots=True, eq=False)
class GroupDeletes:
    """The delete files of groups.

    Attributes:
        files: Delete files.
        offsets: Group g has the delete files at `rows[offsets[g]:offsets[g + 1]]`, each once.
        rows: Positions in `files`.
    """

    files: pa.Table
    offsets: Ints
    rows: Ints


def deletes_of(
    files: pa.Table, splits: Splits, offsets: Ints, delete_files: pa.Table
) -> GroupDeletes:
    """Return the delete files of each group.

    Delete files in a partition's folder apply to all its data files of the same bucket.

    Args:
        files: The inventory that `splits.file` points into.
        splits: The splits, in the order of their groups.
        offsets: Group g holds the splits `offsets[g]:offsets[g + 1]`.
        delete_files: Table with the schema `DELETE_FILES`.
    """
    group = run_numbers(offsets)
    with_deletes = np.flatnonzero(files["delete_count"].to_numpy()[splits.file] > 0)
    paths = _joined(files["path"].take(pa.array(splits.file[with_deletes])))
    roots = pa.concat_arrays([_joined(delete_files["root"]), file_folders(paths).root])
    codes = np.asarray(roots.dictionary_encode().indices, np.int64) << 32
    own = codes[: len(delete_files)] | np.asarray(delete_files["bucket"], np.int64)
    # These files have delete files, which only apply to files with a bucket.
    buckets = codes[len(delete_files) :] | np.asarray(pc.cast(buckets_of(paths), pa.int64()))
    order = np.argsort(own, kind="stable")
    runs = run_offsets(own[order])
    run = np.searchsorted(own[order[runs[:-1]]], buckets)
    pairs = distinct(group[with_deletes] * max(len(runs), 1) + run)
    held_by, run = np.divmod(pairs, max(len(runs), 1))
    counts = np.diff(runs)[run]
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = order[np.repeat(runs[run], counts) + within]
    per_group = np.bincount(held_by, counts, len(offsets) - 1).astype(np.int64)
    return GroupDeletes(delete_files, np.concatenate(([0], np.cumsum(per_group))), rows)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.chunks else pa.array([], column.type)
