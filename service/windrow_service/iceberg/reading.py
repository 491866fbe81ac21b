"""Reads the files of an Iceberg table at one snapshot, from manifests that were not read before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.arrays import flat, lists_of
from windrow_core.files.rows import inventory_schema, rows_of
from windrow_service.iceberg.deletes import deletes_by_file
from windrow_service.iceberg.errors import IcebergMetadataError
from windrow_service.iceberg.manifests import (
    DELETE_ENTRIES,
    MANIFESTS,
    ManifestTask,
    read_data_manifests,
    read_delete_manifests,
)
from windrow_service.iceberg.metadata import TableState
from windrow_service.iceberg.metadata_file import metadata_path
from windrow_service.iceberg.partition_values import identity_columns
from windrow_service.iceberg.paths import TableFolders
from windrow_service.iceberg.reader import Check, MetadataReader, ReadManifests
from windrow_service.iceberg.state import DELETES, FILES, SnapshotState, shape_of

_NS_PER_MS = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFiles:
    """The result of an earlier refresh of the table.

    Attributes:
        files: The inventory.
        state: The state kept with it; None if the state belongs to another inventory.
    """

    files: pa.Table
    state: SnapshotState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFiles:
    """The files of a table at one snapshot.

    Attributes:
        table: The table, as its metadata file describes it.
        data_schema: The columns whose values are in the files.
        partition_schema: The columns whose values are taken from the partitions.
        files: An inventory.
        deletes: `DELETE_ENTRIES` of the delete files.
        state: The state for the next refresh; None if there is no snapshot yet.
        manifests_read: Number of manifests that were read, without those known before.
    """

    table: TableState
    data_schema: pa.Schema
    partition_schema: pa.Schema
    files: pa.Table
    deletes: pa.Table
    state: SnapshotState | None
    manifests_read: int


def read_table(
    folders: TableFolders,
    options: Mapping[str, str],
    version: str | None,
    earlier: KnownFiles | None,
    executor: Executor,
    check: Check = lambda: None,
) -> SnapshotFiles:
    """Read the files of a table at one snapshot.

    Args:
        folders: Where the table's files may be.
        options: Options of its definition; see `metadata_path`, and `ref`, a branch or tag.
        version: Id of a snapshot, a branch or a tag; by default `ref` of the options.
        earlier: The result of an earlier refresh.
        executor: Where metadata is parsed: in processes that may be lost.
        check: Called from time to time; raises to stop.

    Raises:
        IcebergMetadataError: The metadata cannot be read, or needs something that is not supported.
        IcebergVersionError: There is no such version.
        DuplicateColumnError: Names of columns differ only in case.
    """
    reader = MetadataReader(folders, executor, check)
    table = reader.metadata(metadata_path(folders, options), version or options.get("ref"))
    if table.manifest_list is None:
        schema = inventory_schema(table.columns, pa.schema([]))
        return SnapshotFiles(
            table=table,
            data_schema=table.columns,
            partition_schema=pa.schema([]),
            files=schema.empty_table(),
            deletes=DELETE_ENTRIES.empty_table(),
            state=None,
            manifests_read=0,
        )
    manifests = reader.manifest_list(table).select(MANIFESTS.names)
    return _Assembly(reader, table, earlier).snapshot_files(manifests)


class _Assembly:
    """Combines the files that were known with new ones."""

    def __init__(
        self, reader: MetadataReader, table: TableState, earlier: KnownFiles | None
    ) -> None:
        self._reader = reader
        self._table = table
        self._known = earlier
        self._alias: str | None = None

    def snapshot_files(self, manifests: pa.Table) -> SnapshotFiles:
        table = self._table
        spec_ids = manifests.filter(pc.invert(manifests["holds_deletes"]))["spec_id"]
        specs = [table.specs[id_] for id_ in pc.unique(spec_ids).to_pylist()]
        partition_names = identity_columns(specs, table.columns)
        data_schema = pa.schema(
            [field for field in table.columns if field.name not in partition_names]
        )
        partition_schema = pa.schema([table.columns.field(name) for name in partition_names])
        shape = shape_of(self._reader.folders.location, table.columns, partition_names)
        earlier = self._known
        old = earlier.state if earlier is not None else None
        if old is not None and old.shape != shape:
            old = None
        at = _rows_in(manifests, old.manifests) if old is not None else None
        is_new = np.ones(len(manifests), np.bool_) if at is None else at < 0
        read = [
            self._entries(manifests, rows, partition_names, parse)
            for rows, parse in self._new(manifests, is_new)
        ]
        schema = inventory_schema(data_schema, partition_schema)
        files = self._inventory(read[0], schema)
        deletes = read[1] if read[1] is not None else DELETES.empty_table()
        if old is not None and at is not None and earlier is not None:
            files = pa.concat_tables(
                [self._kept_files(earlier.files, old, at, files.schema), files]
            )
            deletes = pa.concat_tables([_kept(old.deletes, old, at), deletes])
        files = self._sorted(files)
        files = self._with_deletes(files, deletes)
        state = SnapshotState(
            version=str(table.snapshot_id),
            shape=shape,
            manifests=manifests,
            files=files.select(FILES.names).cast(FILES).combine_chunks(),
            deletes=deletes.combine_chunks(),
        )
        return SnapshotFiles(
            table=table,
            data_schema=data_schema,
            partition_schema=partition_schema,
            files=files.select(schema.names).cast(schema).combine_chunks(),
            deletes=deletes.select(DELETE_ENTRIES.names),
            state=state,
            manifests_read=int(is_new.sum()),
        )

    def _new(
        self, manifests: pa.Table, is_new: npt.NDArray[np.bool_]
    ) -> Iterable[tuple[npt.NDArray[np.int64], ReadManifests]]:
        """Yield the new manifests of data files, then of delete files, each with their reader."""
        holds_deletes = np.asarray(manifests["holds_deletes"])
        yield np.flatnonzero(is_new & ~holds_deletes), read_data_manifests
        yield np.flatnonzero(is_new & holds_deletes), read_delete_manifests

    def _entries(
        self,
        manifests: pa.Table,
        rows: npt.NDArray[np.int64],
        partition_names: tuple[str, ...],
        parse: ReadManifests,
    ) -> pa.Table | None:
        """Return the entries of manifests, with paths as in inventories; None without manifests."""
        tasks = [
            ManifestTask(
                path=one["path"],
                length=one["length"],
                spec_id=one["spec_id"],
                spec=self._table.specs[one["spec_id"]],
                sequence_number=one["sequence_number"],
                snapshot_id=one["snapshot_id"],
                columns=self._table.columns,
                partition_columns=partition_names,
            )
            for one in manifests.take(pa.array(rows)).to_pylist()
        ]
        folders, tables = self._reader.folders, []
        at_home = pa.array([f"{self._table.location.rstrip('/')}/metadata/"])
        self._alias = self._alias or folders.alias_in(at_home)
        for row, task, entries in zip(
            rows.tolist(), tasks, self._reader.manifests(tasks, parse), strict=True
        ):
            for name in ("path", "data_path"):
                if name in entries.column_names:
                    paths = folders.relative(flat(entries[name]), task.path)
                    self._alias = self._alias or folders.alias_in(flat(entries[name].drop_null()))
                    entries = entries.set_column(
                        entries.schema.get_field_index(name), entries.schema.field(name), paths
                    )
            number = pa.repeat(pa.scalar(row, pa.int32()), len(entries))
            tables.append(entries.append_column(DELETES.field("manifest"), number))
        return pa.concat_tables(tables) if tables else None

    def _inventory(self, entries: pa.Table | None, schema: pa.Schema) -> pa.Table:
        """Return entries of data files as an inventory, with the columns of `FILES` added."""
        full = pa.unify_schemas([schema, FILES])
        if entries is None:
            return full.empty_table()
        count = len(entries)
        columns = dict(zip(entries.column_names, entries.columns, strict=True))
        columns["mtime_ns"] = self._added_ns(entries)
        columns["grouped_columns"] = lists_of(pa.array([], pa.string()), count)
        return rows_of(columns, full, count)

    def _added_ns(self, entries: pa.Table) -> pa.Array:
        """Return when files were added: by their snapshots, else as known before, else 0."""
        times = self._table.times_ms
        rows = pc.index_in(flat(entries["snapshot_id"]), pa.array(list(times), pa.int64()))
        times_ns = pc.multiply(pa.array(list(times.values()), pa.int64()).take(rows), _NS_PER_MS)
        if self._known is not None and len(self._known.files):
            before = self._known.files
            rows_before = pc.index_in(flat(entries["path"]), flat(before["path"]))
            times_ns = pc.coalesce(times_ns, flat(before["mtime_ns"]).take(rows_before))
        return pc.fill_null(times_ns, 0)

    def _kept_files(
        self, before: pa.Table, old: SnapshotState, at: npt.NDArray[np.int64], schema: pa.Schema
    ) -> pa.Table:
        beside = _kept(old.files.append_column("row", pa.array(np.arange(len(before)))), old, at)
        rows = before.take(beside["row"])
        columns = {name: rows[name] for name in rows.column_names}
        columns |= {name: beside[name] for name in FILES.names}
        return pa.table([columns[name] for name in schema.names], schema=schema)

    def _sorted(self, files: pa.Table) -> pa.Table:
        files = files.combine_chunks()
        files = files.take(pc.sort_indices(files["path"]))
        paths = flat(files["path"])
        if len(paths) > 1 and pc.any(twice := pc.equal(paths[1:], paths[:-1])).as_py():
            path = paths[pc.index(twice, True).as_py()].as_py()
            raise IcebergMetadataError(
                self._table.path,
                f"lists file {path!r} twice, so that its rows would count twice: rewrite them",
            )
        return files

    def _with_deletes(self, files: pa.Table, deletes: pa.Table) -> pa.Table:
        if self._alias is not None and pc.any(pc.equal(deletes["kind"], "positions")).as_py():
            raise IcebergMetadataError(
                self._table.path,
                f"has position delete files, which name data files in {self._alias!r}, and that "
                "leads elsewhere: apply them with rewrite_data_files, or write the table by its "
                "real path",
            )
        lists, counts, size_bytes = deletes_by_file(files, deletes, self._table.path)
        columns = {
            "deletes": lists,
            "delete_count": pa.array(counts.astype(np.int32)),
            "delete_bytes": pa.array(size_bytes),
        }
        for name, column in columns.items():
            index = files.schema.get_field_index(name)
            files = files.set_column(index, files.schema.field(index), column)
        return files


def _rows_in(manifests: pa.Table, others: pa.Table) -> npt.NDArray[np.int64]:
    """Return the row of each manifest in `others`; -1 if it is not there."""
    one, other = (
        pc.binary_join_element_wise(
            flat(table["path"]), flat(table["length"]).cast(pa.string()), "\n"
        )
        for table in (manifests, others)
    )
    return np.asarray(pc.fill_null(pc.index_in(one, other), -1), np.int64)


def _kept(rows: pa.Table, old: SnapshotState, at: npt.NDArray[np.int64]) -> pa.Table:
    """Return the rows whose manifests still exist, with the new numbers of the manifests."""
    numbers = np.full(len(old.manifests), -1, np.int64)
    still = np.flatnonzero(at >= 0)
    numbers[at[still]] = still
    now = numbers[np.asarray(rows["manifest"], np.int64)]
    index = rows.schema.get_field_index("manifest")
    with_numbers = rows.set_column(index, FILES.field("manifest"), pa.array(now, pa.int32()))
    return with_numbers.filter(pa.array(now >= 0))
