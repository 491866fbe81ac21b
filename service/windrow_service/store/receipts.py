"""Work of maintenance and its receipts in a SQL database."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_core.models import (
    ClaimRequest,
    ClaimUpdate,
    MaintenanceBudget,
    MaintenanceReceipt,
    MaintenanceRound,
    RealisedGain,
    ReceiptState,
    WorkItem,
)
from windrow_service.store import schema
from windrow_service.store.audit import note
from windrow_service.store.database import Database, insert_missing, utc
from windrow_service.store.pages import fetch_page
from windrow_service.store.policies import ROW, lock_maintenance
from windrow_service.store.table_names import is_among
from windrow_service.store.waiting import (
    IS_DECIDED,
    LEFT_ALONE,
    SkipBody,
    add_skips,
    add_work,
    busy_folders,
    without,
)
from windrow_service.store.work_figures import count_receipts, find_events, of_tables, sum_work
from windrow_service.telemetry.meters import UNMEASURED, MaintenanceFigures, Meters
from windrow_service.usecases.maintenance.errors import ClaimLostError
from windrow_service.usecases.maintenance.policies import names_of
from windrow_service.usecases.maintenance.work import (
    AFTER_REQUESTED,
    ANNOUNCED,
    LARGE,
    MAX_ATTEMPTS,
    REQUESTED,
    Decisions,
    Maintainer,
    NewWork,
    SharedState,
    WorkBody,
    WorkEvent,
    WorkRecord,
    WorkSums,
)
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import Page

_receipts, _maintenance, _maintainers = schema.receipts, schema.maintenance, schema.maintainers
_WORK_STATES = ("running", "done", "gave_up", "failed")
_SHOWN_FOLDERS = 10
_MAINTAINERS = 100
_DEAD = f"its workers died {MAX_ATTEMPTS} times"


class SqlWorkStore:
    """`WorkStore` in a SQL database."""

    def __init__(self, database: Database, meters: Meters = UNMEASURED) -> None:
        self._database = database
        self._meters = meters

    async def begin_round(self, holder: str, now: datetime, lease_until: datetime) -> bool:
        async with self._database.writing() as connection:
            await lock_maintenance(connection)
            result = await connection.execute(
                _shared_update()
                .where(_maintenance.c.lease_until.is_(None) | (_maintenance.c.lease_until < now))
                .values(holder=holder, lease_until=lease_until)
            )
            return result.rowcount == 1

    async def renew_round(self, holder: str, lease_until: datetime) -> bool:
        async with self._database.writing() as connection:
            result = await connection.execute(
                _shared_update()
                .where(_maintenance.c.holder == holder)
                .values(lease_until=lease_until)
            )
            return result.rowcount == 1

    async def shared(self) -> SharedState:
        row = await self._database.row(sa.select(_maintenance).where(_maintenance.c.number == ROW))
        if row is None:
            return SharedState(left_at=None, left_seconds=0.0, left_bytes=0.0, round=None)
        return SharedState(
            left_at=None if row.left_at is None else utc(row.left_at),
            left_seconds=row.left_seconds,
            left_bytes=row.left_bytes,
            round=None if row.round is None else MaintenanceRound.model_validate_json(row.round),
        )

    async def decide(self, holder: str, decisions: Decisions, now: datetime) -> bool:
        seconds, size_bytes = decisions.refill
        async with self._database.writing() as connection:
            result = await connection.execute(
                _shared_update()
                .where(_maintenance.c.holder == holder)
                .values(
                    holder=None,
                    lease_until=None,
                    left_at=now,
                    # Workers may have spent something meanwhile.
                    left_seconds=_maintenance.c.left_seconds + seconds,
                    left_bytes=_maintenance.c.left_bytes + size_bytes,
                    round=decisions.round.model_dump_json(),
                )
            )
            if result.rowcount != 1:
                return False
            await connection.execute(sa.delete(_receipts).where(IS_DECIDED))
            await add_work(connection, decisions.work, now)
            await add_skips(connection, decisions.skips, now)
        return True

    async def announcements(self, since: datetime) -> Mapping[str, Mapping[str, datetime]]:
        columns = _receipts.c
        rows = await self._database.rows(
            sa.select(
                columns.table_name, columns.reason, sa.func.max(columns.last_at).label("last_at")
            )
            .where(
                columns.state == LEFT_ALONE,
                columns.last_at >= since,
                columns.reason.in_([ANNOUNCED, LARGE]),
            )
            .group_by(columns.table_name, columns.reason)
        )
        by_table: dict[str, dict[str, datetime]] = defaultdict(dict)
        for row in rows:
            by_table[row.table_name][row.reason] = utc(row.last_at)
        return by_table

    async def claim(
        self, request: ClaimRequest, among: Names, now: datetime, lease_until: datetime
    ) -> WorkItem | None:
        columns, name = _receipts.c, _receipts.c.table_name
        is_dead = (columns.state == "running") & (columns.lease_until < now)
        async with self._database.writing() as connection:
            await lock_maintenance(connection)
            await _note_maintainer(connection, request.worker, request.pattern, now)
            await self._give_up_dead(connection, is_dead, now)
            if await _is_paused(connection):
                return None
            query = (
                sa.select(_receipts)
                .where((columns.state == "waiting") | is_dead)
                .where(is_among(among, name), is_among(names_of(request.pattern), name))
                .order_by(columns.reason != REQUESTED, columns.number)
            )
            if not request.without_spark:
                query = query.limit(1)
            rows = (await connection.execute(query)).all()
            work = ((row, WorkBody.model_validate_json(row.body)) for row in rows)
            row, body = next(
                (one for one in work if not (request.without_spark and one[1].needs_spark)),
                (None, None),
            )
            if row is None or body is None:
                return None
            claim_id = secrets.token_hex(16)
            await connection.execute(
                sa.update(_receipts)
                .where(columns.number == row.number)
                .values(
                    state="running",
                    reason="running",
                    claim=claim_id,
                    worker=request.worker,
                    lease_until=lease_until,
                    last_at=now,
                    times=row.times + 1 if row.state == "running" else 1,
                )
            )
            if row.state == "waiting" and body.removal is None:
                prediction = body.prediction
                await _spend(connection, prediction.cost_seconds, prediction.size_bytes)
        return WorkItem(
            claim_id=claim_id,
            number=row.number,
            table=row.table_name,
            folders=body.folders,
            target_file_size=body.target_file_size,
            small_file_size=body.small_file_size,
            min_files=body.min_files,
            min_age_seconds=body.min_age_seconds,
            readers_may_see_both=body.readers_may_see_both,
            prediction=body.prediction,
            removal=body.removal,
            packing=body.packing,
            lease_until=lease_until,
        )

    async def request(self, work: Sequence[NewWork], now: datetime) -> int:
        async with self._database.writing() as connection:
            await lock_maintenance(connection)
            folders = {(one.table, folder) for one in work for folder in one.body.folders}
            query = sa.select(_receipts.c.number, _receipts.c.table_name, _receipts.c.body).where(
                _receipts.c.state == "waiting",
                _receipts.c.table_name.in_({one.table for one in work}),
            )
            for row in (await connection.execute(query)).all():
                of_row = WorkBody.model_validate_json(row.body).folders
                if not folders.isdisjoint((row.table_name, folder) for folder in of_row):
                    await connection.execute(
                        sa.delete(_receipts).where(_receipts.c.number == row.number)
                    )
            busy = await busy_folders(connection)
            rest = [free for one in work if (free := without(one, busy)) is not None]
            count = await add_work(connection, rest, now, REQUESTED)
            if count:
                await note(connection, now, "work", "created", table=work[0].table)
            return count

    async def withdraw(self, table: str, now: datetime, number: int | None = None) -> int:
        columns = _receipts.c
        statement = sa.delete(_receipts).where(
            columns.table_name == table, columns.state == "waiting", columns.reason == REQUESTED
        )
        if number is not None:
            statement = statement.where(columns.number == number)
        async with self._database.writing() as connection:
            await lock_maintenance(connection)
            count = (await connection.execute(statement)).rowcount
            if count:
                item = None if number is None else str(number)
                await note(connection, now, "work", "cancelled", table=table, item=item)
        return count

    async def maintainers(self) -> Sequence[Maintainer]:
        query = sa.select(_maintainers).order_by(_maintainers.c.seen_at.desc()).limit(_MAINTAINERS)
        return [
            Maintainer(worker=row.worker, pattern=row.pattern, seen_at=utc(row.seen_at))
            for row in await self._database.rows(query)
        ]

    async def update(
        self, claim_id: str, among: Names, update: ClaimUpdate, now: datetime, until: datetime
    ) -> MaintenanceReceipt:
        columns, has_ended = _receipts.c, False
        async with self._database.writing() as connection:
            await lock_maintenance(connection)
            query = sa.select(_receipts).where(columns.claim == claim_id)
            row = (await connection.execute(query)).one_or_none()
            is_over = row is not None and row.state not in ("running", update.state)
            if row is None or row.table_name not in among or is_over:
                raise ClaimLostError(claim_id)
            if row.state == "running":
                values: dict[str, Any] = {"last_at": now}
                if update.state == "running":
                    values["lease_until"] = until
                    # Whoever works does not ask for work.
                    await connection.execute(
                        sa.update(_maintainers)
                        .where(_maintainers.c.worker == row.worker)
                        .values(seen_at=now)
                    )
                else:
                    body = WorkBody.model_validate_json(row.body)
                    await _settle_budget(connection, body, update)
                    changes = {"outcome": update.outcome, "text": update.text or body.text}
                    values |= {
                        "state": update.state,
                        "reason": update.state,
                        "lease_until": None,
                        "body": body.model_copy(update=changes).model_dump_json(),
                    }
                of_claim = sa.update(_receipts).where(columns.claim == claim_id)
                await connection.execute(of_claim.values(values))
                row = (await connection.execute(query)).one()
                has_ended = update.state != "running"
        if has_ended:
            self._meters.work(update.state)
        return _receipt(row)

    async def work_since(self, last_at: datetime, limit: int) -> Sequence[WorkRecord]:
        columns = _receipts.c
        rows = await self._database.rows(
            sa.select(_receipts)
            .where(columns.state.in_(_WORK_STATES), columns.last_at >= last_at)
            .order_by(columns.last_at, columns.number)
            .limit(limit)
        )
        return [
            WorkRecord(
                number=row.number,
                table=row.table_name,
                state=row.state,
                body=WorkBody.model_validate_json(row.body),
                first_at=utc(row.first_at),
                last_at=utc(row.last_at),
            )
            for row in rows
        ]

    async def realise(self, number: int, gain: RealisedGain) -> None:
        columns = _receipts.c
        async with self._database.writing() as connection:
            await lock_maintenance(connection)
            query = sa.select(_receipts).where(columns.number == number, columns.state == "done")
            row = (await connection.execute(query)).one_or_none()
            if row is not None:
                body = WorkBody.model_validate_json(row.body).model_copy(update={"gain": gain})
                await connection.execute(
                    sa.update(_receipts)
                    .where(columns.number == number)
                    .values(body=body.model_dump_json())
                )

    async def figures(self) -> MaintenanceFigures:
        """Return how maintenance is getting on, for metrics."""
        columns = _receipts.c
        is_open = columns.state.in_(("waiting", "running"))
        counts = await count_receipts(self._database, is_open)
        state = await self.shared()
        return MaintenanceFigures(
            waiting=counts["waiting"],
            running=counts["running"],
            excess_files=0 if state.round is None else state.round.excess_files,
            left_seconds=state.left_seconds,
        )

    async def page(
        self,
        before: int,
        limit: int,
        among: Names,
        table: str | None = None,
        states: Sequence[ReceiptState] = (),
    ) -> Page[MaintenanceReceipt]:
        columns = _receipts.c
        query = sa.select(_receipts).where(columns.number < before, of_tables(among, table))
        if states:
            query = query.where(columns.state.in_(states))
        return await self._page(query.order_by(columns.number.desc()), limit)

    async def waiting(
        self, after: int, limit: int, among: Names, table: str | None = None
    ) -> Page[MaintenanceReceipt]:
        columns = _receipts.c
        is_first = columns.reason == REQUESTED
        turn = columns.number + sa.case((is_first, 0), else_=AFTER_REQUESTED)
        is_next = (columns.state == "waiting") & (turn > after)
        query = sa.select(_receipts).where(is_next, of_tables(among, table)).order_by(turn)
        return await self._page(query, limit)

    async def _page(self, query: sa.Select[Any], limit: int) -> Page[MaintenanceReceipt]:
        columns = _receipts.c
        async with self._database.reading() as connection:
            rows, more = await fetch_page(connection, query, columns.number, (columns.body,), limit)
        return Page(map(_receipt, rows), more=more)

    async def counts(self, among: Names, table: str | None = None) -> Mapping[ReceiptState, int]:
        return await count_receipts(self._database, of_tables(among, table))

    async def sums(self, since: datetime, among: Names, table: str | None = None) -> WorkSums:
        return await sum_work(self._database, since, of_tables(among, table))

    async def events(
        self, since: datetime, limit: int, among: Names, table: str | None = None
    ) -> Page[WorkEvent]:
        return await find_events(self._database, since, limit, of_tables(among, table))

    async def purge(self, last_before: datetime, max_receipts: int) -> int:
        columns = _receipts.c
        await self._database.delete(_maintainers, _maintainers.c.seen_at < last_before)
        newest = sa.select(sa.func.max(columns.number)).scalar_subquery()
        old = (columns.last_at < last_before) | (columns.number <= newest - max_receipts)
        has_ended = columns.state.not_in(("waiting", "running"))
        return await self._database.delete(_receipts, old & has_ended)

    async def _give_up_dead(
        self, connection: AsyncConnection, is_dead: sa.ColumnElement[bool], now: datetime
    ) -> None:
        columns = _receipts.c
        query = sa.select(columns.number, columns.body).where(
            is_dead, columns.times >= MAX_ATTEMPTS
        )
        for row in (await connection.execute(query)).all():
            body = WorkBody.model_validate_json(row.body).model_copy(update={"text": _DEAD})
            await connection.execute(
                sa.update(_receipts)
                .where(columns.number == row.number)
                .values(
                    state="failed",
                    reason="failed",
                    lease_until=None,
                    last_at=now,
                    body=body.model_dump_json(),
                )
            )


async def _note_maintainer(
    connection: AsyncConnection, worker: str, pattern: str, now: datetime
) -> None:
    row = {"worker": worker, "pattern": pattern, "seen_at": now}
    if not await insert_missing(connection, _maintainers, row):
        await connection.execute(
            sa.update(_maintainers).where(_maintainers.c.worker == worker).values(row)
        )


async def _is_paused(connection: AsyncConnection) -> bool:
    query = sa.select(_maintenance.c.budget).where(_maintenance.c.number == ROW)
    budget = await connection.scalar(query)
    return budget is not None and MaintenanceBudget.model_validate_json(budget).pause


def _shared_update() -> sa.Update:
    return sa.update(_maintenance).where(_maintenance.c.number == ROW)


async def _spend(connection: AsyncConnection, seconds: float, size_bytes: float) -> None:
    await connection.execute(
        _shared_update().values(
            left_seconds=_maintenance.c.left_seconds - seconds,
            left_bytes=_maintenance.c.left_bytes - size_bytes,
        )
    )


async def _settle_budget(connection: AsyncConnection, body: WorkBody, update: ClaimUpdate) -> None:
    """Spend what work has really cost, in place of what was predicted."""
    if update.outcome is not None and body.removal is None:
        prediction, outcome = body.prediction, update.outcome
        await _spend(
            connection,
            outcome.core_seconds - prediction.cost_seconds,
            outcome.bytes_before - prediction.size_bytes,
        )


def _receipt(row: Any) -> MaintenanceReceipt:
    figures: dict[str, Any] = {}
    if row.state == LEFT_ALONE:
        text = SkipBody.model_validate_json(row.body).text
    else:
        body = WorkBody.model_validate_json(row.body)
        text = body.text
        figures = {
            "folders": body.folders[:_SHOWN_FOLDERS],
            "prediction": body.prediction if body.removal is None else None,
            "lease_until": row.lease_until and utc(row.lease_until),
            "removal": body.removal,
            "packing": body.packing,
            "outcome": body.outcome,
            "gain": body.gain,
        }
    return MaintenanceReceipt(
        number=row.number,
        table=row.table_name,
        state=row.state,
        reason=row.reason,
        text=text,
        times=row.times,
        first_at=utc(row.first_at),
        last_at=utc(row.last_at),
        worker=row.worker,
        **figures,
    )
