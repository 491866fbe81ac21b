"""The entries of manifests and of lists of manifests; read in a process that may be lost.

Functions that read manifests take several of one partition spec, since making columns takes far
longer than decoding a few entries. Their errors name the first one, so that whoever asks for several
asks again for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files.arrays import flat, make_struct
from windrow_core.files.bounds import in_order, possible_null_counts
from windrow_core.files.file_fields import FIELD_ID
from windrow_core.files.types import has_order
from windrow_service.iceberg.avro_columns import Columns, read_columns
from windrow_service.iceberg.bounds import Counts, bounds_of
from windrow_service.iceberg.errors import IcebergMetadataError
from windrow_service.iceberg.metadata import PartitionField
from windrow_service.iceberg.partition_values import (
    bounds_by_partition,
    identity_values,
    partition_keys,
)
from windrow_service.iceberg.single_values import json_writer

MANIFESTS = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("length", pa.int64(), nullable=False),
        pa.field("spec_id", pa.int32(), nullable=False),
        pa.field("holds_deletes", pa.bool_(), nullable=False),
        pa.field("sequence_number", pa.int64(), nullable=False),
        pa.field("snapshot_id", pa.int64()),
    ]
)
DELETE_ENTRIES = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("row_count", pa.int64(), nullable=False),
        pa.field("sequence_number", pa.int64(), nullable=False),
        pa.field("partition_key", pa.string(), nullable=False),
        # The data file that it applies to; null if it may apply to several.
        pa.field("data_path", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("length", pa.int64()),
    ]
)

# What plans of scans need of delete files beside `DELETE_ENTRIES`.
PLANNED_DELETES = pa.schema(
    [
        *DELETE_ENTRIES,
        # Whether it may apply to files of every partition.
        pa.field("is_global", pa.bool_(), nullable=False),
        pa.field("equality_ids", pa.list_(pa.int32())),
    ]
)

# Field ids, as Iceberg's specification numbers them.
_MANIFEST_PATH, _MANIFEST_LENGTH, _SPEC_ID, _ADDED_BY = 500, 501, 502, 503
_ADDED_COUNT, _KEPT_COUNT, _MANIFEST_SEQUENCE, _MANIFEST_CONTENT = 504, 505, 515, 517
_MANIFEST_KEY = 519
_STATUS, _SNAPSHOT, _SEQUENCE, _CONTENT = 0, 1, 3, 134
_PATH, _FORMAT, _ROWS, _SIZE = 100, 101, 103, 104
_SIZES, _COUNTS, _NULLS, _NANS, _LOWER, _UPPER = 108, 109, 110, 137, 125, 128
_KEY, _SPLITS = 131, 132
_DATA_PATH, _OFFSET, _LENGTH = 143, 144, 145
_EQUALITY_IDS, _FIRST_ROW, _MANIFEST_FIRST_ROW = 135, 142, 520
_PATH_IN_DELETES = 2147483546
_ADDED, _DELETED = 1, 2
_POSITIONS, _EQUALITY = 1, 2
# A bitmap in a Puffin file has its length before it, and a checksum after it.
_LENGTH_BYTES, _FRAME_BYTES = 4, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestTask:
    """A manifest to read, and what its entries depend on.

    Attributes:
        path: Path of the manifest.
        length: Its bytes, as its list states them.
        spec_id: Id of its partition spec.
        spec: Fields of its partition spec.
        sequence_number: Sequence number of its new entries.
        snapshot_id: Id of the snapshot that added its new entries.
        columns: The table's columns, with field ids in their metadata.
        partition_columns: Names of the columns whose values are taken from the partitions.
        first_row_id: The id of the first row of its files that have none; None if there are no ids.
    """

    path: str
    length: int
    spec_id: int
    spec: tuple[PartitionField, ...]
    sequence_number: int
    snapshot_id: int | None
    columns: pa.Schema
    partition_columns: tuple[str, ...]
    first_row_id: int | None = None


def read_manifest_list(content: bytes, path: str) -> pa.Table:
    """Return the manifests of a list, without those that hold no files.

    Returns:
        `MANIFESTS`, and the column `first_row_id`.
    """
    lists = read_columns(content)
    entries = _Entries(lists, path, [_length_of(lists)])
    paths = entries.required(_MANIFEST_PATH)
    entries.refuse_keys(_MANIFEST_KEY, paths)
    counts = zip(entries.optional(_ADDED_COUNT), entries.optional(_KEPT_COUNT), strict=True)
    holds_files = [pair != (0, 0) for pair in counts]
    sequence = [one or 0 for one in entries.optional(_MANIFEST_SEQUENCE)]
    columns = {
        "path": entries.typed(_MANIFEST_PATH, paths, pa.string()),
        "length": entries.typed(_MANIFEST_LENGTH, entries.required(_MANIFEST_LENGTH), pa.int64()),
        "spec_id": entries.typed(_SPEC_ID, entries.required(_SPEC_ID), pa.int32()),
        "holds_deletes": [one == 1 for one in entries.among(_MANIFEST_CONTENT, {None, 0, 1})],
        "sequence_number": entries.typed(_MANIFEST_SEQUENCE, sequence, pa.int64()),
        "snapshot_id": entries.typed(_ADDED_BY, entries.optional(_ADDED_BY), pa.int64()),
    }
    first_row_ids = entries.typed(
        _MANIFEST_FIRST_ROW, entries.optional(_MANIFEST_FIRST_ROW), pa.int64()
    )
    manifests = pa.table(columns, schema=MANIFESTS).append_column("first_row_id", first_row_ids)
    return manifests.filter(pa.array(holds_files, pa.bool_()))


def read_data_manifests(
    contents: Sequence[bytes], tasks: Sequence[ManifestTask]
) -> tuple[pa.Table, list[int]]:
    """Return the data files that manifests hold, and how many each has.

    Returns:
        Columns `path`, `size_bytes`, `row_count`, `sequence_number`, `snapshot_id`,
        `row_group_offsets`, `stats_see_nan`, `partition_key`, `partition` and `stats`.
    """
    entries = _entries_of(contents, tasks)
    return pa.table(_data_columns(entries, tasks[0])), entries.counts


def read_planned_files(
    contents: Sequence[bytes], tasks: Sequence[ManifestTask]
) -> tuple[pa.Table, list[int]]:
    """Return the data files that manifests hold, for plans of scans, and how many each has.

    Returns:
        The columns of `read_data_manifests`, and `first_row_id`. The partition keys are a
        spec, a colon, and its values in JSON.
    """
    entries = _entries_of(contents, tasks)
    columns = _data_columns(entries, tasks[0])
    del columns["snapshot_id"]
    columns["partition_key"] = _partition_texts(columns["partition_key"], entries, tasks[0])
    columns["first_row_id"] = _first_row_ids(entries, columns["row_count"], tasks)
    return pa.table(columns), entries.counts


def _first_row_ids(
    entries: _Entries, row_counts: pa.Array, tasks: Sequence[ManifestTask]
) -> pa.Array:
    """Return the ids of files' first rows: in a manifest, files without an id follow each other."""
    own_ids = entries.typed(_FIRST_ROW, entries.optional(_FIRST_ROW), pa.int64())
    rows = np.where(own_ids.is_null(), np.asarray(row_counts), 0)
    before = np.cumsum(rows) - rows
    counts = np.array(entries.counts)
    begins = np.cumsum(counts) - counts
    firsts = pa.array([task.first_row_id for task in tasks], pa.int64())
    # Empty manifests at the end begin after the last file.
    starts = np.append(before, 0)[np.minimum(begins, len(before))]
    manifests = np.repeat(np.arange(len(tasks)), counts)
    ids = pc.add(firsts.take(pa.array(manifests)), pa.array(before - starts[manifests]))
    return pc.if_else(ids.is_valid(), pc.coalesce(own_ids, ids), ids)


