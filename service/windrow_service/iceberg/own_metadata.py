"""The metadata of an Iceberg table as engines get it: the table's own, for readers only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from typing import Any

import pyarrow as pa

from windrow_service.iceberg.errors import IcebergMetadataError
from windrow_service.iceberg.metadata import (
    MAX_METADATA_BYTES,
    TableState,
    parsed_metadata,
    read_metadata,
)
from windrow_service.iceberg.metadata_file import metadata_path
from windrow_service.iceberg.own_tables import OwnMetadata
from windrow_service.iceberg.paths import TableFolders
from windrow_service.iceberg.reader import MetadataReader

# Only writers have a use for them, and some would put files where they say.
_OF_WRITERS = "write."
_BY_SNAPSHOT = ("snapshots", "snapshot-log", "statistics", "partition-statistics")


def own_metadata(
    folders: TableFolders,
    options: Mapping[str, str],
    executor: Executor,
    properties: Mapping[str, str],
    *,
    all_snapshots: bool,
) -> OwnMetadata:
    """Return what readers get of a table's current metadata file.

    Args:
        folders: Where the table's files may be.
        options: Options of its definition; see `metadata_path`.
        executor: Where metadata is parsed: in processes that may be lost.
        properties: Properties that replace those for writers.
        all_snapshots: Whether to name all snapshots, not only those of branches and tags.

    Raises:
        IcebergMetadataError: The metadata cannot be read, or names a file outside the folders.
    """
    path = metadata_path(folders, options)
    reader = MetadataReader(folders, executor)
    content, table, paths = reader.parsed(
        path,
        MAX_METADATA_BYTES,
        _for_readers,
        path,
        dict(properties),
        all_snapshots,
        folders.max_fields,
    )
    folders.require_home(table.location, path)
    folders.relative(pa.array(paths, pa.string()), path)
    return OwnMetadata(path, content, table.identities)


def _for_readers(
    content: bytes, path: str, properties: dict[str, str], all_snapshots: bool, max_fields: int
) -> tuple[bytes, TableState, list[str]]:
    """Return metadata for readers, the table's state, and the paths of all files it names."""
    # What the coordinator itself would not read, it does not hand over.
    table = read_metadata(content, path, None, max_fields)
    metadata = parsed_metadata(content, path, max_fields)
    if not all_snapshots:
        metadata |= _of_refs(metadata)
    metadata["snapshot-log"] = _log_to_current(metadata, path)
    own = metadata.get("properties") or {}
    metadata["properties"] = {
        **{name: value for name, value in own.items() if not name.startswith(_OF_WRITERS)},
        **properties,
    }
    return json.dumps(metadata, separators=(",", ":")).encode(), table, list(_paths(metadata))


def _of_refs(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what metadata says about snapshots, for those of branches and tags."""
    refs = metadata.get("refs") or {}
    ids = {ref["snapshot-id"] for ref in refs.values()} | {metadata.get("current-snapshot-id")}
    return {
        name: [one for one in metadata[name] if one["snapshot-id"] in ids]
        for name in _BY_SNAPSHOT
        if metadata.get(name)
    }


def _log_to_current(metadata: Mapping[str, Any], path: str) -> list[dict[str, int]]:
    """Return the log of snapshots, whose last one is the current one.

    DuckDB 1.5 reads the last snapshot of the log, or the newest of all if there is no log, whichever
    is the current one. The specification leaves the log to writers.
    """
    log: list[dict[str, int]] = list(metadata.get("snapshot-log") or ())
    snapshots = {one["snapshot-id"]: one for one in metadata.get("snapshots") or ()}
    current = snapshots.get(metadata.get("current-snapshot-id"))
    if current is None:
        if snapshots:
            raise IcebergMetadataError(
                path,
                "has snapshots, but none of them is the current one, and some engines would read the "
                "newest: commit to the table's main branch",
            )
        return log
    if not log:
        one: Mapping[str, Any] | None = current
        while one is not None and len(log) < len(snapshots):
            log.insert(0, {name: one[name] for name in ("snapshot-id", "timestamp-ms")})
            one = snapshots.get(one.get("parent-snapshot-id"))
    elif log[-1]["snapshot-id"] != current["snapshot-id"]:
        at = max(metadata["last-updated-ms"], log[-1]["timestamp-ms"])
        log.append({"snapshot-id": current["snapshot-id"], "timestamp-ms": at})
    return log


def _paths(metadata: Mapping[str, Any]) -> Iterator[str]:
    for snapshot in metadata.get("snapshots") or ():
        if "manifest-list" in snapshot:
            yield snapshot["manifest-list"]
        yield from snapshot.get("manifests") or ()
    for name in ("statistics", "partition-statistics"):
        for file in metadata.get(name) or ():
            yield file["statistics-path"]
    for earlier in metadata.get("metadata-log") or ():
        yield earlier["metadata-file"]
