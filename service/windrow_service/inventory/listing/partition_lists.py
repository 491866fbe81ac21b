"""The partitions of a table as a catalog lists them: values and folders, wherever these are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files.arrays import flat, make_struct
from windrow_core.files.errors import LocationError
from windrow_core.files.listing import HIVE_DEFAULT_PARTITION, escape
from windrow_core.files.partition_values import (
    InvalidValueError,
    convert,
    describe_type,
    resolved_type,
)
from windrow_core.files.schemes import is_remote
from windrow_core.files.table_paths import absolute_path, is_outside, path_in
from windrow_core.files.types import TIMESTAMP, TIMESTAMP_NTZ
from windrow_service.inventory.errors import PartitionListError
from windrow_service.inventory.listing.partitions import Partitions

MAX_PARTITIONS = 1_000_000
_FOLDER = pa.field("folder", pa.string(), nullable=False)
_SENT = ("values", "location")


@dataclass(frozen=True, slots=True)
class ListedPartitions:
    """The partitions of a table.

    Attributes:
        table: `folder`, in the form of paths in inventories, ascending; then a text for each
            partition column, null for Hive's default partition.
    """

    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def folders(self) -> pa.Array:
        """The folder of each partition."""
        return flat(self.table.column(0))

    def encoded(self) -> bytes:
        """Return the list as bytes, as it is stored."""
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, self.table.schema, options=options) as stream:
            stream.write_table(self.table)
        return bytes(sink.getvalue())

    @classmethod
    def decoded(cls, body: bytes) -> ListedPartitions:
        """Return the list from bytes that `encoded` returned."""
        with pa.ipc.open_stream(body) as stream:
            return cls(stream.read_all())

    def by_values(self) -> dict[tuple[str | None, ...], str]:
        """Return the folder of each partition by its values."""
        columns = [column.to_pylist() for column in self.table.columns]
        return {tuple(row[1:]): row[0] for row in zip(*columns, strict=True)}

    def page(self, location: str, start: int, count: int) -> list[tuple[list[str], str]]:
        """Return values and location of some partitions, in the form that a catalog uses."""
        rows = self.table.slice(start, count)
        texts = [column.fill_null(HIVE_DEFAULT_PARTITION) for column in rows.columns[1:]]
        values = zip(*(column.to_pylist() for column in texts), strict=True)
        folders = [absolute_path(location, folder) for folder in rows.column(0).to_pylist()]
        return [(list(one), folder) for one, folder in zip(values, folders, strict=True)]


def read_partitions(
    stream: pa.Table,
    location: str,
    types: pa.Schema,
    allowed: Callable[[Sequence[str]], list[str]],
) -> ListedPartitions:
    """Check a list of partitions that a caller sends.

    Args:
        stream: `values`, lists of texts, and `location`.
        location: Canonical location of the table.
        types: Partition columns of the table.
        allowed: Returns the canonical form of locations, or refuses one.

    Raises:
        PartitionListError: The partitions contradict each other, the types, or the form.
    """
    values, locations = _columns(stream, len(types))
    canonical = allowed(locations.to_pylist())
    if {is_remote(one) for one in canonical} - {is_remote(location)}:
        odd = next(one for one in canonical if is_remote(one) != is_remote(location))
        raise PartitionListError(
            odd,
            f"the table is at {location!r}, and files on this machine's disks and on remote stores "
            "cannot be read as one table",
        )
    folders = pa.array([path_in(location, one) for one in canonical], pa.string())
    fields = [_FOLDER, *(pa.field(name, pa.string()) for name in types.names)]
    texts = [
        pc.if_else(pc.equal(column, HIVE_DEFAULT_PARTITION), pa.scalar(None, pa.string()), column)
        for column in values
    ]
    table = pa.table([folders, *texts], schema=pa.schema(fields))
    # Sorted so that each folder comes right before everything inside it.
    order = pc.sort_indices(pa.array([one.rstrip("/") + "/" for one in canonical]))
    partition_list = ListedPartitions(table.take(order))
    _refuse_overlaps(location, partition_list)
    _refuse_repeated_values(location, partition_list)
    typed_values(partition_list, types)
    return ListedPartitions(partition_list.table.take(pc.sort_indices(partition_list.folders)))


def typed_values(partition_list: ListedPartitions, types: pa.Schema) -> list[pa.Array]:
    """Return the values of each partition column."""
    columns = []
    for field, column in zip(types, partition_list.table.columns[1:], strict=True):
        # Unlike the names of folders, a catalog's texts are not escaped.
        texts = flat(pc.replace_substring(column, "%", "%25"))
        distinct = pc.unique(pc.drop_null(texts))
        type_ = resolved_type(field.type, distinct)
        if type_ == TIMESTAMP and not len(distinct):
            # The first partitions will be named by the catalog's own engine, without an offset.
            type_ = TIMESTAMP_NTZ
        try:
            columns.append(convert(texts, type_))
        except InvalidValueError as error:
            raise PartitionListError(
                partition_list.folders[error.index].as_py() or ".",
                f"{column[error.index].as_py()!r} is not a {describe_type(type_)}, the declared "
                f"type of partition column {field.name!r}",
            ) from error
    return columns


def partitions_in(
    partition_list: ListedPartitions, paths: pa.ChunkedArray, types: pa.Schema, location: str
) -> Partitions:
    """Return the partition columns of files by the folders that directly contain them."""
    folders = flat(pc.replace_substring_regex(paths, "/?[^/]*$", ""))
    codes = folders.dictionary_encode()
    rows = pc.index_in(codes.dictionary, partition_list.folders)
    if rows.null_count:
        folder = codes.dictionary[pc.index(pc.is_null(rows), True).as_py()].as_py()
        raise LocationError(
            absolute_path(location, folder),
            "lies below the folder of a partition and holds files, which Spark does not read: move "
            "them into the partition's folder, or remove them",
        )
    at = rows.take(codes.indices)
    columns = [column.take(at) for column in typed_values(partition_list, types)]
    fields = [field.with_type(one.type) for field, one in zip(types, columns, strict=True)]
    return Partitions(schema=pa.schema(fields), values=make_struct(columns, fields, len(folders)))


def refuse_unlisted(partition_list: ListedPartitions, folders: pa.ChunkedArray) -> None:
    """Refuse folders of written files that are not a listed partition's folder of the usual name.

    Args:
        partition_list: The table's partitions.
        folders: Folders in the form of paths in inventories.

    Raises:
        PartitionListError: A folder is refused.
    """
    distinct = flat(folders).unique()
    rows = partition_list.table.filter(pc.is_in(partition_list.table.column(0), distinct))
    names = rows.column_names[1:]
    columns = [column.fill_null(HIVE_DEFAULT_PARTITION).to_pylist() for column in rows.columns[1:]]
    usual = [
        "/".join(f"{escape(name)}={escape(text)}" for name, text in zip(names, texts, strict=True))
        for texts in zip(*columns, strict=True)
    ]
    matches = pc.equal(rows.column(0), pa.array(usual, pa.string()))
    for folder in distinct.filter(
        pc.invert(pc.is_in(distinct, flat(rows.column(0).filter(matches))))
    ):
        raise PartitionListError(
            folder.as_py(), "files were written into it, but the table's list has no such partition"
        )


def outside(partition_list: ListedPartitions) -> list[str]:
    """Return the folders outside the table's location."""
    return [folder for folder in partition_list.folders.to_pylist() if is_outside(folder)]