def _data_columns(entries: _Entries, task: ManifestTask) -> dict[str, pa.Array]:
    entries.refuse_formats({"PARQUET"})
    entries.among(_CONTENT, {None, 0})
    raw = {field.id: entries.optional(field.id) for field in task.spec}
    _require_columns(entries, task)
    stats, see_nan = _statistics(entries, task, raw)
    return {
        **_common(entries, task, raw),
        "snapshot_id": entries.typed(_SNAPSHOT, entries.optional(_SNAPSHOT), pa.int64()),
        "row_group_offsets": _offsets(entries),
        "stats_see_nan": see_nan,
        "partition": _partition(task, raw, entries.count),
        "stats": stats,
    }


def read_delete_manifests(
    contents: Sequence[bytes], tasks: Sequence[ManifestTask]
) -> tuple[pa.Table, list[int]]:
    """Return `DELETE_ENTRIES` of the delete files that manifests hold, and how many each has."""
    entries = _entries_of(contents, tasks)
    return _deletes(entries, tasks[0]), entries.counts


def read_planned_deletes(
    contents: Sequence[bytes], tasks: Sequence[ManifestTask]
) -> tuple[pa.Table, list[int]]:
    """Return `PLANNED_DELETES` of the delete files that manifests hold, and how many each has."""
    entries, task = _entries_of(contents, tasks), tasks[0]
    files = _deletes(entries, task)
    at = files.schema.get_field_index("partition_key")
    keys = _partition_texts(flat(files["partition_key"]), entries, task)
    files = files.set_column(at, files.schema.field(at), keys)
    ids = [None if one is None else _numbers(one) for one in entries.optional(_EQUALITY_IDS)]
    is_equality = np.asarray(pc.equal(files["kind"], "equality"))
    if any(not one for one, equal in zip(ids, is_equality.tolist(), strict=True) if equal):
        raise IcebergMetadataError(
            task.path, "is damaged: it has an equality delete file that names no columns"
        )
    is_global = is_equality & all(field.transform == "void" for field in task.spec)
    files = files.append_column("is_global", pa.array(is_global))
    files = files.append_column("equality_ids", pa.array(ids, pa.list_(pa.int32())))
    return files.cast(PLANNED_DELETES), entries.counts


