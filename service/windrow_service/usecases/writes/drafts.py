"""Work out a write plan from the request and from the table's files and history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windrow_core.cards import count_text
from windrow_core.models import (
    MAX_WRITE_KEYS,
    Column,
    FileCountBasis,
    KeyFiles,
    KeyReport,
    WriteOutcome,
    WritePlan,
    WritePlanRequest,
    WriteReport,
)
from windrow_service.planner.writes.decide import (
    SCHEMES,
    Judged,
    Write,
    choose,
    file_count,
    judge,
    refuse_too_many,
    refuse_unfit,
)
from windrow_service.planner.writes.errors import InvalidKeysError, NoEstimateError
from windrow_service.planner.writes.exact import ExactTasks, files_per_key
from windrow_service.planner.writes.keys import Floats, WriteKeys
from windrow_service.planner.writes.murmur3 import Words
from windrow_service.usecases.snapshots.ports import Snapshot
from windrow_service.usecases.tables.columns import wire_columns
from windrow_service.usecases.tables.ports import StoredTable
from windrow_service.usecases.writes.keys import KeyTable
from windrow_service.usecases.writes.row_sizes import KnownRowSize, row_size_of

DEFAULT_TARGET_BYTES = 128 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteDraft:
    """A write to plan, and what is known about its table.

    Attributes:
        request: The request.
        table: The table that it names.
        snapshot: The table's current snapshot, if it has one.
        files: The inventory, if anything may be needed from it.
        reports: Reports of earlier writes, newest first.
        last_keys: The last write's figures of each key, if they are kept.
    """

    request: WritePlanRequest
    table: StoredTable | None
    snapshot: Snapshot | None
    files: pa.Table | None
    reports: Sequence[WriteReport]
    last_keys: KeyReport | None

    def plan(self) -> WritePlan:
        """Plan the write; CPU-bound."""
        request = self.request
        key_table = self._keys()
        columns = self._columns() if key_table is None else key_table.columns
        self._check_salt(columns)
        size = row_size_of(request, self.files, self.reports, key_table, self._data_columns())
        rows = request.rows if key_table is None else int(key_table.rows.sum())
        is_bucketed = self._is_bucketed() if key_table is None else key_table.buckets is not None
        is_divided = bool(columns) or is_bucketed
        count = (
            self._partitions(rows, is_divided=is_divided) if key_table is None else len(key_table)
        )
        target = _target(request, size, rows, count)

        # Exact placement does not need Spark's hash.
        hashes = None
        if key_table is not None and (request.compare or request.scheme not in (None, "exact")):
            hashes = key_table.hashes()

        def write_of(share: float) -> Write:
            return _write(request, key_table, count, rows, target, size, share, hashes, is_divided)

        write = write_of(1.0)
        scheme, why = (request.scheme, None) if request.scheme is not None else choose(write)
        refuse_unfit(scheme, write)
        # Checked before anything is made that has an entry per file.
        refuse_too_many(write.tasks, request.max_files)
        refuse_too_many(len(write.keys) * (request.files_per_key or 1), request.max_files)
        refuse_too_many(file_count(scheme, write), request.max_files)
        if write.keys.counted:
            write = write.placed()
        verdict = judge(scheme, write)
        if why is not None:
            verdict = replace(verdict, serves=True, reason=why)
        files = verdict.outcome.files
        low = high = files
        if size is not None and target.basis_is_size:
            low = file_count(scheme, write_of(size.low / size.mean))
            high = file_count(scheme, write_of(size.high / size.mean))
        outcome = wire_outcome(verdict, target.size_bytes)
        return WritePlan(
            table=request.table,
            snapshot_id=None if self.snapshot is None else self.snapshot.info.snapshot_id,
            target_file_bytes=target.size_bytes,
            target_file_rows=target.rows,
            basis=_basis(request),
            row_size=None if size is None else size.wire(),
            rows=rows,
            files=files,
            files_low=low,
            files_high=high,
            scheme=outcome.scheme,
            tasks=outcome.tasks,
            scale=outcome.scale,
            salts=outcome.salts,
            partition_columns=columns,
            salt_columns=request.salt_columns,
            keys=key_files(key_table, write.exact)
            if scheme == "exact" and key_table is not None and write.exact is not None
            else None,
            outcome=outcome,
            others=[
                wire_outcome(judge(other, write), target.size_bytes)
                for other in SCHEMES
                if request.compare and other != scheme
            ],
        )

    def _keys(self) -> KeyTable | None:
        request = self.request
        if request.keys_from == "files":
            assert self.files is not None
            keys = KeyTable.of_files(self.files, self._columns(), is_bucketed=self._is_bucketed())
            return self._scaled(keys)
        if request.keys_from == "history":
            if self.last_keys is None:
                raise NoEstimateError(
                    f"no write to table {request.table!r} has reported the rows of its partitions",
                    "give {keys}, or {keys_from} 'files'",
                )
            keys = KeyTable.reported(self.last_keys)
            spec = None if self.table is None else self.table.info.definition.bucket_spec
            return self._scaled(keys if spec is None else keys.over_buckets(spec.count))
        if request.keys is None:
            return None
        keys = KeyTable.given(request.keys, self._columns())
        total = int(keys.rows.sum())
        if request.rows is not None and request.rows != total:
            raise InvalidKeysError(
                f"rows is {request.rows:,} and the rows of keys add up to {total:,}",
                "leave {rows} out",
            )
        self._check_buckets(keys)
        return keys

    def _scaled(self, keys: KeyTable) -> KeyTable:
        """Return keys with the rows of this write, divided among them as earlier rows were."""
        total = int(keys.rows.sum())
        if not len(keys) or not total:
            raise NoEstimateError(
                f"table {self.request.table!r} has no rows yet to take keys from",
                "give {keys}",
            )
        if len(keys) > MAX_WRITE_KEYS:
            raise InvalidKeysError(
                f"table {self.request.table!r} has {len(keys):,} partitions and buckets, and a "
                f"plan takes at most {MAX_WRITE_KEYS:,} keys",
                "give {keys}, only those that are written",
            )
        if self.request.rows is None:
            return keys
        share = keys.rows * (self.request.rows / total)
        return replace(keys, rows=np.round(share).astype(np.int64))

    def _partitions(self, rows: int | None, *, is_divided: bool) -> int:
        """Return how many keys may be written if none were counted: as many as the table has."""
        if not is_divided:
            return 1
        count = 0
        if self.files is not None:
            is_bucketed = self._is_bucketed()
            count = len(KeyTable.of_files(self.files, self._columns(), is_bucketed=is_bucketed))
        if not count:
            raise NoEstimateError(
                f"the number of partitions to write is not known, as table {self.request.table!r} "
                "has none yet",
                "give {keys}",
            )
        return count if rows is None else max(1, min(count, rows))

    def _columns(self) -> list[Column]:
        """Return the table's partition columns, with the types that the caller writes."""
        columns = None if self.request.keys is None else self.request.keys.columns
        own = self._own_columns()
        if columns is None:
            if own is None:
                raise InvalidKeysError(
                    "the partition columns of the table are not known",
                    "give {keys.columns}, or refresh the table",
                )
            return own
        if own is not None and [one.name for one in own] != [one.name for one in columns]:
            raise InvalidKeysError(
                f"keys have the columns {', '.join(one.name for one in columns)}, and table "
                f"{self.request.table!r} is partitioned by "
                f"{', '.join(one.name for one in own) or 'none'}: give those, in this order"
            )
        return columns

    def _own_columns(self) -> list[Column] | None:
        if self.snapshot is not None:
            return wire_columns(self.snapshot.partition_schema)
        if self.table is not None:
            return self.table.info.definition.partition_columns
        # Without a table and without keys there is nothing to divide by.
        return [] if self.request.keys is None or not self.request.keys.values else None

    def _is_bucketed(self) -> bool:
        return self.table is not None and self.table.info.definition.bucket_spec is not None

    def _data_columns(self) -> int:
        return 0 if self.snapshot is None else len(self.snapshot.data_schema)

    def _check_buckets(self, keys: KeyTable) -> None:
        if self.table is None:
            return
        spec = self.table.info.definition.bucket_spec
        if spec is None and keys.buckets is not None:
            raise InvalidKeysError(
                f"table {self.request.table!r} has no buckets",
                "leave {keys.buckets} out",
            )
        if spec is not None and keys.buckets is None:
            raise InvalidKeysError(
                f"table {self.request.table!r} has {count_text(spec.count, 'bucket')}",
                "count rows by bucket, too, and give {keys.buckets}",
            )
        if spec is not None and keys.buckets is not None and int(keys.buckets.max()) >= spec.count:
            raise InvalidKeysError(
                f"keys.buckets holds {int(keys.buckets.max()):,}, and the buckets of table "
                f"{self.request.table!r} are 0 to {spec.count - 1:,}"
            )

    def _check_salt(self, columns: Sequence[Column]) -> None:
        names = {column.name for column in columns}
        if self.request.salt_columns and names.issuperset(self.request.salt_columns):
            raise InvalidKeysError(
                "salt_columns names only partition columns, which are the same in all rows of a "
                "partition and cannot divide it: name other columns"
            )