def _columns(stream: pa.Table, count: int) -> tuple[list[pa.Array], pa.Array]:
    """Return a column of texts for each partition column, and the locations."""
    for name in stream.column_names:
        if name not in _SENT or stream.column_names.count(name) > 1:
            reason = "is unknown" if name not in _SENT else "appears twice"
            raise PartitionListError("", f"column {name!r} {reason}: send {', '.join(_SENT)}")
    for name in _SENT:
        if name not in stream.column_names:
            raise PartitionListError("", f"column {name!r} is missing")
    if len(stream) > MAX_PARTITIONS:
        raise PartitionListError(
            "",
            f"it has {len(stream):,} partitions, but a table may have at most {MAX_PARTITIONS:,}",
        )
    if not pt.is_list(stream["values"].type) and not pt.is_large_list(stream["values"].type):
        raise PartitionListError(
            "", f"column 'values' is {stream['values'].type}: send lists of texts"
        )
    try:
        lists = flat(stream["values"].cast(pa.list_(pa.string())))
        locations = flat(stream["location"].cast(pa.string()))
    except pa.ArrowException as error:
        raise PartitionListError("", f"it is not a list of texts: {error}") from error
    if locations.null_count or lists.null_count or lists.flatten().null_count:
        raise PartitionListError(
            "", f"a value or a location is null: send {HIVE_DEFAULT_PARTITION}"
        )
    wrong = pc.indices_nonzero(pc.not_equal(pc.list_value_length(lists), count))
    if len(wrong):
        row = wrong[0].as_py()
        raise PartitionListError(
            locations[row].as_py(),
            f"it has {len(lists[row])} values, but the table has {count} partition columns",
        )
    texts = lists.flatten()
    every = [texts.take(pa.array(np.arange(at, len(texts), count))) for at in range(count)]
    return every, locations


def _refuse_overlaps(location: str, partition_list: ListedPartitions) -> None:
    absolute = [absolute_path(location, folder) for folder in partition_list.folders.to_pylist()]
    for one, other in pairwise(absolute):
        if one == other:
            raise PartitionListError(
                one, "two partitions have this location, but a file can be in only one of them"
            )
        if other.startswith(one.rstrip("/") + "/"):
            raise PartitionListError(other, f"it lies in the folder of another partition, {one!r}")


def _refuse_repeated_values(location: str, partition_list: ListedPartitions) -> None:
    if len(partition_list.by_values()) == len(partition_list):
        return
    values_so_far: set[tuple[str | None, ...]] = set()
    columns = [column.to_pylist() for column in partition_list.table.columns]
    for folder, *values in zip(*columns, strict=True):
        if tuple(values) in values_so_far:
            raise PartitionListError(
                absolute_path(location, folder), "another partition has the same values"
            )
        values_so_far.add(tuple(values))
