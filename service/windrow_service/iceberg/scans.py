"""Reads what plans of scans need of an Iceberg table, from its own metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor

import pyarrow as pa

from windrow_core.files.arrays import flat
from windrow_service.iceberg.errors import IcebergMetadataError, IcebergVersionError
from windrow_service.iceberg.manifests import (
    ManifestTask,
    read_planned_deletes,
    read_planned_files,
)
from windrow_service.iceberg.metadata import TableState, field_id
from windrow_service.iceberg.metadata_file import metadata_path
from windrow_service.iceberg.own_tables import PlannedManifest, PlannedSnapshot
from windrow_service.iceberg.partition_values import identity_columns
from windrow_service.iceberg.paths import TableFolders
from windrow_service.iceberg.reader import MetadataReader
from windrow_service.iceberg.state import shape_of


def planned_snapshot(
    folders: TableFolders,
    options: Mapping[str, str],
    snapshot_id: int | None,
    executor: Executor,
) -> PlannedSnapshot:
    """Return a snapshot that the newest metadata file names.

    Args:
        folders: Where the table's files may be.
        options: Options of its definition; see `metadata_path`.
        snapshot_id: The snapshot; None for the current one.
        executor: Where metadata is parsed: in processes that may be lost.

    Raises:
        IcebergMetadataError: The metadata cannot be read.
        IcebergVersionError: It names no such snapshot.
    """
    reader = MetadataReader(folders, executor)
    version = None if snapshot_id is None else str(snapshot_id)
    table = reader.metadata(metadata_path(folders, options), version)
    if snapshot_id not in (None, table.snapshot_id):
        # A branch or tag has the name.
        raise IcebergVersionError(table.path, str(snapshot_id), ())
    if table.snapshot_id is None and table.snapshot_count:
        raise IcebergMetadataError(
            table.path,
            "has snapshots, but none of them is the current one: commit to its main branch",
        )
    return PlannedSnapshot(
        path=table.path,
        snapshot_id=table.snapshot_id,
        types={
            field.name: field.type
            for field in table.columns
            if table.current_ids.get(field.name.lower()) == field_id(field)
        },
        identities=table.identities,
        manifests=_manifests(reader, table) if table.snapshot_id is not None else [],
    )


def planned_files(
    folders: TableFolders, manifests: Sequence[PlannedManifest], executor: Executor
) -> list[pa.Table]:
    """Return the files of some manifests, all of data or all of deletes.

    Paths are spelled as in the manifests: those of data files may be named by delete files.

    Args:
        folders: Where the table's files may be.
        manifests: The manifests.
        executor: Where they are parsed: in processes that may be lost.

    Raises:
        IcebergMetadataError: A manifest cannot be read, or names a file outside the folders.
    """
    holds_deletes = any(one.holds_deletes for one in manifests)
    read = read_planned_deletes if holds_deletes else read_planned_files
    tasks = [one.task for one in manifests]
    tables = list(MetadataReader(folders, executor).manifests(tasks, read))
    for task, files in zip(tasks, tables, strict=True):
        folders.relative(flat(files["path"]), task.path)
    return tables if holds_deletes else [_by_partition(files) for files in tables]


def _by_partition(files: pa.Table) -> pa.Table:
    """Return files with each partition's key once."""
    at = files.schema.get_field_index("partition_key")
    return files.set_column(at, "partition_key", files["partition_key"].dictionary_encode())


def _manifests(reader: MetadataReader, table: TableState) -> list[PlannedManifest]:
    if table.manifest_list is None:
        raise IcebergMetadataError(
            table.path,
            f"names the manifests of snapshot {table.snapshot_id} itself, which plans do not read: "
            "write the table in version 2",
        )
    names = {id_: identity_columns([spec], table.columns) for id_, spec in table.specs.items()}
    shapes = {
        id_: shape_of(reader.folders.location, table.columns, some) for id_, some in names.items()
    }
    return [
        PlannedManifest(
            key=(
                one["path"],
                one["length"],
                shapes[one["spec_id"]],
                one["spec_id"],
                table.specs[one["spec_id"]],
                # Lists may state these in different ways, for example after an upgrade to version 3.
                one["holds_deletes"],
                one["sequence_number"],
                one["first_row_id"],
            ),
            holds_deletes=one["holds_deletes"],
            task=ManifestTask(
                path=one["path"],
                length=one["length"],
                spec_id=one["spec_id"],
                spec=table.specs[one["spec_id"]],
                sequence_number=one["sequence_number"],
                snapshot_id=one["snapshot_id"],
                columns=table.columns,
                partition_columns=names[one["spec_id"]],
                first_row_id=one["first_row_id"],
            ),
        )
        for one in reader.manifest_list(table).to_pylist()
    ]