@dataclass(frozen=True, slots=True)
class _Target:
    """The target of a file in bytes and in rows; None if it is not known in that unit."""

    size_bytes: int | None
    rows: int | None
    basis_is_size: bool


def _target(
    request: WritePlanRequest, size: KnownRowSize | None, rows: int | None, keys: int
) -> _Target:
    if request.files is not None and rows is not None:
        # The request fixes the number of files, all of equal size, whatever a good size would be.
        each = max(1, round(rows / request.files))
        return _Target(None if size is None else max(1, round(each * size.mean)), each, False)
    if request.target_rows is not None:
        in_bytes = None if size is None else max(1, round(request.target_rows * size.mean))
        return _Target(in_bytes, request.target_rows, False)
    in_bytes = request.target_file_size or DEFAULT_TARGET_BYTES
    static = request.files is not None or request.files_per_key is not None
    if size is not None:
        return _Target(in_bytes, max(1, round(in_bytes / size.mean)), not static)
    if not static:
        unknown = "the number of bytes per row is not known"
        if request.table is None:
            raise NoEstimateError(
                unknown,
                "give {bytes_per_row}, a {table} whose files show it, or {target_rows} instead of "
                "a size",
            )
        raise NoEstimateError(
            f"{unknown}, as the table has neither files nor writes to learn it from",
            "give {bytes_per_row}, or {target_rows} instead of a size",
        )
    if rows is not None:
        count = request.files or (request.files_per_key or 1) * keys
        return _Target(None, max(1, round(rows / count)), False)
    return _Target(in_bytes, None, False)


