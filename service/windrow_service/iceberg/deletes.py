"""Which delete files apply to which data files, by Iceberg's rules."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.arrays import flat
from windrow_core.files.rows import DELETE
from windrow_service.iceberg.errors import IcebergMetadataError

Ints = npt.NDArray[np.int64]

# Most pairs of a data file and a delete file that are compared.
_MAX_PAIRS = 20_000_000


def deletes_by_file(files: pa.Table, deletes: pa.Table, table: str) -> tuple[pa.Array, Ints, Ints]:
    """Return the deletion vectors and delete files that apply to each data file.

    Args:
        files: n data files: `path`, `sequence_number`, `partition_key`.
        deletes: `DELETE_ENTRIES`, with paths in the same form as those of data files.
        table: Path of the metadata file, for messages.

    Returns:
        For each data file: a list of `DELETE`, null if nothing applies; the length of that list;
        and the bytes to read for it.
    """
    _refuse_equality(files, deletes, table)
    position = flat(pc.not_equal(deletes["kind"], "equality"))
    deletes = deletes.filter(position)
    is_vector = np.asarray(pc.equal(deletes["kind"], "vector"))
    file, delete = _ordered(*_by_position(files, deletes, table))
    counts = np.bincount(file, minlength=len(files)).astype(np.int64)
    sizes = np.asarray(deletes["size_bytes"], np.int64)
    vector_sizes = np.asarray(pc.fill_null(deletes["length"], 0), np.int64)
    read = np.where(is_vector, vector_sizes, sizes)
    size_bytes = np.zeros(len(files), np.int64)
    np.add.at(size_bytes, file, read[delete])
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(ends), _as_struct(deletes.take(pa.array(delete))))
    nothing = pa.scalar(None, lists.type)
    return flat(pc.if_else(pa.array(counts > 0), lists, nothing)), counts, size_bytes


def applying(files: pa.Table, deletes: pa.Table, table: str) -> tuple[Ints, Ints]:
    """Return the pairs of a data file and a vector or delete file that applies to it, by data files.

    Args:
        files: Data files: `path`, `sequence_number`, `partition_key`.
        deletes: `PLANNED_DELETES`, with paths in the same form as those of data files.
        table: Path of the metadata file, for messages.

    Raises:
        IcebergMetadataError: There are too many pairs.
    """
    is_equality = np.asarray(pc.equal(deletes["kind"], "equality"))
    is_global = np.asarray(deletes["is_global"])
    ways = (
        (_by_position, ~is_equality),
        (_by_equality, is_equality & ~is_global),
        (_by_global_equality, is_equality & is_global),
    )
    pairs = []
    for way, kind in ways:
        rows = np.flatnonzero(kind)
        file, delete = way(files, deletes.take(pa.array(rows)), table)
        pairs.append((file, rows[delete]))
    file, delete = (np.concatenate(one) for one in zip(*pairs, strict=True))
    return _ordered(file, delete)


def _ordered(file: Ints, delete: Ints) -> tuple[Ints, Ints]:
    order = np.lexsort((delete, file))
    return file[order], delete[order]


def _by_position(files: pa.Table, deletes: pa.Table, table: str) -> tuple[Ints, Ints]:
    """Return the pairs of a data file and a vector or position delete file that applies to it."""
    file, delete = _pairs(files, deletes, table)
    is_vector = np.asarray(pc.equal(deletes["kind"], "vector"))
    # A vector also contains the rows that were deleted before it was written.
    has_vector = np.zeros(len(files), np.bool_)
    has_vector[file[is_vector[delete]]] = True
    applies = is_vector[delete] | ~has_vector[file]
    return file[applies], delete[applies]


def _by_equality(files: pa.Table, deletes: pa.Table, table: str) -> tuple[Ints, Ints]:
    """Return the pairs of a data file and an equality delete file of its partition."""
    file, delete = _by_partition(files, deletes, table)
    sequence = np.asarray(files["sequence_number"], np.int64)[file]
    applies = sequence < np.asarray(deletes["sequence_number"], np.int64)[delete]
    return file[applies], delete[applies]


def _by_global_equality(files: pa.Table, deletes: pa.Table, table: str) -> tuple[Ints, Ints]:
    """Return the pairs of a data file and an equality delete file of all partitions."""
    sequence = np.asarray(files["sequence_number"], np.int64)
    order = np.argsort(sequence, kind="stable")
    later = np.asarray(deletes["sequence_number"], np.int64)
    counts = np.searchsorted(sequence[order], later, "left")
    delete, within = _repeated(counts, table)
    return order[within], delete


def _refuse_equality(files: pa.Table, deletes: pa.Table, table: str) -> None:
    equality = deletes.filter(pc.equal(deletes["kind"], "equality"))
    if not len(equality):
        return
    # A delete file of an unpartitioned spec, whose key is empty, applies to all partitions.
    everywhere = equality.filter(pc.match_substring_regex(equality["partition_key"], ":$"))
    sequence = np.asarray(files["sequence_number"], np.int64)
    applies = (
        len(everywhere)
        and len(files)
        and (sequence.min() < np.asarray(everywhere["sequence_number"], np.int64).max())
    )
    if not applies:
        file, delete = _by_partition(files, equality, table)
        later = np.asarray(equality["sequence_number"], np.int64)[delete]
        applies = bool((sequence[file] < later).any())
    if applies:
        raise IcebergMetadataError(
            table,
            f"has rows deleted by equality, in {equality['path'][0].as_py()!r}, which Windrow does "
            "not read: apply them with rewrite_data_files (delete-file-threshold 1), then refresh",
        )


def _pairs(files: pa.Table, deletes: pa.Table, table: str) -> tuple[Ints, Ints]:
    """Return the pairs of a data file and a delete file that applies to it."""
    is_named = np.asarray(deletes["data_path"].is_valid())
    pairs = []
    for rows, column, key in (
        (np.flatnonzero(is_named), "path", "data_path"),
        (np.flatnonzero(~is_named), "partition_key", "partition_key"),
    ):
        file, delete = _equal(files[column], deletes[key].take(pa.array(rows)), table)
        pairs.append((file, rows[delete]))
    file, delete = (np.concatenate(one) for one in zip(*pairs, strict=True))
    data_sequence = np.asarray(files["sequence_number"], np.int64)[file]
    is_later = np.asarray(deletes["sequence_number"], np.int64)[delete] >= data_sequence
    return file[is_later], delete[is_later]


def _by_partition(files: pa.Table, deletes: pa.Table, table: str) -> tuple[Ints, Ints]:
    """Return all pairs of files of the same partition."""
    return _equal(files["partition_key"], deletes["partition_key"], table)


def _equal(file_keys: pa.ChunkedArray, keys: pa.ChunkedArray, table: str) -> tuple[Ints, Ints]:
    """Return all pairs of a data file and a delete file with the same key.

    A table may have the same data file more than once.
    """
    nothing = np.zeros(0, np.int64)
    if not len(keys):
        return nothing, nothing
    distinct = flat(file_keys).cast(pa.string()).dictionary_encode()
    codes = np.asarray(distinct.indices, np.int64)
    order = np.argsort(codes, kind="stable")
    at = np.asarray(pc.fill_null(pc.index_in(flat(keys), distinct.dictionary), -1), np.int64)
    first, last = (np.searchsorted(codes[order], at, side) for side in ("left", "right"))
    counts = last - first
    delete, within = _repeated(counts, table)
    return order[np.repeat(first, counts) + within], delete


def _repeated(counts: Ints, table: str) -> tuple[Ints, Ints]:
    """Return each number below n as often as counted, and how often it came before."""
    if counts.sum() > _MAX_PAIRS:
        raise IcebergMetadataError(
            table,
            f"has delete files that may apply to more than {_MAX_PAIRS:,} pairs of files: merge "
            "them with rewrite_position_delete_files",
        )
    numbers = np.repeat(np.arange(len(counts)), counts)
    return numbers, np.arange(len(numbers)) - np.repeat(np.cumsum(counts) - counts, counts)


def _as_struct(deletes: pa.Table) -> pa.StructArray:
    columns = [
        deletes[field.name]
        if field.name in deletes.column_names
        else pa.nulls(len(deletes), field.type)
        for field in DELETE
    ]
    return pa.StructArray.from_arrays([flat(column) for column in columns], fields=list(DELETE))
