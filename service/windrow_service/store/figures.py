"""Figures of tables and snapshots without their columns, for metrics and pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from windrow_core.models import SnapshotInfo
from windrow_core.sizes import WELL_SIZED_BYTES
from windrow_service.planner.upkeep.health import READ_DAYS
from windrow_service.store import schema
from windrow_service.store.database import Database
from windrow_service.store.pages import without_fields
from windrow_service.telemetry.meters import TableFigures

_of = schema.snapshot_figures.c
# Tables joined with their current snapshots, and with the figures of these, if they have one.
WITH_SNAPSHOTS = schema.tables.outerjoin(
    schema.snapshots,
    (schema.snapshots.c.table_id == schema.tables.c.table_id)
    & (schema.snapshots.c.snapshot_id == schema.tables.c.current_snapshot_id),
)
_WITH_FIGURES = schema.tables.outerjoin(
    schema.snapshot_figures,
    (_of.table_id == schema.tables.c.table_id)
    & (_of.snapshot_id == schema.tables.c.current_snapshot_id),
)


class SqlTableFigures:
    """Reads figures about tables in a SQL database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def worst(self, limit: int) -> tuple[int, Sequence[TableFigures]]:
        """Return how many tables there are, and figures of those with the most excess files."""
        tables = schema.tables.c
        surplus = surplus_of(_of.file_count, _of.size_bytes, _of.fewest_files).label("surplus")
        query = (
            sa.select(tables.name, _of.file_count, _of.size_bytes, surplus)
            .select_from(_WITH_FIGURES)
            .where(tables.current_snapshot_id.is_not(None))
            .order_by(sa.desc("surplus"), tables.name)
            .limit(limit)
        )
        async with self._database.reading() as connection:
            count = await connection.scalar(sa.select(sa.func.count()).select_from(schema.tables))
            rows = await connection.execute(query)
            return count or 0, [
                TableFigures(name, files, size_bytes, max(surplus, 0))
                for name, files, size_bytes, surplus in rows
            ]


def current_figures(
    where: Sequence[sa.ColumnElement[bool]], *others: sa.ColumnElement[Any]
) -> sa.CTE:
    """Return the numbers of tables' current snapshots, and when these were made.

    Args:
        where: Conditions on the tables.
        *others: Further columns of tables.
    """
    numbers = (_of.created_at, _of.file_count, _of.size_bytes, _of.fewest_files)
    query = sa.select(*others, *numbers).select_from(_WITH_FIGURES).where(*where)
    return query.cte("figures")


def reads_of_tables(since: datetime) -> sa.CTE:
    """Return the number of plans since then, by name of the table; tables without are left out."""
    of = schema.plan_history.c
    count = sa.func.count().label("count")
    query = sa.select(of.table_name, count).where(of.created_at >= since).group_by(of.table_name)
    return query.cte("reads")


def is_worthwhile(
    excess: sa.ColumnElement[int], reads: sa.ColumnElement[int], each: int, daily: int
) -> sa.ColumnElement[bool]:
    """Return, in SQL, whether reads lose so much to excess files; see `planner.upkeep.health`."""
    return (excess >= each) | (excess * reads >= daily * READ_DAYS)


def without_columns(info: sa.ColumnElement[Any], on_server: bool) -> sa.ColumnElement[Any]:
    """Return the text of a snapshot without its long parts, for `snapshot_without_columns`."""
    return without_fields(info, ("columns", "partition_columns", "valid_write_ids"), on_server)


def snapshot_without_columns(text: str) -> SnapshotInfo:
    """Return a snapshot of which `without_columns` left only the figures."""
    figures = json.loads(text) | {"columns": [], "partition_columns": []}
    return SnapshotInfo.model_validate(figures)


def surplus_of(
    files: sa.ColumnElement[int], size: sa.ColumnElement[int], fewest: sa.ColumnElement[int]
) -> sa.ColumnElement[int]:
    """Return `planner.upkeep.health.excess_files` in SQL, except that it may be negative."""
    by_size = (size + WELL_SIZED_BYTES - 1) // WELL_SIZED_BYTES
    # Snapshots of earlier versions have no fewest files.
    return files - sa.case((by_size < fewest, fewest), else_=by_size)