def _write(
    request: WritePlanRequest,
    key_table: KeyTable | None,
    count: int,
    rows: int | None,
    target: _Target,
    size: KnownRowSize | None,
    share: float,
    hashes: Words | None,
    is_divided: bool,
) -> Write:
    per_row = None if size is None or target.size_bytes is None else size.of_key * share
    if key_table is not None:
        weight = _weight(key_table.rows.astype(np.float64), per_row, target)
        is_estimate = per_row is not None and target.basis_is_size
        keys = WriteKeys.of(
            key_table.rows, weight, key_table.buckets, hashes, estimated=is_estimate
        )
        total = keys.total
    elif rows is not None:
        each = None if per_row is None or size is None else np.array([size.mean * share])
        total = float(_weight(np.array([float(rows)]), each, target)[0])
        keys = WriteKeys.equal(count, total, rows)
    elif request.files is not None or request.files_per_key is not None:
        total = float(request.files or (request.files_per_key or 1) * count)
        keys = WriteKeys.equal(count, total, None)
    else:
        raise NoEstimateError(
            "the amount to write is not known", "give {rows}, {keys}, {keys_from} or {files}"
        )
    tasks = request.files or max(1, round(min(total, 1e12)))
    if request.files is None and request.files_per_key is not None and not keys.counted:
        tasks = request.files_per_key * count
    elif request.files is None and (len(keys) == 1 or not keys.counted):
        # Rows are dealt out evenly, so all parts have the mean size.
        tasks = request.files_per_key or int(files_per_key(WriteKeys.equal(1, total, None)).sum())
    return Write(
        keys=keys,
        tasks=tasks,
        divided=is_divided,
        files_per_key=request.files_per_key,
        source_tasks=request.source_tasks,
        parallelism=request.parallelism,
        efficiency=request.efficiency,
    )


def _weight(rows: Floats, per_row: Floats | None, target: _Target) -> Floats:
    if per_row is not None and target.size_bytes is not None and target.basis_is_size:
        return rows * per_row / target.size_bytes
    assert target.rows is not None
    return rows / target.rows


def _basis(request: WritePlanRequest) -> FileCountBasis:
    if request.files is not None or request.files_per_key is not None:
        return "static"
    if request.keys_from == "history":
        return "hybrid"
    return "size" if request.target_rows is None else "rows"


def key_files(key_table: KeyTable, tasks: ExactTasks) -> KeyFiles:
    """Return the files and tasks of each key."""
    return KeyFiles(
        columns=key_table.columns,
        values=key_table.travelling(),
        buckets=None if key_table.buckets is None else key_table.buckets.tolist(),
        rows=key_table.rows.tolist(),
        files=tasks.files.tolist(),
        first_task=tasks.first.tolist(),
    )


def wire_outcome(verdict: Judged, target_bytes: int | None) -> WriteOutcome:
    """Return the outcome of a scheme, also in bytes if the target is known in bytes."""
    outcome = verdict.outcome

    def in_bytes(targets: float) -> int | None:
        return None if target_bytes is None else round(targets * target_bytes)

    return WriteOutcome.model_validate(
        {
            "scheme": verdict.scheme,
            "serves": verdict.serves,
            "reason": verdict.reason,
            "tasks": outcome.tasks,
            "scale": outcome.scale,
            "salts": outcome.salts,
            "files": outcome.files,
            "small_files": outcome.small_files,
            "mean_file": outcome.mean_file,
            "largest_file": outcome.largest_file,
            "largest_task": outcome.largest_task,
            "mean_file_bytes": in_bytes(outcome.mean_file),
            "largest_file_bytes": in_bytes(outcome.largest_file),
            "largest_task_bytes": in_bytes(outcome.largest_task),
            "efficiency": outcome.efficiency,
            "collisions": outcome.collisions,
            "severe_collisions": outcome.severe,
            "most_keys_in_a_task": outcome.most_keys,
            "exact": outcome.exact,
        }
    )
