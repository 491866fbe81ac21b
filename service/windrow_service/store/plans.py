"""Plans in a SQL database, until they expire."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from cachetools import LRUCache
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_core.models import Plan, PlanRequest
from windrow_service.store import schema
from windrow_service.store.database import Database, utc
from windrow_service.store.idempotency import claim, settle
from windrow_service.store.plan_history import row_of
from windrow_service.store.table_names import is_among
from windrow_service.usecases.plans.errors import (
    PlanCancelledError,
    PlanNotFoundError,
    PlansFullError,
)
from windrow_service.usecases.plans.ports import Mine, PlanBody, PlanChunk, PlanRecord
from windrow_service.usecases.ports import Clock, Once

_plans, _bodies, _chunks = schema.plans, schema.plan_bodies, schema.plan_chunks
_history = schema.plan_history
# Most abandoned plans that one replica takes over at a time.
_ADOPTED = 4
_FULL_RETRY_AFTER_S = 30
_ORPHANED = timedelta(hours=1)
_PER_DELETE = 500
# Columns that are unknown when a plan is submitted.
_FOUND_OUT = ("snapshot_id", "request_key", "status", "info", "problem", "body_id")
_SMALL_BYTES = 32 * 2**20


def _small_plan() -> sa.Insert:
    """Return a statement that inserts a plan, its body, the body's one chunk and its history."""
    body_id: sa.BindParameter[str] = sa.bindparam("plan_body_id")
    created_at: sa.BindParameter[datetime] = sa.bindparam("plan_created_at")
    body = sa.insert(_bodies).values(
        body_id=body_id,
        created_at=created_at,
        **{name: sa.bindparam(f"body_{name}") for name in ("size_bytes", "head", "tail")},
    )
    chunk = sa.insert(_chunks).values(
        body_id=body_id,
        **{name: sa.bindparam(f"chunk_{name}") for name in ("first_group", "body")},
    )
    past = sa.insert(_history).values(
        {
            column.name: sa.bindparam(f"past_{column.name}")
            for column in _history.c
            # A report comes later, if one comes at all.
            if column.name not in ("number", "scan", "scan_seconds")
        }
    )
    plan: dict[str, Any] = {column.name: sa.bindparam(f"plan_{column.name}") for column in _plans.c}
    return (
        sa.insert(_plans)
        .values(plan | {"body_id": body_id, "created_at": created_at})
        .add_cte(
            body.returning(_bodies.c.body_id).cte("kept_body"),
            chunk.returning(_chunks.c.body_id).cte("kept_chunk"),
            past.returning(_history.c.number).cte("kept_past"),
        )
    )


_SMALL_PLAN = _small_plan()


