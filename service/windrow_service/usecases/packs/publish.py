"""Publish a pack that was made elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow_core.files.access import why_inaccessible
from windrow_core.files.arrays import flat
from windrow_core.files.figures import FIGURE, FIGURES, SPARK_TYPE
from windrow_core.files.packs import KIND_KEY, PACK_KEY, RUN_ID, pack_name
from windrow_core.files.streams import stream_of
from windrow_core.models.packs import NewPack, Pack, PackDescription
from windrow_service.inventory.published.arrow_streams import read_stream
from windrow_service.planner.packs import NO_PACK, Coverage, PackSources
from windrow_service.usecases.packs.coverage import definition_digest
from windrow_service.usecases.packs.errors import InvalidPackError, PacksDisabledError
from windrow_service.usecases.packs.plan import require_packable
from windrow_service.usecases.packs.ports import PackFolder, PackStore
from windrow_service.usecases.ports import Runner
from windrow_service.usecases.snapshots.ports import SnapshotStore
from windrow_service.usecases.snapshots.scans import ManifestReader
from windrow_service.usecases.tables.ports import StoredTable

_AGAIN = "refresh the table, and pack its files again"
_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("mtime_ns", pa.int64(), nullable=False),
        pa.field("etag", pa.string()),
        pa.field("row_count", pa.int64(), nullable=False),
        # SHA-256 of the file's bytes.
        pa.field("digest", pa.binary(32), nullable=False),
        pa.field("inode", pa.uint64()),
        pa.field("changed_ns", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishPack:
    """Record a pack, from when on plans and engines use it.

    Attributes:
        snapshots: The store of snapshots.
        manifests: Reads the files of the current one.
        packs: The store of packs.
        folder: Where packs lie; None if there are to be none.
        runner: Looks at packs in threads.
        max_decoded_bytes: Most memory of the list of sources.
    """

    snapshots: SnapshotStore
    manifests: ManifestReader
    packs: PackStore
    folder: PackFolder | None
    runner: Runner
    max_decoded_bytes: int

    async def __call__(self, name: str, content: bytes | NewPack) -> Pack:
        """Publish a pack.

        Args:
            name: Its table.
            content: The files it was made of, in its order, and its description; as an Arrow stream,
                or as a body in JSON.

        Raises:
            PacksDisabledError: No folder for packs is set.
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet.
            UnpackableTableError: No packs are made of tables like this one.
            InvalidPackError: It is not a pack of the table's files as they are.
            PackingRunOverError: The run that has made it is over.
        """
        folder = self.folder
        if folder is None:
            raise PacksDisabledError
        table, snapshot = await self.snapshots.get(name, None)
        require_packable(table.info, snapshot.partition_schema, folder)
        run, description, rows, figures = await self.runner.run(
            lambda: _read(table, folder, self._stream(content))
        )
        if description.definition != definition_digest(table, snapshot.partition_schema):
            raise InvalidPackError(f"its partition columns are not the table's: {_AGAIN}")
        coverage = Coverage([PackSources(description.digest, rows)])
        is_any = await self.manifests.scan(
            name,
            snapshot,
            lambda: None,
            lambda _, files: bool(np.any(coverage.of(files).pack != NO_PACK)),
        )
        if not is_any:
            raise InvalidPackError(f"none of its files is in the current snapshot: {_AGAIN}")
        kind = {KIND_KEY: description.kind} if description.kind else None
        sources = await self.runner.run(lambda: stream_of(rows.replace_schema_metadata(kind)))
        return await self.packs.add(table, run, description, len(rows), sources, figures)

    def _stream(self, content: bytes | NewPack) -> pa.Table:
        if isinstance(content, bytes):
            return read_stream(content, self.max_decoded_bytes)
        rows = [one.model_dump() | {"digest": bytes.fromhex(one.digest)} for one in content.sources]
        description = content.model_dump_json(exclude={"sources"})
        return pa.Table.from_pylist(rows, _SCHEMA.with_metadata({PACK_KEY: description}))


def _read(
    table: StoredTable, folder: PackFolder, stream: pa.Table
) -> tuple[str, PackDescription, pa.Table, bytes | None]:
    """Return the run that has made a pack, its description, its sources and their figures.

    Raises:
        InvalidPackError: It does not lie where it should, or is not what it says.
    """
    try:
        text = (stream.schema.metadata or {}).get(PACK_KEY, b"")
        description = PackDescription.model_validate_json(text)
        rows = stream.select(_SCHEMA.names).cast(_SCHEMA)
    except (KeyError, ValueError) as error:
        raise InvalidPackError(f"it is not described as it should be: {error}") from error
    own, home = description.path, f"{folder.path}/{folder.home_of(table)}"
    run = own.removeprefix(f"{home}/pack-")[:16]
    if not re.fullmatch(RUN_ID, run) or own != f"{home}/{pack_name(run, description.digest)}":
        name = pack_name("<id of the run>", description.digest)
        raise InvalidPackError(f"it lies at {own!r}, and belongs at '{home}/{name}'")
    _check_sources(rows, description.row_count)
    try:
        digest = folder.digest(own)
    except OSError as error:
        raise InvalidPackError(f"it cannot be read: {why_inaccessible(error)}") from error
    if digest != description.digest:
        raise InvalidPackError("its bytes are not those that were described")
    figures = _figures(stream, rows) if FIGURES in stream.column_names else None
    return run, description, rows, figures


def _figures(stream: pa.Table, rows: pa.Table) -> bytes:
    figures = flat(stream[FIGURES])
    if not pt.is_struct(figures.type) or figures.null_count:
        raise InvalidPackError(f"column {FIGURES!r} of its files is no struct, or has nulls")
    columns = list(figures.type)
    for column in columns:
        if column.type != FIGURE or SPARK_TYPE not in (column.metadata or {}):
            raise InvalidPackError(f"column {column.name!r} has figures of another form")
        counts = pc.struct_field(figures, [column.name, "count"]).fill_null(0)
        if pc.any(pc.or_(pc.less(counts, 0), pc.greater(counts, flat(rows["row_count"])))).as_py():
            raise InvalidPackError(f"column {column.name!r} has more values than a file has rows")
    if len({column.name for column in columns}) < len(columns):
        raise InvalidPackError("it has the figures of a column twice")
    return stream_of(pa.table(figures.flatten(), schema=pa.schema(columns)))


def _check_sources(rows: pa.Table, row_count: int) -> None:
    for field, column in zip(_SCHEMA, rows.columns, strict=True):
        if not field.nullable and column.null_count:
            raise InvalidPackError(f"column {field.name!r} of its files has nulls")
    counts = rows["row_count"].to_numpy()
    if not len(rows) or counts.min() < 0 or counts.max() > row_count:
        raise InvalidPackError("it has no files, or one with an impossible number of rows")
    if pc.count_distinct(rows["path"]).as_py() != len(rows):
        raise InvalidPackError("it has a file twice")
    if int(counts.sum()) != row_count:
        raise InvalidPackError("its files have another number of rows than the pack")
