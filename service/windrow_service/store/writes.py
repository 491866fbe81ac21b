"""Writes to tables in a SQL database."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_core.models import KeyReport, StreamBatch, WriteRecord, WriteReport, WriteUpdate
from windrow_service.store import schema
from windrow_service.store.audit import note
from windrow_service.store.commit_guard import (
    committing_write,
    in_progress,
    lock_table,
    refuse_removal,
)
from windrow_service.store.database import Database, utc
from windrow_service.store.pages import fetch_page, without_fields
from windrow_service.store.streams import record_batch, refuse_out_of_order
from windrow_service.store.table_names import is_among
from windrow_service.store.tables import new_version, require_row
from windrow_service.telemetry.meters import UNMEASURED, Meters
from windrow_service.usecases.audit import actor
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import Clock, Page
from windrow_service.usecases.writes.errors import (
    WriteCancelledError,
    WriteNotCancellableError,
    WriteNotFoundError,
    WriteStateError,
    WriteTakenError,
)
from windrow_service.usecases.writes.ports import MAX_KEY_REPORTS, StoredWrite

# How many of a table's newest writes are kept.
_KEPT = 1_000
_OPEN = ("staging", "committing")
_NEXT: Mapping[str, tuple[str, ...]] = {
    "staging": ("staging", "committing", "undone"),
    "committing": ("committing", "published", "undone"),
    "published": ("published",),
    "undone": ("undone",),
}
_writes = schema.writes
_WITHOUT_KEYS = [column for column in _writes.c if column.name != "key_report"]


class SqlWriteStore:
    """`WriteStore` in a SQL database."""

    def __init__(self, database: Database, clock: Clock, meters: Meters = UNMEASURED) -> None:
        self._database = database
        self._clock = clock
        self._meters = meters

    async def put(self, table: str, write_id: str, update: WriteUpdate) -> tuple[WriteRecord, bool]:
        # In a thread, because the report may be long.
        report = await asyncio.to_thread(_packed, update.report)
        now = self._clock()
        is_open = update.state in _OPEN
        values: dict[str, Any] = {
            "state": update.state,
            "host": update.host,
            "process": update.process,
            "updated_at": now,
            "lease_until": now + timedelta(seconds=update.lease_seconds) if is_open else None,
        } | report
        if update.batch is not None:
            values["batch"] = update.batch.model_dump_json()
        async with self._database.writing() as connection:
            table_id = await lock_table(connection, table)
            row = await _find(connection, table_id, write_id)
            if row is None:
                if update.state != "staging":
                    raise WriteNotFoundError(table, write_id)
                if update.kind == "removal":
                    await refuse_removal(connection, table_id, table)
                values |= {"kind": update.kind, "mode": update.mode, "started_at": now}
                await _begin(connection, table_id, write_id, values | {"state_since": now})
            elif row.cancelled_by is not None and update.state != "undone":
                raise WriteCancelledError(table, write_id, row.cancelled_by)
            elif row.state in _OPEN or row.state != update.state:
                _check(table, row, update, now)
                if row.state != update.state:
                    values["state_since"] = now
                    batch = values.get("batch", row.batch)
                    await _change_state(connection, table, row, update.state, batch, now)
                await connection.execute(
                    sa.update(_writes).where(_is(table_id, write_id)).values(values)
                )
            after = await _find(connection, table_id, write_id)
            is_new_state = row is None or row.state != after.state
            if is_new_state:
                await note(
                    connection,
                    now,
                    "write",
                    "created" if row is None else "changed",
                    table=table,
                    item=write_id,
                    before=None if row is None else row.state,
                    after=after.state,
                )
        if is_new_state:
            self._meters.write(after.kind, after.state)
        return self._record(table, after), row is None

    async def cancel(self, table: str, write_id: str) -> WriteRecord:
        now = self._clock()
        async with self._database.writing() as connection:
            # Every change of state takes this lock: the driver either finds the write cancelled, or
            # has already begun to move files in.
            table_id = await lock_table(connection, table)
            row = await _find(connection, table_id, write_id)
            if row is None:
                raise WriteNotFoundError(table, write_id)
            if row.state == "undone":
                return self._record(table, row)
            if row.state != "staging":
                raise WriteNotCancellableError(table, write_id, row.state)
            changes = {
                "state": "undone",
                "state_since": now,
                "updated_at": now,
                "lease_until": None,
            }
            await connection.execute(
                sa.update(_writes)
                .where(_is(table_id, write_id))
                .values(changes | {"cancelled_by": actor().principal})
            )
            states = {"before": row.state, "after": "undone"}
            await note(connection, now, "write", "cancelled", table=table, item=write_id, **states)
            after = await _find(connection, table_id, write_id)
        self._meters.write(after.kind, after.state)
        return self._record(table, after)

    async def get(self, table: str, write_id: str) -> WriteRecord:
        async with self._database.reading() as connection:
            table_id = (await require_row(connection, table)).table_id
            query = sa.select(_writes).where(_is(table_id, write_id))
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            raise WriteNotFoundError(table, write_id)
        return await asyncio.to_thread(self._record, table, row, keys=row.key_report)

    async def recent(
        self, limit: int, among: Names, *, dead_only: bool = False
    ) -> Sequence[WriteRecord]:
        name = schema.tables.c.name
        on_server = self._database.is_postgresql
        report = without_fields(_writes.c.report, ("unhashed_columns",), on_server)
        others = [column for column in _WITHOUT_KEYS if column.name != "report"]
        of_tables = (
            sa.select(*others, report.label("report"), name)
            .join(schema.tables, schema.tables.c.table_id == _writes.c.table_id)
            .where(is_among(among))
            .order_by(_writes.c.updated_at.desc())
        )
        lease = _writes.c.lease_until
        conditions: list[sa.ColumnElement[bool]] = [lease.is_not(None), lease.is_(None)]
        if dead_only:
            conditions = [lease < self._clock()]
        rows: list[Any] = []
        async with self._database.reading() as connection:
            for which in conditions:
                rows += (await connection.execute(of_tables.where(which).limit(limit))).all()
        return [self._record(row.name, row) for row in rows[:limit]]

    async def page(
        self, table: str, before: int, limit: int, *, open_only: bool
    ) -> Page[StoredWrite]:
        async with self._database.reading() as connection:
            table_id = (await require_row(connection, table)).table_id
            query = sa.select(*_WITHOUT_KEYS).where(
                _writes.c.table_id == table_id, _writes.c.number < before
            )
            if open_only:
                query = query.where(_writes.c.state.in_(_OPEN))
            query = query.order_by(_writes.c.number.desc())
            rows, more = await fetch_page(
                connection, query, _writes.c.number, (_writes.c.report,), limit
            )
        entries = (StoredWrite(number=row.number, info=self._record(table, row)) for row in rows)
        return Page(entries, more=more)

    async def reported(self, table: str, limit: int, *, keys: bool = False) -> list[WriteRecord]:
        async with self._database.reading() as connection:
            table_id = (await require_row(connection, table)).table_id
            query = (
                sa.select(*(_writes.c if keys else _WITHOUT_KEYS))
                .where(
                    _writes.c.table_id == table_id,
                    _writes.c.state == "published",
                    _writes.c.report.is_not(None),
                )
                .order_by(_writes.c.number.desc())
                .limit(limit)
            )
            rows = (await connection.execute(query)).all()

        def records() -> list[WriteRecord]:
            return [self._record(table, row, keys=row.key_report if keys else None) for row in rows]

        return await asyncio.to_thread(records)

    async def compactions(self, table: str, since: int) -> list[int]:
        columns = _writes.c
        async with self._database.reading() as connection:
            table_id = (await require_row(connection, table)).table_id
            query = (
                sa.select(columns.snapshot_id)
                .where(
                    columns.table_id == table_id,
                    columns.kind == "compaction",
                    columns.snapshot_id > since,
                )
                .order_by(columns.snapshot_id)
            )
            return list((await connection.execute(query)).scalars())

    async def refuse_while_committing(self, table: str) -> None:
        async with self._database.reading() as connection:
            table_id = (await require_row(connection, table)).table_id
            row = await committing_write(connection, table_id)
        if row is not None:
            raise in_progress(table, row)

    async def last_committed_at(self, table_id: int) -> datetime | None:
        query = sa.select(sa.func.max(_writes.c.state_since)).where(
            _writes.c.table_id == table_id, _writes.c.state == "published"
        )
        async with self._database.reading() as connection:
            latest = await connection.scalar(query)
        return None if latest is None else utc(latest)

    def _record(self, table: str, row: Any, *, keys: bytes | None = None) -> WriteRecord:
        lease_until = None if row.lease_until is None else utc(row.lease_until)
        return WriteRecord(
            write_id=row.write_id,
            table=table,
            kind=row.kind,
            mode=row.mode,
            state=row.state,
            host=row.host,
            process=row.process,
            started_at=utc(row.started_at),
            updated_at=utc(row.updated_at),
            expires_at=lease_until,
            alive=lease_until is not None and lease_until > self._clock(),
            snapshot_id=row.snapshot_id,
            cancelled_by=row.cancelled_by,
            batch=None if row.batch is None else StreamBatch.model_validate_json(row.batch),
            report=_unpacked(row.report, keys),
        )


async def _begin(
    connection: AsyncConnection, table_id: int, write_id: str, values: Mapping[str, Any]
) -> None:
    last = await connection.scalar(
        sa.select(sa.func.max(_writes.c.number)).where(_writes.c.table_id == table_id)
    )
    number = (last or 0) + 1
    row = {"table_id": table_id, "number": number, "write_id": write_id}
    await connection.execute(sa.insert(_writes).values(row | dict(values)))
    of_table = _writes.c.table_id == table_id
    await connection.execute(
        sa.delete(_writes).where(
            of_table, _writes.c.number <= number - _KEPT, _writes.c.state.not_in(_OPEN)
        )
    )
    await connection.execute(
        sa.update(_writes)
        .where(
            of_table,
            _writes.c.number <= number - MAX_KEY_REPORTS,
            _writes.c.key_report.is_not(None),
        )
        .values(key_report=None)
    )


def _check(table: str, row: Any, update: WriteUpdate, now: datetime) -> None:
    if update.state not in _NEXT[row.state]:
        raise WriteStateError(table, row.write_id, row.state, update.state)
    if (row.host, row.process) == (update.host, update.process):
        return
    # A caller on the same host has checked that the previous owner is gone.
    may_be_taken = row.host == update.host or utc(row.lease_until) <= now
    if not (update.takes_over and may_be_taken):
        raise WriteTakenError(table, row.write_id, row.host, row.process)


async def _change_state(
    connection: AsyncConnection, table: str, row: Any, state: str, batch: str | None, now: datetime
) -> None:
    if state == "committing":
        other = await committing_write(connection, row.table_id)
        if other is not None:
            raise in_progress(table, other)
        if row.kind == "removal":
            await refuse_removal(connection, row.table_id, table)
        await refuse_out_of_order(connection, table, row.table_id, batch)
    elif row.state == "committing" and row.snapshot_id is None:
        # A refresh that listed files while they were moved in must not publish its result.
        await connection.execute(
            sa.update(schema.tables)
            .where(schema.tables.c.table_id == row.table_id)
            .values(version=new_version())
        )
        if state == "published":
            # All files were moved in, but their inventory was refused: a refresh finds them.
            await record_batch(connection, row.table_id, batch, now)


async def _find(connection: AsyncConnection, table_id: int, write_id: str) -> Any:
    query = sa.select(*_WITHOUT_KEYS).where(_is(table_id, write_id))
    return (await connection.execute(query)).one_or_none()


def _is(table_id: int, write_id: str) -> sa.ColumnElement[bool]:
    return (_writes.c.table_id == table_id) & (_writes.c.write_id == write_id)


def _packed(report: WriteReport | None) -> dict[str, Any]:
    if report is None:
        return {}
    keys = report.keys
    return {
        "report": report.model_dump_json(exclude={"keys"}),
        "key_report": None if keys is None else zlib.compress(keys.model_dump_json().encode()),
    }


def _unpacked(report: str | None, keys: bytes | None) -> WriteReport | None:
    if report is None:
        return None
    summary = WriteReport.model_validate_json(report)
    if keys is None:
        return summary
    of_keys = KeyReport.model_validate_json(zlib.decompress(keys))
    return summary.model_copy(update={"keys": of_keys})
