"""Reads the files of an Iceberg table's metadata, which are parsed in other processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.access import is_of_system, why_inaccessible
from windrow_core.files.schema import ColumnNames, fields_in
from windrow_service.iceberg.errors import IcebergMetadataError
from windrow_service.iceberg.manifests import ManifestTask, read_manifest_list
from windrow_service.iceberg.metadata import MAX_METADATA_BYTES, TableState, read_metadata
from windrow_service.iceberg.paths import TableFolders, read_bounded
from windrow_service.inventory.footers.isolation import DAMAGES, LostProcessError, damage_in

_Result = TypeVar("_Result")
Check = Callable[[], None]
# Reads the contents of manifests of one partition spec; returns their entries, and how many each has.
ReadManifests: TypeAlias = Callable[
    [Sequence[bytes], Sequence[ManifestTask]], tuple[pa.Table, list[int]]
]

_MAX_LIST_BYTES = 256 * 2**20
_MAX_MANIFEST_BYTES = 512 * 2**20
# Groups of manifests that are parsed at a time, and files that are read for them.
_THREADS, _READERS = 8, 16
# Small manifests that are parsed together, and their bytes: more would save little, and leave other
# processors idle.
_MAX_TOGETHER, _MAX_TOGETHER_BYTES = 16, 2**20
_DAMAGES = (OSError, *DAMAGES)


@dataclass(frozen=True, slots=True)
class MetadataReader:
    """Reads metadata files, and parses them in other processes.

    Attributes:
        folders: Where the table's files may be.
        executor: The other processes.
        check: Called from time to time; raises to stop.
    """

    folders: TableFolders
    executor: Executor
    check: Check = lambda: None

    def metadata(self, path: str, version: str | None) -> TableState:
        """Return the state of the table, as its metadata file describes it."""
        table = self.parsed(
            path, MAX_METADATA_BYTES, read_metadata, path, version, self.folders.max_fields
        )
        self.folders.require_home(table.location, path)
        _require_distinct(list(table.columns), path)
        return table

    def manifest_list(self, table: TableState) -> pa.Table:
        """Return the manifests of the table's snapshot, which it must have."""
        assert table.manifest_list is not None
        path = self.folders.absolute(table.manifest_list, table.path)
        manifests = self.parsed(path, _MAX_LIST_BYTES, read_manifest_list, path)
        for spec_id in pc.unique(manifests["spec_id"]).to_pylist():
            if spec_id not in table.specs:
                raise IcebergMetadataError(path, f"is damaged: partition spec {spec_id} is missing")
        return manifests

    def manifests(self, tasks: Sequence[ManifestTask], read: ReadManifests) -> Iterable[pa.Table]:
        """Yield the entries of each manifest, in order."""

        def some(group: Sequence[ManifestTask]) -> Sequence[pa.Table]:
            self.check()
            if len(group) > 1:
                try:
                    contents = list(readers.map(small, group))
                    return _apart(*self.executor.submit(read, contents, group).result())
                except (IcebergMetadataError, LostProcessError, *_DAMAGES):
                    # Which one is at fault is found one by one.
                    pass
            return [one(task) for task in group]

        def small(task: ManifestTask) -> bytes:
            return read_bounded(self._path_of(task), _MAX_TOGETHER_BYTES)

        def one(task: ManifestTask) -> pa.Table:
            self.check()
            path = self._path_of(task)
            return self.parsed(path, _MAX_MANIFEST_BYTES, _read_one, read, task)

        with ThreadPoolExecutor(_READERS) as readers, ThreadPoolExecutor(_THREADS) as threads:
            for tables in threads.map(some, list(_groups(tasks))):
                self.check()
                yield from tables

    def _path_of(self, task: ManifestTask) -> str:
        return self.folders.absolute(task.path, "the list of manifests")

    def parsed(
        self, path: str, max_bytes: int, parse: Callable[..., _Result], *arguments: object
    ) -> _Result:
        """Return what `parse`, in another process, makes of a file's content.

        Args:
            path: The file.
            max_bytes: Most bytes that it may have.
            parse: A function of a module, which gets the content and the other arguments.
            arguments: These.

        Raises:
            IcebergMetadataError: The file cannot be read, or is damaged.
        """
        content = read_bounded(path, max_bytes)
        try:
            return self.executor.submit(parse, content, *arguments).result()
        except LostProcessError as error:
            damage = f"is damaged, or too large ({error.last_words}): restore it"
            raise IcebergMetadataError(path, error.why(damage)) from error
        except _DAMAGES as error:
            if is_of_system(error):
                why = f"cannot be read: {why_inaccessible(error)}"
                raise IcebergMetadataError(path, why) from error
            raise IcebergMetadataError(
                path, f"is damaged ({damage_in(error)}): restore it"
            ) from error


def _groups(tasks: Sequence[ManifestTask]) -> Iterable[Sequence[ManifestTask]]:
    """Yield runs of manifests that are parsed together: of one partition spec, few and small."""
    group: list[ManifestTask] = []
    size_bytes = 0
    for task in tasks:
        size_bytes += task.length
        if group and (
            len(group) == _MAX_TOGETHER
            or size_bytes > _MAX_TOGETHER_BYTES
            or task.spec_id != group[0].spec_id
        ):
            yield group
            group, size_bytes = [], task.length
        group.append(task)
    if group:
        yield group


def _apart(entries: pa.Table, counts: Sequence[int]) -> Sequence[pa.Table]:
    """Return the entries of each manifest."""
    ends = np.cumsum(counts).tolist()
    # Copied, because a slice would keep those of the other manifests in memory.
    return [
        entries.take(pa.array(range(end - count, end), pa.int64()))
        for end, count in zip(ends, counts, strict=True)
    ]


def _read_one(content: bytes, read: ReadManifests, task: ManifestTask) -> pa.Table:
    entries, _ = read([content], [task])
    return entries


def _require_distinct(fields: Sequence[pa.Field], path: str) -> None:
    """Refuse names that differ only in case, at any depth."""
    ColumnNames(pa.schema(fields), path)
    for field in fields:
        _require_distinct(fields_in(field.type), path)
