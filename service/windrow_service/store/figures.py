"""Figures about all tables, for metrics."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from windrow_service.store import schema
from windrow_service.store.database import Database
from windrow_service.telemetry.meters import WELL_SIZED_BYTES, TableFigures


class SqlTableFigures:
    """Reads figures about tables in a SQL database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def worst(self, limit: int) -> tuple[int, Sequence[TableFigures]]:
        """Return how many tables there are, and those with the most excess files."""
        files, size_bytes = self._number("file_count"), self._number("size_bytes")
        needed = (size_bytes + WELL_SIZED_BYTES - 1) // WELL_SIZED_BYTES
        excess = sa.case((files > needed, files - needed), else_=0)
        tables, snapshots = schema.tables.c, schema.snapshots.c
        query = (
            sa.select(tables.name, files, size_bytes, excess.label("excess"))
            .join(
                schema.snapshots,
                (snapshots.table_id == tables.table_id)
                & (snapshots.snapshot_id == tables.current_snapshot_id),
            )
            .order_by(sa.desc("excess"), tables.name)
            .limit(limit)
        )
        async with self._database.reading() as connection:
            count = await connection.scalar(sa.select(sa.func.count()).select_from(schema.tables))
            rows = await connection.execute(query)
            return count or 0, [TableFigures(*row) for row in rows]

    def _number(self, field: str) -> sa.ColumnElement[int]:
        info = schema.snapshots.c.info
        if self._database.is_postgresql:
            said = sa.cast(info, postgresql.JSON)[field].astext
            return sa.cast(said, sa.BigInteger)
        return sa.cast(sa.func.json_extract(info, f"$.{field}"), sa.BigInteger)