def _numbers(content: bytes) -> list[int]:
    numbers: list[int] = np.frombuffer(content, np.int64).tolist()
    return numbers


def _partition_texts(keys: pa.Array, entries: _Entries, task: ManifestTask) -> pa.Array:
    """Return the partition of each file: its spec, a colon, and its values in JSON.

    Args:
        keys: What `partition_keys` returned for the files.
        entries: The files.
        task: Their manifest, or one of them.
    """
    codes = keys.dictionary_encode()
    _, first = np.unique(np.asarray(codes.indices), return_index=True)
    raw = [entries.optional(field.id) for field in task.spec]
    try:
        writers = [json_writer(field.type) for field in task.spec]
        texts = [
            ",".join(write(values[row]) for write, values in zip(writers, raw, strict=True))
            for row in first.tolist()
        ]
    except (ArithmeticError, TypeError, ValueError) as error:
        raise IcebergMetadataError(
            task.path, f"has partition values that cannot be written as JSON ({error})"
        ) from error
    texts = [f"{task.spec_id}:{text}" for text in texts]
    return pa.array(texts, pa.string()).take(codes.indices)


def _deletes(entries: _Entries, task: ManifestTask) -> pa.Table:
    raw = {field.id: entries.optional(field.id) for field in task.spec}
    entries.refuse_formats({"PARQUET", "PUFFIN"}, "delete files")
    is_vector = [str(one).upper() == "PUFFIN" for one in entries.required(_FORMAT)]
    contents = entries.among(_CONTENT, {_POSITIONS, _EQUALITY})
    kinds = [
        "equality" if content == _EQUALITY else "vector" if vector else "positions"
        for content, vector in zip(contents, is_vector, strict=True)
    ]
    paths = zip(*map(entries.optional, (_DATA_PATH, _LOWER, _UPPER)), strict=True)
    columns = {
        **_common(entries, task, raw),
        "kind": kinds,
        "data_path": [data_path or _only_path(lower, upper) for data_path, lower, upper in paths],
        "offset": [
            None if one is None else one + _LENGTH_BYTES for one in entries.optional(_OFFSET)
        ],
        "length": [
            None if one is None else one - _FRAME_BYTES for one in entries.optional(_LENGTH)
        ],
    }
    read = pa.table({name: columns[name] for name in DELETE_ENTRIES.names}, schema=DELETE_ENTRIES)
    vectors = read.filter(pc.equal(read["kind"], "vector"))
    has_place = pc.and_(
        pc.greater_equal(vectors["offset"], _LENGTH_BYTES), pc.greater(vectors["length"], 0)
    )
    is_located = pc.and_(vectors["data_path"].is_valid(), has_place)
    if not pc.all(pc.fill_null(is_located, False)).as_py() and len(vectors):
        raise IcebergMetadataError(
            task.path, "is damaged: it has a deletion vector without a place or a data file"
        )
    return read


def _only_path(lower: Mapping[int, bytes] | None, upper: Mapping[int, bytes] | None) -> str | None:
    """Return the data file of a position delete file if its bounds leave only one."""
    least, most = ((one or {}).get(_PATH_IN_DELETES) for one in (lower, upper))
    return least.decode() if least is not None and least == most else None


