"""Find the files of a table that may hold rows to erase."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from windrow_core.files.keys import KeyColumn, UnfitKeysError, fitted, key_column
from windrow_core.models import TableInfo
from windrow_core.models.erasures import ERASURE_KEY, ErasurePlan, ErasureRequest
from windrow_service.filters.limits import FilterLimits
from windrow_service.filters.reading import read_filter
from windrow_service.filters.tree import to_tree
from windrow_service.inventory.published.arrow_streams import read_stream
from windrow_service.planner.packs import IDENTITY
from windrow_service.planner.pruning.expressions import Expression, In, columns_of
from windrow_service.planner.pruning.prune import prune
from windrow_service.usecases.erasures.errors import InvalidErasureError, UnerasableTableError
from windrow_service.usecases.ports import Runner
from windrow_service.usecases.snapshots.ports import Snapshot, SnapshotStore
from windrow_service.usecases.snapshots.scans import ManifestReader, SnapshotScan, types_of
from windrow_service.usecases.tables.columns import default_fields, wire_columns

_INSTEAD = {
    "orc": "compact it into Parquet, or rewrite its partitions with Spark",
    "avro": "rewrite its partitions with Spark",
    "csv": "rewrite its partitions with Spark",
    "json": "rewrite its partitions with Spark",
    "text": "rewrite its partitions with Spark",
}


# Pruning by 8,000,000 takes ten seconds and 1.5 GB.
_MOST_KEYS = 2_000_000


@dataclass(frozen=True, slots=True)
class _Target:
    """What is to be erased: the columns that decide, and the filter for files and for rows."""

    columns: tuple[str, ...]
    fields: tuple[str, ...]
    of_files: Expression | None
    of_rows: object


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanErasure:
    """Choose the files of a table's current snapshot that may hold rows to erase.

    Attributes:
        snapshots: The store of snapshots.
        manifests: Reads the files.
        runner: Reads keys in threads.
        filter_limits: Limits of conditions.
        max_decoded_bytes: Most memory of the keys.
    """

    snapshots: SnapshotStore
    manifests: ManifestReader
    runner: Runner
    filter_limits: FilterLimits
    max_decoded_bytes: int

    async def __call__(
        self, name: str, content: bytes | ErasureRequest
    ) -> tuple[ErasurePlan, pa.Table]:
        """Return figures, and the files: `IDENTITY` and `partition` of each, by path.

        Args:
            name: Name of the table.
            content: What to erase: an Arrow stream of keys, or a body in JSON.

        Raises:
            TableNotFoundError: No table has this name.
            TableNotRefreshedError: The table has no snapshot yet.
            UnerasableTableError: No rows are erased from tables like this one.
            InvalidErasureError: The keys do not fit the table.
            InvalidFilterError: The condition cannot be planned.
            BusyError: Too much is waiting already.
        """
        table, snapshot = await self.snapshots.get(name, None)
        require_erasable(table.info)
        target = await self.runner.run(lambda: self._wanted(snapshot, content))
        files, total = await self.manifests.scan(
            name, snapshot, lambda: target.of_files, _surviving, bloom=True
        )
        plan = _plan(table.info, snapshot, target, files, total)
        return plan, files.select([*IDENTITY, "partition"])

    def _wanted(self, snapshot: Snapshot, content: bytes | ErasureRequest) -> _Target:
        types = types_of(snapshot)
        request, keys = self._read(content)
        if request.filter is not None:
            expression = read_filter(request.filter, types, self.filter_limits)
            return _Target(tuple(columns_of(expression)), (), expression, to_tree(expression))
        assert request.key is not None
        try:
            column = key_column(types, request.key)
            values = fitted(keys, column)
        except UnfitKeysError as error:
            raise InvalidErasureError(f"key {request.key!r}: {error}") from error
        return _Target((column.column,), column.fields, _one_of(column, values), None)

    def _read(self, content: bytes | ErasureRequest) -> tuple[ErasureRequest, pa.Array]:
        if isinstance(content, ErasureRequest):
            try:
                return content, pa.array(content.values or [])
            except pa.ArrowException as error:
                raise InvalidErasureError("the values are not all of one kind") from error
            except OverflowError as error:
                raise InvalidErasureError(
                    "a value has more than 64 bits: write it as text"
                ) from error
        stream = read_stream(content, self.max_decoded_bytes)
        try:
            text = (stream.schema.metadata or {}).get(ERASURE_KEY, b"")
            request = ErasureRequest.model_validate_json(text)
        except ValueError as error:
            raise InvalidErasureError(f"it is not described as it should be: {error}") from error
        if request.key is None or stream.num_columns != 1:
            raise InvalidErasureError("a stream has one column, of keys")
        if len(stream) > _MOST_KEYS:
            raise InvalidErasureError(
                f"keys: {len(stream):,}, of which at most {_MOST_KEYS:,} are taken: erase them in several parts"
            )
        return request, stream.column(0)


def _one_of(column: KeyColumn, values: pa.Array) -> Expression | None:
    """Return which files may hold keys, as far as inventories tell; None for any of them."""
    if not column.is_plain or not len(values):
        return None
    return In(column.column, tuple(values.to_pylist()))


def _surviving(scan: SnapshotScan, files: pa.Table) -> tuple[pa.Table, tuple[int, int]]:
    """Return the files that may hold rows to erase, and the number and bytes of all files."""
    of_all = pc.sum(files["size_bytes"], min_count=0).as_py()
    total = len(files) + scan.others.files, of_all + scan.others.size_bytes
    survives = prune(files, scan.expression, by_manifest=scan.others).survives
    return files.filter(pa.array(survives)), total


def _plan(
    table: TableInfo,
    snapshot: Snapshot,
    target: _Target,
    files: pa.Table,
    total: tuple[int, int],
) -> ErasurePlan:
    rows = files["row_count"]
    data = [field for field in snapshot.data_schema if field.name in target.columns]
    partition = [field for field in snapshot.partition_schema if field.name in target.columns]
    return ErasurePlan(
        table=table.name,
        snapshot_id=snapshot.info.snapshot_id,
        location=table.definition.location,
        key_fields=list(target.fields),
        filter=target.of_rows,
        columns=wire_columns(pa.schema(data)),
        partition_columns=wire_columns(pa.schema(partition)),
        file_fields=default_fields(snapshot.data_schema, target.columns),
        files_total=total[0],
        size_bytes_total=total[1],
        files=len(files),
        size_bytes=pc.sum(files["size_bytes"], min_count=0).as_py(),
        row_count=None if rows.null_count else pc.sum(rows, min_count=0).as_py(),
    )


def require_erasable(table: TableInfo) -> None:
    """Make sure that rows can be erased from a table.

    Raises:
        UnerasableTableError: They cannot.
    """
    kind = table.definition.kind
    reason = kind.erasing
    if reason is None and not kind.files.is_written:
        reason = (
            f"it is made of {kind.files.name} files, and only Parquet files are rewritten: "
            f"{_INSTEAD[kind.files.name]}"
        )
    elif table.deletion_protection:
        reason = "it is protected from deletion: take its protection away first"
    if reason is not None:
        raise UnerasableTableError(table.name, reason)
