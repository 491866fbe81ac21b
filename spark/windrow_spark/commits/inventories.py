"""Inventory rows to publish for local Parquet files, made from their footers."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from windrow_core.files.assemble import published_files
from windrow_core.files.chunks import FooterGroup, joined, read_chunk
from windrow_core.files.errors import FileChangedError, UnreadableFootersError
from windrow_core.files.listing import FolderEntries, file_table, listed_of, scan_local_folder
from windrow_core.files.schema import FileSchema, merge_schemas
from windrow_core.files.types import spark_type

_FILES_PER_CHUNK = 256
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class LocalInventory:
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

    def moved(self, new_paths: Mapping[str, str]) -> LocalInventory:
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


def list_local(folder: str) -> pa.Table:
    """Return all data files below a folder, by path, with sizes and times of change."""
    entries = FolderEntries()
    folders = [""]
    for below in folders:
        scan_local_folder(folder, below, entries)
        folders += entries.folders
        entries.folders = []
    return file_table(folder, entries).sort_by("path")


def stat_local(folder: str, paths: Sequence[str]) -> pa.Table:
    """Return the given files that exist, in the form of `list_local`."""
    entries = FolderEntries()
    for path in sorted(paths):
        try:
            status = os.stat(os.path.join(folder, path))
        except FileNotFoundError:
            continue
        entries.paths.append(path)
        entries.sizes_bytes.append(status.st_size)
        entries.mtimes_ns.append(status.st_mtime_ns)
    return file_table(folder, entries)


def take_local(
    folder: str,
    listing: pa.Table,
    partitions: Sequence[str],
    columns: Collection[str] | None = None,
) -> LocalInventory:
    """Read the footers of listed files.

    Args:
        folder: Absolute path of the folder that holds the files.
        listing: Files as `list_local` returns them.
        partitions: Names of the partition columns, which are not read from the files.
        columns: Names of the table's columns; others do not matter. None for all in the files.
    """
    groups = joined(_footers(folder, listing))
    schemas = [group.files for group in groups]
    if columns is not None:
        schemas = [_only(one, {name.lower() for name in columns}) for one in schemas]
    data = merge_schemas(schemas, partitions)
    first = listing["path"][0].as_py() if len(listing) else ""
    return LocalInventory(published_files(listing, groups, data), FileSchema(data, first))


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
