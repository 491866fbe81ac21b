"""Describe the files of a table that a condition on its partition columns chooses.

Some engines decode all manifests of a snapshot for each query. They get those of a part of the table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windrow_core.files.errors import InventoryError
from windrow_service.engines.columns import TableColumns
from windrow_service.engines.manifests import ManifestFigures
from windrow_service.engines.metadata import SnapshotRecord, table_uuid
from windrow_service.filters.limits import FilterLimits
from windrow_service.filters.reading import read_filter
from windrow_service.inventory.manifests.encoding import Manifest
from windrow_service.planner.pruning.prune import prune
from windrow_service.usecases.engines.describe import DescribeTable, TableDescription
from windrow_service.usecases.engines.errors import UnfitPartError, UnfitScanError, UnfitTableError
from windrow_service.usecases.engines.manifest_files import live_files
from windrow_service.usecases.ports import Runner
from windrow_service.usecases.snapshots.ports import Snapshot
from windrow_service.usecases.snapshots.scans import (
    SnapshotScan,
    columns_beside_partitions,
    types_of,
)
from windrow_service.usecases.tables.ports import StoredTable

_NO_PARTS = (
    "its metadata is its own, of which no parts are made: name the table without a condition"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribePart:
    """Describes the current snapshot of tables without the files that a condition rules out.

    Attributes:
        describe: Describes whole tables; manifests of which all files are wanted serve both.
        runner: Makes the other manifests in threads.
        filter_limits: Limits of conditions.
    """

    describe: DescribeTable
    runner: Runner
    filter_limits: FilterLimits

    async def __call__(self, name: str, condition: str) -> TableDescription:
        """Describe a part of a table.

        Args:
            name: The table.
            condition: A condition on its partition columns, as SQL.

        Raises:
            UnfitPartError: The condition names a column whose values are in the files.
            InvalidFilterError: It is too large, cannot be parsed, or names an unknown column.

        And what `DescribeTable` raises.
        """
        try:
            table, snapshot = await self.describe.snapshot(name, None)
        except UnfitScanError as error:
            raise UnfitTableError(name, _NO_PARTS) from error
        whole = await self.describe.record_of(table, snapshot)
        expression = await self.runner.run(
            lambda: read_filter(condition, types_of(snapshot), self.filter_limits)
        )
        others = columns_beside_partitions(expression, snapshot)
        if others:
            raise UnfitPartError(name, others[0])
        scan = await self.runner.run(lambda: SnapshotScan.of(snapshot, expression))
        pieces = []
        for position, manifest in zip(scan.positions, scan.manifests, strict=True):
            (body,) = await self.describe.snapshots.bodies(name, snapshot, [manifest])

            def work(
                manifest: Manifest = manifest,
                body: bytes = body,
                whole_name: str = whole.manifests[position],
            ) -> tuple[str, ManifestFigures] | None:
                files = live_files(manifest, body)
                # The values of partition columns are known, so that conditions on them are exact.
                survives = prune(files, expression).survives
                if not survives.any():
                    return None
                if survives.all():
                    return whole_name, self._figures(table, snapshot, whole_name, files)
                content = whole_name.encode() + np.packbits(survives).tobytes()
                name = hashlib.sha256(content).hexdigest()[:40]
                files = files.filter(pa.array(survives))
                return name, self._figures(table, snapshot, name, files)

            try:
                pieces.append(await self.describe.run(work))
            except InventoryError as error:
                # A file has changed since the whole table was described.
                raise UnfitTableError(name, str(error)) from error
        some = [piece for piece in pieces if piece is not None]

        def write() -> TableDescription:
            return self.describe.description_of(
                table, snapshot, [self._record(table, snapshot, whole, some)]
            )

        return await self.describe.run(write)

    def _figures(
        self, table: StoredTable, snapshot: Snapshot, name: str, files: pa.Table
    ) -> ManifestFigures:
        """Return the figures of a manifest, which is made if it is not at hand."""
        folder = table_uuid(table.info, table.table_id)
        figures = self.describe.manifests.figures_at_hand(folder, name)
        if figures is None:
            columns = TableColumns.of(snapshot.data_schema, snapshot.partition_schema)
            figures = self.describe.manifests.write(table, name, files, columns)
        return figures

    def _record(
        self,
        table: StoredTable,
        snapshot: Snapshot,
        whole: SnapshotRecord,
        pieces: Sequence[tuple[str, ManifestFigures]],
    ) -> SnapshotRecord:
        """Return what the metadata says about the part, after writing its list of manifests."""
        store, folder = self.describe.files, table_uuid(table.info, table.table_id)
        columns = TableColumns.of(snapshot.data_schema, snapshot.partition_schema)
        content = self.describe.manifests.list_of(
            folder, snapshot.info.snapshot_id, columns, pieces
        )
        name = f"part-{hashlib.sha256(content).hexdigest()[:40]}.avro"
        return replace(
            whole,
            manifest_list=store.write(folder, name, content),
            manifests=[name for name, _ in pieces],
            vectors=[name for name, figures in pieces if figures.vectors is not None],
            # Totals of the table are those of other files.
            figures={},
        )
