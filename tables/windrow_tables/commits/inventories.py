"""Inventory rows to publish for Parquet files, made from their footers."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pyarrow as pa

from windrow_core.files.assemble import published_files
from windrow_core.files.chunks import FooterGroup, joined, read_chunk
from windrow_core.files.errors import FileChangedError, LocationError, UnreadableFootersError
from windrow_core.files.listing import FolderEntries, file_table, listed_of
from windrow_core.files.remote import remote_status, scan_of
from windrow_core.files.schema import FileSchema, merge_schemas
from windrow_core.files.schemes import is_remote
from windrow_core.files.status import FileStatus
from windrow_core.files.table_paths import absolute_path
from windrow_core.files.types import spark_type

_FILES_PER_CHUNK = 256
_SHOWN = 10
# On object stores each look is one request.
_THREADS = 32


@dataclass(frozen=True, slots=True)
class FileInventory:
    """Files, and the columns in their footers.

    Attributes:
        files: Rows to publish; the metadata of the Arrow schema lists the columns of all files.
        data: These columns, and a file that holds some of them.
    """

    files: pa.Table
    data: FileSchema

    @property
    def columns(self) -> dict[str, str]:
        """Spark SQL types of the columns, by name."""
        return {field.name: spark_type(field.type) for field in self.data.schema}

    def moved(self, new_paths: Mapping[str, str]) -> FileInventory:
        """Return the inventory after files were moved.

        Args:
            new_paths: The new path of each file that was moved.
        """
        if not new_paths:
            return self
        at = self.files.schema.get_field_index("path")
        paths = [new_paths.get(path, path) for path in self.files["path"].to_pylist()]
        field = self.files.schema.field(at)
        files = self.files.set_column(at, field, pa.array(paths, field.type))
        return replace(self, files=files.sort_by("path"))

    def with_states(self, listing: pa.Table) -> FileInventory:
        """Return the inventory with the states of the same files in a later listing, by path."""
        files = self.files
        for name in listing.column_names:
            at = files.schema.get_field_index(name)
            files = files.set_column(at, files.schema.field(at), listing[name])
        return replace(self, files=files)


def list_files(folder: str) -> pa.Table:
    """Return all data files below a folder, by path, with sizes and times of change.

    Args:
        folder: Absolute path, or URI; on an object store, a folder without files is none.
    """
    entries = FolderEntries()
    scan = scan_of(folder)
    folders = [""]
    for below in folders:
        try:
            scan(folder, below, entries)
        except LocationError as error:
            if not is_remote(folder) or not isinstance(error.__cause__, FileNotFoundError):
                raise
        folders += entries.folders
        entries.folders = []
    return file_table(folder, entries).sort_by("path")


def stat_files(folder: str, paths: Sequence[str]) -> pa.Table:
    """Return the given files that exist, in the form of `list_files`."""
    entries = FolderEntries()
    with ThreadPoolExecutor(_THREADS if is_remote(folder) else 1) as threads:
        by_path = sorted(paths)
        states = threads.map(status_of, (absolute_path(folder, path) for path in by_path))
        for path, status in zip(by_path, states, strict=True):
            if status is None:
                continue
            assert status.mtime_ns is not None
            entries.paths.append(path)
            entries.sizes_bytes.append(status.size_bytes)
            entries.mtimes_ns.append(status.mtime_ns)
            entries.etags.append(status.etag)
    return file_table(folder, entries)


def status_of(path: str) -> FileStatus | None:
    """Return the state of a file at an absolute path or URI; None if there is none."""
    try:
        if is_remote(path):
            return remote_status(path)
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return FileStatus(status.st_size, status.st_mtime_ns)


def take_inventory(
    folder: str,
    listing: pa.Table,
    partitions: Sequence[str],
    columns: Collection[str] | None = None,
) -> FileInventory:
    """Read the footers of listed files.

    Args:
        folder: Absolute path, or URI, of the folder that holds the files.
        listing: Files as `list_files` returns them.
        partitions: Names of the partition columns, which are not read from the files.
        columns: Names of the table's columns; others do not matter. None for all in the files.
    """
    groups = joined(_footers(folder, listing))
    schemas = [group.files for group in groups]
    if columns is not None:
        schemas = [_only(one, {name.lower() for name in columns}) for one in schemas]
    data = merge_schemas(schemas, partitions)
    first = listing["path"][0].as_py() if len(listing) else ""
    return FileInventory(published_files(listing, groups, data), FileSchema(data, first))


def _only(files: FileSchema, names: Collection[str]) -> FileSchema:
    return FileSchema(
        pa.schema([field for field in files.schema if field.name.lower() in names]), files.path
    )


def _footers(folder: str, listing: pa.Table) -> Iterator[FooterGroup]:
    for start in range(0, len(listing), _FILES_PER_CHUNK):
        chunk = read_chunk(folder, start, *listed_of(listing.slice(start, _FILES_PER_CHUNK)))
        if chunk.unreadable:
            raise UnreadableFootersError(tuple(chunk.unreadable[:_SHOWN]))
        if chunk.changed:
            raise FileChangedError(tuple(chunk.changed[:_SHOWN]))
        yield from chunk.groups
