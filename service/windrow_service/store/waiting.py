"""Work that waits, and what is left alone: rows of receipts within a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_core.models import Answer
from windrow_service.store import schema
from windrow_service.usecases.maintenance.work import REQUESTED, NewWork, Skip, WorkBody

LEFT_ALONE = "left_alone"
_receipts = schema.receipts
# Waiting work that each round decides anew; what somebody asked for stays.
IS_DECIDED = (_receipts.c.state == "waiting") & (_receipts.c.reason != REQUESTED)
# The same decision again is counted for so long, and then gets another receipt.
_SAME = timedelta(days=1)


class SkipBody(Answer):
    """What is stored of partitions that are left alone."""

    text: str


async def busy_folders(connection: AsyncConnection) -> set[tuple[str, str]]:
    """Return the table and folder of partitions that a worker has, or that somebody asked for."""
    columns = _receipts.c
    query = sa.select(columns.table_name, columns.body).where(
        (columns.state == "running")
        | ((columns.state == "waiting") & (columns.reason == REQUESTED))
    )
    return {
        (row.table_name, folder)
        for row in (await connection.execute(query)).all()
        for folder in WorkBody.model_validate_json(row.body).folders
    }


def without(work: NewWork, busy: set[tuple[str, str]]) -> NewWork | None:
    """Return work without busy partitions; None if nothing is left."""
    body = work.body
    pairs = zip(body.folders, body.folder_bytes, strict=True)
    free = [(folder, size) for folder, size in pairs if (work.table, folder) not in busy]
    if not free:
        return None
    folders, sizes = map(list, zip(*free, strict=True))
    changes = {"folders": folders, "folder_bytes": sizes}
    return NewWork(table=work.table, body=body.model_copy(update=changes))


async def add_work(
    connection: AsyncConnection, work: Sequence[NewWork], now: datetime, reason: str = "waiting"
) -> int:
    """Let work wait, except for what a worker has already; return how much."""
    busy = await busy_folders(connection)
    # A worker may have taken some of it since it was decided.
    rows = [
        {
            "table_name": one.table,
            "state": "waiting",
            "reason": reason,
            "first_at": now,
            "last_at": now,
            "times": 0,
            "body": one.body.model_dump_json(),
        }
        for one in work
        if not any((one.table, folder) in busy for folder in one.body.folders)
    ]
    if rows:
        await connection.execute(sa.insert(_receipts), rows)
    return len(rows)


async def add_skips(connection: AsyncConnection, skips: Sequence[Skip], now: datetime) -> None:
    """Record what is left alone; the same again within a day is counted."""
    columns = _receipts.c
    query = sa.select(columns.number, columns.table_name, columns.reason).where(
        columns.state == LEFT_ALONE, columns.last_at > now - _SAME, columns.first_at > now - _SAME
    )
    numbers = {
        (row.table_name, row.reason): row.number for row in (await connection.execute(query)).all()
    }
    again, fresh = [], []
    for skip in skips:
        number = numbers.get((skip.table, skip.reason))
        body = SkipBody(text=skip.text).model_dump_json()
        if number is not None:
            again.append({"at_number": number, "new_last_at": now, "new_body": body})
        else:
            fresh.append(
                {
                    "table_name": skip.table,
                    "state": LEFT_ALONE,
                    "reason": skip.reason,
                    "first_at": now,
                    "last_at": now,
                    "times": 1,
                    "body": body,
                }
            )
    if again:
        await connection.execute(
            sa.update(_receipts)
            .where(columns.number == sa.bindparam("at_number"))
            .values(
                last_at=sa.bindparam("new_last_at"),
                body=sa.bindparam("new_body"),
                times=columns.times + 1,
            ),
            again,
        )
    if fresh:
        await connection.execute(sa.insert(_receipts), fresh)