class SqlPlanStore:
    """`PlanStore` in a SQL database.

    Args:
        database: The database.
        clock: Tells the time.
        max_bytes: Most bytes of all plans together. A replica learns what others have added
            only when it purges, so the limit may be exceeded by what they add in between.
    """

    def __init__(self, database: Database, clock: Clock, max_bytes: int) -> None:
        self._database = database
        self._clock = clock
        self._max_bytes = max_bytes
        self._kept_bytes = 0
        # Callers ask for a plan's groups right after making it.
        self._small: LRUCache[str, PlanBody] = LRUCache(
            _SMALL_BYTES, getsizeof=lambda body: body.size_bytes
        )

    async def put(
        self,
        plan: PlanRecord,
        body: PlanBody | None = None,
        *,
        lease_until: datetime | None = None,
        once: Once | None = None,
    ) -> None:
        row = _row_of(plan) | {"lease_until": lease_until}
        try:
            at_once = once is None and plan.is_listed and self._database.is_postgresql
            if at_once and body is not None and len(body.chunks) == 1:
                await self._put_small(row, plan, body)
                return self._note(plan, body)
            async with self._database.writing() as connection:
                await claim(connection, once, self._clock())
                await self._keep(connection, plan, body)
                await self._store(connection, sa.insert(_plans).values(row), plan)
                await settle(connection, once, plan)
        except IntegrityError as error:
            raise PlanNotFoundError(plan.plan_id) from error
        self._note(plan, body)

    async def _put_small(self, row: Mapping[str, Any], plan: PlanRecord, body: PlanBody) -> None:
        """Store a plan with one statement, of a kind that SQLite does not support.

        Every further statement would be a round trip, and so would a transaction's begin and end.
        """
        self._make_room(body)
        past = row_of(plan, self._clock()) or {}
        values = {f"plan_{name}": value for name, value in row.items()}
        values |= {f"past_{name}": value for name, value in past.items()}
        values |= {
            "body_size_bytes": body.size_bytes,
            "body_head": body.head,
            "body_tail": body.tail,
            "chunk_first_group": body.chunks[0].first_group,
            "chunk_body": body.chunks[0].data,
        }
        async with self._database.changing() as connection:
            await connection.execute(_SMALL_PLAN, values)

    async def finish(self, plan: PlanRecord, body: PlanBody | None = None) -> None:
        row = _row_of(plan)
        changes = {name: row[name] for name in _FOUND_OUT}
        this = _plans.c.plan_id == plan.plan_id
        try:
            async with self._database.writing() as connection:
                # This comes first: of two replicas that made the plan, one waits here for the other
                # and then finds the plan finished.
                mine = sa.update(_plans).where(this, _plans.c.status == "submitted")
                if (await connection.execute(mine.values(lease_until=None))).rowcount == 0:
                    raise PlanCancelledError
                await self._keep(connection, plan, body)
                await self._store(connection, sa.update(_plans).where(this).values(changes), plan)
        except IntegrityError as error:
            raise PlanNotFoundError(plan.plan_id) from error
        self._note(plan, body)

    async def _store(
        self, connection: AsyncConnection, plan_row: sa.Insert | sa.Update, plan: PlanRecord
    ) -> None:
        """Store the rows of a plan and of its history, if any: on PostgreSQL in one round trip."""
        past = row_of(plan, self._clock())
        if past is None:
            await connection.execute(plan_row)
        elif self._database.is_postgresql:
            insert = sa.insert(_history).values(past).returning(_history.c.number)
            await connection.execute(plan_row.add_cte(insert.cte("kept_past")))
        else:
            await connection.execute(plan_row)
            await connection.execute(sa.insert(_history), past)

    def _note(self, plan: PlanRecord, body: PlanBody | None) -> None:
        if body is None or plan.body_id is None:
            return
        self._kept_bytes += body.size_bytes
        if len(body.chunks) == 1 and body.size_bytes <= _SMALL_BYTES / 32:
            self._small[plan.body_id] = body

    async def _keep(
        self, connection: AsyncConnection, plan: PlanRecord, body: PlanBody | None
    ) -> None:
        if body is None:
            return
        self._make_room(body)
        row = {
            "body_id": plan.body_id,
            "created_at": plan.created_at,
            "size_bytes": body.size_bytes,
            "head": body.head,
            "tail": body.tail,
        }
        await connection.execute(sa.insert(_bodies), row)
        # One by one, so that they are not all in the driver's memory at once.
        for chunk in body.chunks:
            row = {"body_id": plan.body_id, "first_group": chunk.first_group, "body": chunk.data}
            await connection.execute(sa.insert(_chunks), row)

    def _make_room(self, body: PlanBody) -> None:
        if self._kept_bytes + body.size_bytes > self._max_bytes:
            raise PlansFullError(self._kept_bytes, self._max_bytes, _FULL_RETRY_AFTER_S)

    async def get(self, plan_id: str, now: datetime) -> PlanRecord:
        query = sa.select(_plans).where(_plans.c.plan_id == plan_id, _plans.c.expires_at > now)
        row = await self._database.row(query)
        if row is None:
            raise PlanNotFoundError(plan_id)
        return _record_of(row)

    async def under_way(self, now: datetime, limit: int, mine: Mine) -> Sequence[PlanRecord]:
        own = (_plans.c.principal == mine.maker) & is_among(mine.readable)
        query = (
            sa.select(_plans)
            .join(schema.tables, schema.tables.c.table_id == _plans.c.table_id)
            .where(_plans.c.status == "submitted", _plans.c.expires_at > now)
            .where(own | is_among(mine.administrable))
            # All plans are kept for the same time, and this column has an index.
            .order_by(_plans.c.expires_at.desc(), _plans.c.plan_id)
            .limit(limit)
        )
        return [_record_of(row) for row in await self._database.rows(query)]

    async def find(self, request_key: str, expires_after: datetime) -> PlanRecord | None:
        query = (
            sa.select(_plans)
            .where(
                _plans.c.request_key == request_key,
                _plans.c.status == "completed",
                _plans.c.expires_at > expires_after,
            )
            .order_by(_plans.c.expires_at.desc())
            .limit(1)
        )
        row = await self._database.row(query)
        return None if row is None else _record_of(row)

    async def chunk(self, plan: PlanRecord, group: int) -> tuple[bytes, PlanChunk]:
        small = self._small.get(str(plan.body_id))
        if small is not None:
            return small.head, small.chunks[0]
        query = (
            sa.select(_bodies.c.head, _chunks.c.first_group, _chunks.c.body)
            .join(_chunks, _chunks.c.body_id == _bodies.c.body_id)
            .where(_bodies.c.body_id == plan.body_id, _chunks.c.first_group <= group)
            .order_by(_chunks.c.first_group.desc())
            .limit(1)
        )
        row = await self._database.row(query)
        if row is None:
            raise PlanNotFoundError(plan.plan_id)
        return row.head, PlanChunk(first_group=row.first_group, data=row.body)

    async def stream(self, plan: PlanRecord) -> AsyncIterator[bytes]:
        small = self._small.get(str(plan.body_id))
        if small is not None:
            for part in small.parts:
                yield part
            return
        whole = sa.select(_bodies.c.head, _bodies.c.tail).where(_bodies.c.body_id == plan.body_id)
        async with self._database.reading() as connection:
            ends = (await connection.execute(whole)).one_or_none()
            if ends is None:
                raise PlanNotFoundError(plan.plan_id)
            starts = await connection.scalars(
                sa.select(_chunks.c.first_group)
                .where(_chunks.c.body_id == plan.body_id)
                .order_by(_chunks.c.first_group)
            )
            first_groups = starts.all()
        yield ends.head
        # The connection is returned in between: a slow reader must not hold one.
        for first_group in first_groups:
            query = sa.select(_chunks.c.body).where(
                _chunks.c.body_id == plan.body_id, _chunks.c.first_group == first_group
            )
            async with self._database.reading() as connection:
                data = await connection.scalar(query)
            if data is None:
                raise PlanNotFoundError(plan.plan_id)
            yield data
        yield ends.tail

    async def delete(self, plan_id: str, now: datetime, once: Once | None = None) -> None:
        async with self._database.writing() as connection:
            await claim(connection, once, now)
            query = sa.delete(_plans).where(_plans.c.plan_id == plan_id, _plans.c.expires_at > now)
            rows = (await connection.execute(query.returning(_plans.c.body_id))).all()
            if not rows:
                raise PlanNotFoundError(plan_id)
            await _drop_unused(connection, [body_id for (body_id,) in rows])
            await settle(connection, once, None)

    async def renew(self, plan_id: str, lease_until: datetime) -> bool:
        async with self._database.writing() as connection:
            result = await connection.execute(
                sa.update(_plans)
                .where(_plans.c.plan_id == plan_id, _plans.c.status == "submitted")
                .values(lease_until=lease_until)
            )
        return result.rowcount == 1

    async def adopt(self, now: datetime, lease_until: datetime) -> Sequence[PlanRecord]:
        is_abandoned = (
            (_plans.c.status == "submitted")
            & (_plans.c.lease_until < now)
            & (_plans.c.expires_at > now)
        )
        query = sa.select(_plans).where(is_abandoned).limit(_ADOPTED)
        plans = []
        for row in await self._database.rows(query):
            async with self._database.writing() as connection:
                result = await connection.execute(
                    sa.update(_plans)
                    .where(is_abandoned, _plans.c.plan_id == row.plan_id)
                    .values(lease_until=lease_until)
                )
            if result.rowcount == 1:
                plans.append(_record_of(row))
        return plans

    async def purge(self, now: datetime) -> int:
        async with self._database.writing() as connection:
            query = sa.delete(_plans).where(_plans.c.expires_at <= now)
            rows = (await connection.execute(query.returning(_plans.c.body_id))).all()
            await _drop_unused(connection, [body_id for (body_id,) in rows])
        async with self._database.writing() as connection:
            # If two plans with the same groups were deleted at the same moment, these remain.
            await _drop(connection, _bodies.c.created_at <= now - _ORPHANED)
        async with self._database.reading() as connection:
            total = await connection.scalar(sa.select(sa.func.sum(_bodies.c.size_bytes)))
        self._kept_bytes = int(total or 0)
        return len(rows)


