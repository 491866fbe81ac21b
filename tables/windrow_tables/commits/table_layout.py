"""The layout and columns of a table's files, and whether new files fit them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.arrays import make_struct
from windrow_core.files.assemble import with_named
from windrow_core.files.listing import HIVE_DEFAULT_PARTITION, unescape
from windrow_core.files.partition_values import (
    InvalidValueError,
    convert,
    describe_type,
    infer_type,
    partition_type,
    resolved_type,
    type_with,
)
from windrow_core.files.types import TIMESTAMP
from windrow_core.models import Column, TableInfo, WriteMode
from windrow_tables.commits.errors import StagedFilesError
from windrow_tables.commits.inventories import FileInventory, list_files


def partition_names(table: TableInfo, mode: WriteMode, paths: Sequence[str]) -> list[str]:
    """Return the names of a table's partition columns.

    Args:
        table: The table.
        mode: Mode of a write to the table.
        paths: Files whose folders name the columns, if nothing else does.
    """
    snapshot = table.current_snapshot
    if table.definition.partition_columns is not None:
        return [column.name for column in table.definition.partition_columns]
    if snapshot is not None and snapshot.file_count and mode != "overwrite":
        return [column.name for column in snapshot.partition_columns]
    return _keys(paths[0]) if paths else []


def declared_names(table: TableInfo) -> list[str] | None:
    """Return the names of a table's declared columns; None if its files decide."""
    columns = table.definition.columns
    return None if columns is None else [column.name for column in columns]


def check_layout(table: TableInfo, paths: Sequence[str], partitions: Sequence[str]) -> None:
    """Make sure that staged files lie in folders like those of the table.

    Args:
        table: The table.
        paths: Paths of the staged files.
        partitions: Names of the table's partition columns.
    """
    keys = [name.lower() for name in partitions]
    for path in paths:
        if [key.lower() for key in _keys(path)] != keys:
            folder = "".join(f"{name}=…/" for name in partitions) or "no folder"
            reason = f"the table's files lie in {folder}: partition the data the same way"
            raise StagedFilesError(table.name, path, reason)


def check_values(
    table: TableInfo, mode: WriteMode, paths: Sequence[str], partitions: Sequence[str]
) -> None:
    """Make sure that a refresh can read the partition values of staged files.

    Args:
        table: The table; columns without a declared type take any value.
        mode: Mode of the write.
        paths: Paths of the staged files, in folders like those of the table.
        partitions: Names of the table's partition columns.
    """
    columns = table.definition.partition_columns or []
    types = {column.name.lower(): partition_type(column.type) for column in columns}
    first = {path.rpartition("/")[0]: path for path in reversed(paths)}
    levels = zip(*(folder.split("/") for folder in first), strict=True) if partitions else ()
    for name, level in zip(partitions, levels, strict=False):
        in_definition = types.get(name.lower())
        if in_definition is None:
            continue
        texts = [folder.partition("=")[2] for folder in level]
        values = pa.array(
            [None if text == HIVE_DEFAULT_PARTITION else text for text in texts], pa.string()
        )
        type_ = _settled(in_definition, table, mode, name, pc.unique(pc.drop_null(values)))
        try:
            convert(values, type_)
        except InvalidValueError as error:
            raise StagedFilesError(
                table.name,
                list(first.values())[error.index],
                f"{unescape(texts[error.index])!r} is not a value of partition column {name!r}, "
                f"which is {describe_type(type_)}",
            ) from error


