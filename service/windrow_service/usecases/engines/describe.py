"""Describe a table and its snapshots as an Iceberg table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from cachetools import LRUCache

from windrow_core.files.access import why_unwritable
from windrow_core.files.errors import InventoryError
from windrow_core.models import SnapshotInfo
from windrow_service.engines.columns import TableColumns, UnfitColumnError, joined_trees
from windrow_service.engines.manifests import (
    EDITION,
    ManifestFigures,
    UnfitFileError,
    manifest_name,
)
from windrow_service.engines.metadata import (
    READ_ONLY,
    SnapshotRecord,
    beside_the_last,
    first_of_each,
    in_ms,
    inner_names,
    joined_spellings,
    table_metadata,
    table_uuid,
)
from windrow_service.inventory.manifests.encoding import Manifest
from windrow_service.usecases.engines.errors import (
    MetadataUnavailableError,
    UnfitScanError,
    UnfitTableError,
)
from windrow_service.usecases.engines.fitness import unfitness
from windrow_service.usecases.engines.manifest_files import ManifestFiles, live_files
from windrow_service.usecases.engines.packed_files import (
    HeldFiles,
    ListedPacks,
    manifest_beside,
    write_packs,
)
from windrow_service.usecases.engines.ports import MetadataFiles, TableFiles
from windrow_service.usecases.engines.records import needed_names, record_name, totals_of
from windrow_service.usecases.errors import UseCaseError
from windrow_service.usecases.names import Names
from windrow_service.usecases.packs.coverage import TablePacks, UsablePacks
from windrow_service.usecases.ports import Runner
from windrow_service.usecases.snapshots.errors import (
    RefreshNotFoundError,
    SnapshotNotFoundError,
    TableNotRefreshedError,
)
from windrow_service.usecases.snapshots.ports import RefreshStore, Snapshot, SnapshotStore, Turns
from windrow_service.usecases.tables.errors import TableNotFoundError
from windrow_service.usecases.tables.ports import StoredTable, TableStore

# Bodies of Windrow's manifests that are in memory together.
_BODIES_AT_A_TIME = 4
_MOST_REMEMBERED = 10_000
_TABLES_AT_A_TIME = 1_000
_EVERY = Names(every=True)
# Files are removed only if nobody has needed them for so long: copies of the database may share the
# folder, and show by their rounds every ten minutes what they need.
_LEAST_AGE = timedelta(hours=1)
# The same of the folder of a table that this database does not know; a copy of it may.
_UNKNOWN_AGE = timedelta(days=1)
_T = TypeVar("_T")
# Tables that are described again when they change.
_MOST_FOLLOWED = 1_000


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table, described as an Iceberg table.

    Attributes:
        metadata: Its metadata, as JSON.
        metadata_path: Where engines find it.
        version: A text that is the same for the same metadata.
        partition: The columns by whose own values files are partitioned.
        unfit: For each reader that would fail on a file, or read other values, the file and why.
        for_duckdb: The metadata for DuckDB, if it needs another one.
    """

    metadata: bytes
    metadata_path: str
    version: str
    partition: pa.Schema
    unfit: Mapping[str, str] = field(default_factory=dict)
    for_duckdb: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTable:
    """Describes tables of Parquet files; what was made for a snapshot is kept as long as it is.

    Iceberg tables have metadata of their own, which engines get.

    Attributes:
        tables: The store of tables.
        snapshots: The store of snapshots.
        refreshes: The store of refreshes.
        files: Where engines find the metadata.
        table_files: What tables have themselves.
        packs: Finds packs that may stand for files of tables.
        runner: Makes it in threads.
        turns: Lets callers wait for others that make the same.
        max_snapshots: Most snapshots of a table.
        keep_for: How long files stay that are no longer needed, at least an hour.
    """

    tables: TableStore
    snapshots: SnapshotStore
    refreshes: RefreshStore
    files: MetadataFiles
    table_files: TableFiles
    packs: TablePacks
    runner: Runner
    turns: Turns
    max_snapshots: int
    keep_for: timedelta
    _records: LRUCache[tuple[str, str], SnapshotRecord] = field(
        default_factory=lambda: LRUCache(_MOST_REMEMBERED)
    )
    # The newest snapshot that was described of each table that engines have asked for here.
    _newest: LRUCache[str, int] = field(default_factory=lambda: LRUCache(_MOST_FOLLOWED))

    @property
    def manifests(self) -> ManifestFiles:
        """The manifests that are made."""
        return ManifestFiles(self.files, self.table_files, self._min_age_s)

    @property
    def _min_age_s(self) -> float:
        return max(self.keep_for, _LEAST_AGE).total_seconds()

    async def run(self, work: Callable[[], _T]) -> _T:
        """Do work with the metadata in a thread.

        Raises:
            MetadataUnavailableError: The system refuses it, such as a disk that is full.
        """
        try:
            return await self.runner.run(work)
        except OSError as error:
            raise MetadataUnavailableError(why_unwritable(error)) from error

    async def __call__(self, name: str, *, all_snapshots: bool) -> TableDescription:
        """Describe a table.

        Args:
            name: The table.
            all_snapshots: Whether to name all snapshots, not only the current one.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet.
            UnfitTableError: Other engines would read the table wrongly, or not at all.
            MetadataUnavailableError: The folder of the metadata cannot be used.
            BusyError: Too much is waiting already.
        """
        table, current = await self._current(name)
        self.require_fit(table)
        if table.info.definition.kind.has_iceberg_metadata:
            return await self._own(table, all_snapshots=all_snapshots)
        async with self.turns.take(name):
            packs = await self.packs(table, current)
            record = await self._record(table, current, packs)
            older = await self._older(table, current.info) if all_snapshots else []
            self._newest[name] = current.info.snapshot_id
            return await self.run(lambda: self.description_of(table, current, [*older, record]))

    async def _current(self, name: str) -> tuple[StoredTable, Snapshot]:
        """Return a table and its current snapshot.

        Raises:
            UnfitTableError: It has none, because its refresh has failed.
        """
        try:
            return await self.snapshots.get(name, None)
        except TableNotRefreshedError as error:
            with suppress(RefreshNotFoundError):
                problem = (await self.refreshes.get(name)).status.problem
                if problem is not None:
                    why = f"it has no snapshot, since its last refresh failed: {problem['detail']}"
                    raise UnfitTableError(name, why) from error
            raise

    async def snapshot(self, name: str, snapshot_id: int | None) -> tuple[StoredTable, Snapshot]:
        """Return a snapshot of which other engines know, after describing it.

        Args:
            name: The table.
            snapshot_id: The snapshot; None for the current one.

        Raises:
            SnapshotNotFoundError: The table has no such snapshot, or its description leaves it out.
            UnfitScanError: The table has metadata of its own.

        And what `__call__` raises.
        """
        if (await self.tables.get(name)).info.definition.kind.has_iceberg_metadata:
            raise UnfitScanError(name, "its manifests are its own")
        if snapshot_id is None:
            table, snapshot = await self._current(name)
        else:
            table, snapshot = await self.snapshots.get(name, snapshot_id)
        self.require_fit(table)
        record = await self.record_of(table, snapshot)
        if snapshot_id is not None:
            _, current = await self.snapshots.get(name, None)
            newest = await self.record_of(table, current)
            if len(beside_the_last([record, newest])) < 2:
                raise SnapshotNotFoundError(name, snapshot_id)
        return table, snapshot

    async def _own(self, table: StoredTable, *, all_snapshots: bool) -> TableDescription:
        definition = table.info.definition

        def work() -> TableDescription:
            own = self.table_files.own_metadata(definition, READ_ONLY, all_snapshots=all_snapshots)
            version = hashlib.sha256(own.content).hexdigest()[:32]
            return TableDescription(own.content, own.path, version, own.identities)

        try:
            return await self.runner.run(work)
        except InventoryError as error:
            raise UnfitTableError(table.info.name, str(error)) from error

    async def record_of(self, table: StoredTable, snapshot: Snapshot) -> SnapshotRecord:
        """Return what the metadata says about a snapshot without packs, after describing it."""
        record = await self._known(table, snapshot.info)
        if record is None:
            async with self.turns.take(table.info.name):
                record = await self._record(table, snapshot)
        return record

    def require_fit(self, table: StoredTable) -> None:
        """Refuse a table that other engines cannot read, as far as its definition tells."""
        definition = table.info.definition
        reason = unfitness(definition)
        folder = self.files.path("", "").rstrip("/") + "/"
        if reason is None and folder.startswith(definition.location.rstrip("/") + "/"):
            reason = "the folder of the metadata is its own, or lies below it: set another one"
        if reason is not None:
            raise UnfitTableError(table.info.name, reason)

    async def follow(self) -> None:
        """Describe new snapshots of tables that engines have asked for, so that none of them waits."""
        if not self._newest:
            return
        names = Names(exact=frozenset(self._newest))
        for table in await self.tables.page("", _MOST_FOLLOWED, names):
            name, snapshot = table.info.name, table.info.current_snapshot
            if snapshot is None or self._newest.get(name) == snapshot.snapshot_id:
                continue
            try:
                await self(name, all_snapshots=True)
            except UnfitTableError:
                # Until it changes again, somebody who asks is told why.
                self._newest[name] = snapshot.snapshot_id
            except UseCaseError:
                # The next call tries again.
                continue

    async def clean(self) -> None:
        """Remove what no snapshot needs any more, of all tables.

        What others keep in the same folder stays, and so does what a copy of this database needs.
        """
        left = set(await self.run(self.files.tables))
        after = ""
        while left:
            page = await self.tables.page(after, _TABLES_AT_A_TIME, _EVERY)
            for table in page:
                folder = table_uuid(table.info, table.table_id)
                if folder in left:
                    left.remove(folder)
                    await self._clean(table, folder, self._min_age_s)
            if not page.more:
                break
            after = page[-1].info.name
        for folder in left:
            await self.run(partial(self.files.remove, folder, _UNKNOWN_AGE.total_seconds()))

    async def forget_old(self, table: StoredTable) -> int:
        """Remove at once what no snapshot of a table needs any more; return how many files."""
        folder = table_uuid(table.info, table.table_id)
        is_there = folder in await self.run(self.files.tables)
        return await self._clean(table, folder, 0.0) if is_there else 0

    async def _clean(self, table: StoredTable, folder: str, min_age_s: float) -> int:
        infos = await self.snapshots.newest(table.info.name, self.max_snapshots)
        records = [record_name(info) for info in infos]
        with suppress(TableNotRefreshedError, TableNotFoundError):
            _, current = await self.snapshots.get(table.info.name, None)
            packs = await self.packs(table, current)
            records += [record_name(current.info, packs)] if packs is not None else []

        def work() -> int:
            names: set[str] = set()
            for record in records:
                text = self.files.read(folder, f"{record}.json")
                if text is not None:
                    names |= needed_names(record, SnapshotRecord.of_text(text))
            for info in infos:
                # Replicas of the version before name them, and do not look whether they are there.
                names |= {f"snap-{info.snapshot_id}{end}" for end in (".avro", f"-{EDITION}.json")}
            return self.files.clean(folder, names, min_age_s)

        return await self.run(work)

    def description_of(
        self, table: StoredTable, current: Snapshot, records: Sequence[SnapshotRecord]
    ) -> TableDescription:
        """Write the metadata of a table with some snapshots, oldest first. Blocking."""
        inner, for_duckdb = inner_names(records), None
        metadata = table_metadata(table.info, table.table_id, records, inner)
        content = _as_json(metadata)
        if inner.has_groups:
            inner = replace(inner, with_groups=True)
            for_duckdb = _as_json(table_metadata(table.info, table.table_id, records, inner))
        version = hashlib.sha256(content).hexdigest()[:32]
        folder, name = metadata["table-uuid"], f"{version}.metadata.json"
        if not self.files.use(folder, [name], 0.0):
            self.files.write(folder, name, content)
        return TableDescription(
            metadata=content,
            metadata_path=self.files.path(folder, name),
            version=version,
            partition=current.partition_schema,
            unfit=first_of_each([one.unfit for one in reversed(records)]),
            for_duckdb=for_duckdb,
        )

    async def _older(self, table: StoredTable, current: SnapshotInfo) -> list[SnapshotRecord]:
        """Return the older snapshots that can be described, oldest first."""
        infos = await self.snapshots.newest(table.info.name, self.max_snapshots)
        records = []
        for info in reversed(infos):
            if info.snapshot_id >= current.snapshot_id:
                continue
            record = await self._known(table, info)
            if record is None:
                # It may have been dropped meanwhile.
                with suppress(SnapshotNotFoundError, UnfitTableError):
                    _, snapshot = await self.snapshots.get(table.info.name, info.snapshot_id)
                    record = await self._record(table, snapshot)
            if record is not None:
                records.append(record)
        return records

    async def _known(
        self, table: StoredTable, info: SnapshotInfo, packs: UsablePacks | None = None
    ) -> SnapshotRecord | None:
        """Return what was said about a snapshot before, if all the files that it names are there."""
        key = table_uuid(table.info, table.table_id), record_name(info, packs)
        in_memory = self._records.get(key)

        def work() -> SnapshotRecord | None:
            folder, name = key
            text = None if in_memory is not None else self.files.read(folder, f"{name}.json")
            one = in_memory if text is None else SnapshotRecord.of_text(text)
            if one is None or not self.files.use(folder, needed_names(name, one), self._min_age_s):
                return None
            return one

        record = await self.run(work)
        if record is not None:
            self._records[key] = record
        return record

    async def _record(
        self, table: StoredTable, snapshot: Snapshot, packs: UsablePacks | None = None
    ) -> SnapshotRecord:
        record = await self._known(table, snapshot.info, packs)
        return record if record is not None else await self._make(table, snapshot, packs)

    async def _make(
        self, table: StoredTable, snapshot: Snapshot, packs: UsablePacks | None
    ) -> SnapshotRecord:
        folder, name = table_uuid(table.info, table.table_id), record_name(snapshot.info, packs)
        in_packs = None if packs is None else HeldFiles(packs)
        of_packs: ListedPacks | None = None
        try:
            columns = TableColumns.of(snapshot.data_schema, snapshot.partition_schema)
            manifests = await self._manifests(table, folder, snapshot, columns, in_packs)
            packs_in_use = await self.run(in_packs.packs) if in_packs is not None else []
            if packs_in_use:
                of_packs = await self.run(
                    lambda: write_packs(self.files, folder, packs_in_use, columns)
                )
                manifests.append((of_packs.name, of_packs.figures))
        except (InventoryError, UnfitColumnError, UnfitFileError) as error:
            raise UnfitTableError(table.info.name, str(error)) from error

        def write() -> SnapshotRecord:
            info = snapshot.info
            positions = of_packs.positions if of_packs is not None else ()
            content = self.manifests.list_of(
                folder, info.snapshot_id, columns, manifests, positions
            )
            path = self.files.write(folder, f"{name}.avro", content)
            record = SnapshotRecord(
                snapshot_id=info.snapshot_id,
                timestamp_ms=in_ms(info.created_at),
                schema=columns.as_schema(),
                spec=columns.as_spec(),
                last_id=columns.last_id,
                spellings=joined_spellings([one.spellings for _, one in manifests]),
                manifest_list=path,
                manifests=[one for one, _ in manifests if of_packs is None or one != of_packs.name],
                vectors=[one for one, figures in manifests if figures.vectors is not None],
                figures=totals_of(info, [one for _, one in manifests], positions),
                names=dict(columns.names),
                within=joined_trees([one.within for _, one in manifests]),
                inner=joined_spellings([one.inner for _, one in manifests]),
                unfit=first_of_each([one.unfit for _, one in manifests]),
                of_packs=list(of_packs.names) if of_packs is not None else [],
            )
            self.files.write(folder, f"{name}.json", record.to_text().encode())
            return record

        record = await self.run(write)
        self._records[folder, name] = record
        return record

    async def _manifests(
        self,
        table: StoredTable,
        folder: str,
        snapshot: Snapshot,
        columns: TableColumns,
        in_packs: HeldFiles | None,
    ) -> list[tuple[str, ManifestFigures]]:
        location = table.info.definition.location
        names = [manifest_name(one, location, columns) for one in snapshot.manifests]
        if in_packs is not None:
            return await self._manifests_beside(table, folder, snapshot, columns, names, in_packs)

        def at_hand() -> dict[str, ManifestFigures]:
            all_figures = {name: self.manifests.figures_at_hand(folder, name) for name in names}
            return {name: one for name, one in all_figures.items() if one is not None}

        figures = await self.run(at_hand)
        missing = [
            (name, one)
            for name, one in zip(names, snapshot.manifests, strict=True)
            if name not in figures
        ]
        for begin in range(0, len(missing), _BODIES_AT_A_TIME):
            some = missing[begin : begin + _BODIES_AT_A_TIME]
            bodies = await self.snapshots.bodies(
                table.info.name, snapshot, [manifest for _, manifest in some]
            )
            for (name, manifest), body in zip(some, bodies, strict=True):

                def work(
                    name: str = name, manifest: Manifest = manifest, body: bytes = body
                ) -> ManifestFigures:
                    return self.manifests.write(table, name, live_files(manifest, body), columns)

                figures[name] = await self.run(work)
        return [(name, figures[name]) for name in names]

    async def _manifests_beside(
        self,
        table: StoredTable,
        folder: str,
        snapshot: Snapshot,
        columns: TableColumns,
        names: Sequence[str],
        in_packs: HeldFiles,
    ) -> list[tuple[str, ManifestFigures]]:
        """Return the manifests of the files for which no packs stand."""
        manifests = []
        for whole_name, manifest in zip(names, snapshot.manifests, strict=True):
            (body,) = await self.snapshots.bodies(table.info.name, snapshot, [manifest])
            beside = (whole_name, manifest, body, in_packs)
            work = partial(manifest_beside, self.manifests, table, columns, *beside)
            manifests.append(await self.run(work))
        return [one for one in manifests if one is not None]


def _as_json(metadata: Mapping[str, Any]) -> bytes:
    return json.dumps(metadata, separators=(",", ":")).encode()