async def forget_plans(connection: AsyncConnection, table_id: int) -> int:
    """Delete the plans of a table with their groups, and those of deleted tables; return how many the table had."""
    is_gone = _plans.c.table_id.not_in(sa.select(schema.tables.c.table_id))
    query = sa.delete(_plans).where((_plans.c.table_id == table_id) | is_gone)
    rows = (await connection.execute(query.returning(_plans.c.table_id, _plans.c.body_id))).all()
    await _drop_unused(connection, [row.body_id for row in rows])
    return sum(row.table_id == table_id for row in rows)


async def _drop_unused(connection: AsyncConnection, body_ids: Sequence[str | None]) -> None:
    """Drop the given groups if no plan uses them any more."""
    ids = [body_id for body_id in body_ids if body_id is not None]
    for begin in range(0, len(ids), _PER_DELETE):
        await _drop(connection, _bodies.c.body_id.in_(ids[begin : begin + _PER_DELETE]))


async def _drop(connection: AsyncConnection, some: sa.ColumnElement[bool]) -> None:
    is_unused = ~sa.exists().where(_plans.c.body_id == _bodies.c.body_id)
    # A plan that shares groups may be stored meanwhile. Its foreign key then makes the deletion
    # fail, and all of them stay until the next time.
    with suppress(IntegrityError):
        async with connection.begin_nested():
            await connection.execute(sa.delete(_bodies).where(some, is_unused))


def _row_of(plan: PlanRecord) -> dict[str, Any]:
    return {
        "plan_id": plan.plan_id,
        "principal": plan.principal,
        "table_id": plan.table_id,
        "snapshot_id": plan.snapshot_id,
        "status": plan.state,
        "created_at": plan.created_at,
        "expires_at": plan.expires_at,
        # Fields that the request left out must stay so: its session and its table set them.
        "request": plan.request.model_dump_json(exclude_unset=True),
        "request_key": plan.request_key,
        "info": None if plan.info is None else plan.info.model_dump_json(),
        "problem": None if plan.problem is None else json.dumps(plan.problem),
        "body_id": plan.body_id,
    }


def _record_of(row: Any) -> PlanRecord:
    return PlanRecord(
        plan_id=row.plan_id,
        principal=row.principal,
        table_id=row.table_id,
        snapshot_id=row.snapshot_id,
        state=row.status,
        created_at=utc(row.created_at),
        expires_at=utc(row.expires_at),
        request=PlanRequest.model_validate_json(row.request),
        request_key=row.request_key,
        info=None if row.info is None else Plan.model_validate_json(row.info),
        problem=None if row.problem is None else json.loads(row.problem),
        body_id=row.body_id,
    )