def types_of_partitions(
    table: TableInfo, mode: WriteMode, location: str, paths: Sequence[str], names: Sequence[str]
) -> list[pa.DataType]:
    """Return the types that partition columns have once new files belong to a table.

    Args:
        table: The table.
        mode: Mode of the write.
        location: Absolute path of the table.
        paths: Paths of the new files, in folders like those of the table.
        names: Names of the table's partition columns.
    """
    definition, snapshot = table.definition, table.current_snapshot
    partition_columns = definition.partition_columns
    columns = partition_columns if partition_columns is not None else definition.columns or []
    declared_types = {column.name.lower(): partition_type(column.type) for column in columns}
    snapshot_types: dict[str, pa.DataType | None] = {}
    if mode != "overwrite" and partition_columns is None:
        if snapshot is not None and snapshot.file_count:
            snapshot_types = {
                column.name.lower(): partition_type(column.type)
                for column in snapshot.partition_columns
            }
        else:
            # Nothing has been refreshed yet, so the types depend on what lies there, too.
            present = list_files(location)["path"].to_pylist()
            keys = [name.lower() for name in names]
            like = [path for path in present if [key.lower() for key in _keys(path)] == keys]
            paths = [*paths, *like]
    types = []
    for level, name in enumerate(names):
        in_definition = declared_types.get(name.lower())
        parts = {path.split("/")[level].partition("=")[2] for path in paths}
        texts = pa.array(sorted(parts - {HIVE_DEFAULT_PARTITION}), pa.string())
        earlier = snapshot_types.get(name.lower())
        if in_definition is not None:
            types.append(_settled(in_definition, table, mode, name, texts))
        else:
            types.append(infer_type(texts) if earlier is None else type_with(earlier, texts))
    return types


def _settled(
    type_: pa.DataType, table: TableInfo, mode: WriteMode, name: str, texts: pa.Array
) -> pa.DataType:
    """Return the type of a declared column: its times all have an offset, or none has.

    Args:
        type_: The declared type.
        table: The table.
        mode: Mode of the write.
        name: The column's name.
        texts: Its distinct texts in folders of new files, still escaped; none is null.
    """
    snapshot = table.current_snapshot
    if type_ == TIMESTAMP and mode != "overwrite" and snapshot is not None and snapshot.file_count:
        types = {one.name.lower(): one.type for one in snapshot.partition_columns}
        return partition_type(types.get(name.lower(), "timestamp"))
    return resolved_type(type_, texts)


def is_a_change(table: TableInfo, mode: WriteMode, inventory: FileInventory) -> bool:
    """Return whether new files can be added to a table's snapshot without changing its columns.

    Args:
        table: The table.
        mode: Mode of the write.
        inventory: The new files.
    """
    snapshot = table.current_snapshot
    if snapshot is None or mode == "overwrite":
        return False
    if table.definition.partition_columns is None and not snapshot.file_count:
        return False
    if table.definition.columns is not None or not len(inventory.files):
        return True
    types = {column.name.lower(): column.type for column in snapshot.columns}
    return all(types.get(name.lower()) == type_ for name, type_ in inventory.columns.items())


def in_types_of(columns: Sequence[Column], files: FileInventory) -> pa.Table:
    """Return files of a table, noting columns of other types, which Spark may read differently."""
    types = {column.name.lower(): column.type for column in columns}
    odd = [
        name.lower()
        for name, type_ in files.columns.items()
        if types.get(name.lower(), type_) != type_
    ]
    return with_named(files.files, "grouped_columns", odd).replace_schema_metadata(None)


def with_known_stats(table: TableInfo, inventory: FileInventory) -> pa.Table:
    """Return new files with the statistics of columns whose types are those of the snapshot."""
    assert table.current_snapshot is not None
    by_name = {name.lower(): (name, type_) for name, type_ in inventory.columns.items()}
    stats = inventory.files["stats"].combine_chunks()
    fields, columns = [], []
    for column in table.current_snapshot.columns:
        name, type_ = by_name.get(column.name.lower(), ("", ""))
        at = stats.type.get_field_index(name)
        if at >= 0 and type_ == column.type:
            fields.append(pa.field(column.name, stats.type.field(at).type))
            columns.append(stats.field(at))
    at = inventory.files.schema.get_field_index("stats")
    struct = make_struct(columns, fields, len(stats))
    files = in_types_of(table.current_snapshot.columns, inventory)
    return files.set_column(at, "stats", struct)


def _keys(path: str) -> list[str]:
    return [unescape(part.partition("=")[0]) for part in path.split("/")[:-1]]