@dataclass(frozen=True, slots=True)
class _Entries:
    """The columns of some manifests, one after the other, or of a list of manifests.

    Attributes:
        columns: Their values, by field id.
        path: Path for messages.
        counts: Number of entries of each manifest.
    """

    columns: Columns
    path: str
    counts: list[int]

    @property
    def count(self) -> int:
        """Number of entries."""
        return sum(self.counts)

    def required(self, field_id: int) -> list[Any]:
        values = self.columns.get(field_id)
        if values is None or any(one is None for one in values):
            raise IcebergMetadataError(self.path, f"is damaged: field {field_id} is missing")
        return values

    def optional(self, field_id: int) -> list[Any]:
        return self.columns.get(field_id) or [None] * self.count

    def among(self, field_id: int, values: Set[Any]) -> list[Any]:
        """Return the values of a field, which must be among these."""
        if not set(own := self.optional(field_id)) <= values:
            raise IcebergMetadataError(self.path, f"is damaged: field {field_id} is out of range")
        return own

    def typed(self, field_id: int, values: list[Any], type_: pa.DataType) -> pa.Array:
        """Return values of a field as an array."""
        if pt.is_integer(type_) and bool in set(map(type, values)):
            raise IcebergMetadataError(self.path, f"is damaged: field {field_id} is not {type_}")
        try:
            return pa.array(values, type_)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise IcebergMetadataError(
                self.path, f"is damaged: field {field_id} is not {type_}"
            ) from error

    def refuse_keys(self, field_id: int, paths: Sequence[str]) -> None:
        for key, path in zip(self.optional(field_id), paths, strict=True):
            if key:
                raise IcebergMetadataError(
                    self.path, f"states that {path!r} is encrypted, which Windrow cannot read"
                )

    def refuse_formats(self, formats: set[str], what: str = "data files") -> None:
        for format_, path in zip(self.required(_FORMAT), self.required(_PATH), strict=True):
            if str(format_).upper() not in formats:
                raise IcebergMetadataError(
                    self.path,
                    f"names {path!r}, of format {str(format_)[:20]}, but {what} are only read as "
                    "Parquet: rewrite them with rewrite_data_files, with "
                    "write.format.default=parquet",
                )


def _entries_of(contents: Sequence[bytes], tasks: Sequence[ManifestTask]) -> _Entries:
    """Return the entries of manifests whose files were not removed, with what they inherit."""
    parts = [_left_in(content, task) for content, task in zip(contents, tasks, strict=True)]
    counts = [part.count for part in parts]
    columns = parts[0].columns
    if len(parts) > 1:
        # Another writer, or an older release, leaves out fields that are optional.
        ids = {id_ for part in parts for id_ in part.columns}
        columns = {id_: [one for part in parts for one in part.optional(id_)] for id_ in ids}
    entries = _Entries(columns, tasks[0].path, counts)
    entries.refuse_keys(_KEY, entries.required(_PATH))
    return entries


def _left_in(content: bytes, task: ManifestTask) -> _Entries:
    columns = dict(read_columns(content))
    status = _Entries(columns, task.path, [_length_of(columns)]).among(
        _STATUS, {0, _ADDED, _DELETED}
    )
    if _DELETED in status:
        rows = [row for row, one in enumerate(status) if one != _DELETED]
        columns = {id_: [values[row] for row in rows] for id_, values in columns.items()}
    entries = _Entries(columns, task.path, [_length_of(columns)])
    for id_, value in ((_SEQUENCE, task.sequence_number), (_SNAPSHOT, task.snapshot_id)):
        columns[id_] = [value if one is None else one for one in entries.optional(id_)]
    return entries


def _length_of(columns: Columns) -> int:
    return len(next(iter(columns.values()), ()))


def _common(
    entries: _Entries, task: ManifestTask, raw: Mapping[int, list[Any]]
) -> dict[str, pa.Array]:
    """Return the columns that data files and delete files have in common."""
    columns = {
        "path": entries.typed(_PATH, entries.required(_PATH), pa.string()),
        "size_bytes": entries.typed(_SIZE, entries.required(_SIZE), pa.int64()),
        "row_count": entries.typed(_ROWS, entries.required(_ROWS), pa.int64()),
        "sequence_number": entries.typed(_SEQUENCE, entries.required(_SEQUENCE), pa.int64()),
        "partition_key": pa.array(
            partition_keys(task.spec_id, list(raw.values()), entries.count), pa.string()
        ),
    }
    for name in ("size_bytes", "row_count", "sequence_number"):
        if pc.any(pc.less(columns[name], 0)).as_py():
            raise IcebergMetadataError(task.path, f"is damaged: a file has a negative {name}")
    return columns


def _offsets(entries: _Entries) -> pa.Array:
    """Return where row groups start; an empty list if the stated offsets are impossible."""
    splits = [one or b"" for one in entries.optional(_SPLITS)]
    counts = np.array([len(one) // 8 for one in splits], np.int64)
    flat = np.frombuffer(b"".join(splits), np.int64)
    files = np.repeat(np.arange(len(splits)), counts)
    sizes = np.array(entries.required(_SIZE), np.int64)
    wrong = (flat < 0) | (flat >= sizes[files])
    wrong[1:] |= (files[1:] == files[:-1]) & (np.diff(flat) <= 0)
    is_wrong = np.zeros(len(splits), np.bool_)
    is_wrong[files[wrong]] = True
    counts[is_wrong] = 0
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(flat[~is_wrong[files]]))


def _partition(task: ManifestTask, raw: Mapping[int, list[Any]], count: int) -> pa.Array:
    by_source = {
        field.source_id: raw[field.id] for field in task.spec if field.transform == "identity"
    }
    fields = [_without_metadata(task.columns.field(name)) for name in task.partition_columns]
    values = [
        identity_values(by_source[_id_of(task.columns, field.name)], field.type) for field in fields
    ]
    return make_struct(values, fields, count)


def _require_columns(entries: _Entries, task: ManifestTask) -> None:
    """Refuse files that may lack a column whose values only their partitions hold, as Hive's do."""
    partition_ids = {_id_of(task.columns, name) for name in task.partition_columns}
    sources = {
        field.source_id for field in task.spec if field.transform == "identity"
    } - partition_ids
    names = {_id_of(task.columns, name): name for name in task.columns.names}
    sizes, counts = (Counts.of(entries.optional(id_)) for id_ in (_SIZES, _COUNTS))
    for id_ in sources & names.keys():
        missing = pc.and_(sizes.column(id_).is_null(), counts.column(id_).is_null())
        if pc.any(missing).as_py():
            path = entries.required(_PATH)[pc.index(missing, True).as_py()]
            raise IcebergMetadataError(
                task.path,
                f"does not show whether {path!r} holds column {names[id_]!r}, by which it is "
                "partitioned and other files are not: rewrite it with rewrite_data_files",
            )


def _statistics(
    entries: _Entries, task: ManifestTask, raw: Mapping[int, list[Any]]
) -> tuple[pa.Array, pa.Array]:
    """Return the `stats` of files, and whether those of floats rule out NaN."""
    nulls, nans = (Counts.of(entries.optional(id_)) for id_ in (_NULLS, _NANS))
    lower, upper = entries.optional(_LOWER), entries.optional(_UPPER)
    rows = pa.array(entries.required(_ROWS), pa.int64())
    see_nan: pa.Array = pa.array(np.ones(entries.count, np.bool_))
    fields, columns = [], []
    for column in task.columns:
        if column.name in task.partition_columns or not has_order(column.type):
            continue
        id_ = _id_of(task.columns, column.name)
        least = bounds_of(lower, id_, column.type, upper=False)
        most = bounds_of(upper, id_, column.type, upper=True)
        least, most, _ = in_order(least, most)
        if pt.is_floating(column.type):
            has_no_nan = pc.fill_null(pc.equal(nans.column(id_), 0), False)
            has_bounds = pc.or_(least.is_valid(), most.is_valid())
            see_nan = pc.and_(see_nan, pc.or_(has_no_nan, pc.invert(has_bounds)))
        for field in task.spec:
            if field.source_id == id_:
                first, last = bounds_by_partition(field, raw[field.id], column.type)
                least, most = pc.coalesce(least, first), pc.coalesce(most, last)
        null_count = possible_null_counts(least, most, nulls.column(id_), rows)
        columns.append(
            pa.StructArray.from_arrays([least, most, null_count], ["min", "max", "null_count"])
        )
        fields.append(pa.field(column.name, columns[-1].type))
    return make_struct(columns, fields, entries.count), see_nan


def _id_of(columns: pa.Schema, name: str) -> int:
    return int(columns.field(name).metadata[FIELD_ID])


def _without_metadata(field: pa.Field) -> pa.Field:
    return pa.field(field.name, field.type)
