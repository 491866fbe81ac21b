"""Lists of tables in a SQL database: it sorts and counts, so that only the page is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_service.planner.upkeep.health import (
    FAIR_DAILY,
    FAIR_EACH,
    HEALTHS,
    POOR_DAILY,
    POOR_EACH,
    READ_DAYS,
)
from windrow_service.store import schema
from windrow_service.store.database import Database
from windrow_service.store.figures import (
    WITH_SNAPSHOTS,
    current_figures,
    is_worthwhile,
    reads_of_tables,
    snapshot_without_columns,
    surplus_of,
    without_columns,
)
from windrow_service.store.pages import as_json
from windrow_service.store.table_names import is_among
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import Clock
from windrow_service.usecases.tables.lists import ListedTable, TableConditions, TableOrder

_key, _name = schema.tables.c.table_id, schema.tables.c.name
_refreshes = schema.refreshes.c
# With its dot; empty for names without one.
_NAMESPACE = sa.func.rtrim(_name, sa.func.replace(_name, ".", ""))


class SqlTableLists:
    """`TableLists` in a SQL database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def page(
        self, conditions: TableConditions, offset: int, limit: int, among: Names
    ) -> tuple[int, Sequence[ListedTable]]:
        where = [
            is_among(among),
            sa.func.lower(_name).contains(conditions.containing.lower(), autoescape=True),
        ]
        if conditions.namespace:
            where.append(_NAMESPACE.in_([f"{conditions.namespace}."]))
        by_health = conditions.health is not None or conditions.order == "health"
        figures = self._figures(where, with_reads=by_health)
        is_wanted: sa.ColumnElement[bool] = sa.true()
        if conditions.health is not None:
            is_wanted = self._rank(figures) == HEALTHS.index(conditions.health)
        count_query = sa.select(sa.func.count()).select_from(figures).where(is_wanted)
        value = self._value(conditions.order, figures)
        order = value.desc() if conditions.is_descending else value.asc()
        # Only the keys are sorted: sorting whole rows takes longer. The same pass counts all of them.
        keys_query = (
            sa.select(figures.c.table_id, sa.func.count().over().label("total"))
            .where(is_wanted)
            .order_by(order.nulls_last(), figures.c.name)
            .offset(offset)
            .limit(limit)
        )
        text = without_columns(schema.snapshots.c.info, self._database.is_postgresql)
        query = sa.select(
            _key,
            _name,
            text.label("figures"),
            self._is_failing(_key).label("is_failing"),
        ).select_from(WITH_SNAPSHOTS)
        async with self._database.reading() as connection:
            first = (await connection.execute(keys_query)).all()
            keys = [row.table_id for row in first]
            # A page past the end has no row with the count.
            count = first[0].total if first else await connection.scalar(count_query)
            rows = (await connection.execute(query.where(_key.in_(keys)))).all()
            reads = await self._reads_of(connection, [row.name for row in rows])
            by_key = {
                row.table_id: ListedTable(
                    row.name,
                    row.figures and snapshot_without_columns(row.figures),
                    is_failing=bool(row.is_failing),
                    reads=reads.get(row.name, 0),
                )
                for row in rows
            }
        return count or 0, [by_key[one] for one in keys if one in by_key]

    async def reads(self, name: str) -> int:
        async with self._database.reading() as connection:
            return (await self._reads_of(connection, [name])).get(name, 0)

    async def namespaces(self, limit: int, among: Names) -> Sequence[str]:
        query = (
            sa.select(_NAMESPACE.label("namespace"))
            .where(is_among(among), _NAMESPACE != "")
            .distinct()
            .order_by("namespace")
            .limit(limit)
        )
        async with self._database.reading() as connection:
            return [one.removesuffix(".") for one in await connection.scalars(query)]

    async def _reads_of(self, connection: AsyncConnection, names: Sequence[str]) -> dict[str, int]:
        reads = self._reads()
        rows = await connection.execute(sa.select(reads).where(reads.c.table_name.in_(names)))
        return {row.table_name: row[1] for row in rows}

    def _figures(self, where: Sequence[sa.ColumnElement[bool]], *, with_reads: bool) -> sa.CTE:
        """Return what tables are sorted and judged by."""
        figures = current_figures(where, _key, _name, schema.tables.c.current_snapshot_id)
        if not with_reads:
            return figures
        reads = self._reads()
        query = sa.select(figures, reads.c["count"].label("reads"))
        return query.outerjoin_from(figures, reads, reads.c.table_name == figures.c.name).cte(
            "with_reads"
        )

    def _value(self, order: TableOrder, figures: sa.CTE) -> sa.ColumnElement[Any]:
        of = figures.c
        if order == "name":
            return of.name
        if order == "files":
            return of.file_count
        if order == "size":
            return of.size_bytes
        if order == "mean":
            return sa.cast(of.size_bytes, sa.Float) / sa.func.nullif(of.file_count, 0)
        if order == "snapshot":
            return of.created_at
        if order == "health":
            return self._rank(figures)
        return surplus_of(of.file_count, of.size_bytes, of.fewest_files)

    def _rank(self, figures: sa.CTE) -> sa.ColumnElement[int]:
        """Return the position of a table's health in `HEALTHS`; see `health_of`."""
        of = figures.c
        surplus = surplus_of(of.file_count, of.size_bytes, of.fewest_files)
        reads = sa.func.coalesce(of.reads, 0)
        return sa.case(
            (self._is_failing(of.table_id), HEALTHS.index("failing")),
            (of.current_snapshot_id.is_(None), HEALTHS.index("unread")),
            (is_worthwhile(surplus, reads, POOR_EACH, POOR_DAILY), HEALTHS.index("poor")),
            (is_worthwhile(surplus, reads, FAIR_EACH, FAIR_DAILY), HEALTHS.index("fair")),
            else_=HEALTHS.index("good"),
        )

    def _reads(self) -> sa.CTE:
        """Return how often tables were read in the last days."""
        return reads_of_tables(self._clock() - timedelta(days=READ_DAYS))

    def _is_failing(self, table_id: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
        text = _refreshes.status
        status = as_json(text, self._database.is_postgresql)["status"].as_string()
        # A lease that has run out belongs to a runner that is presumed dead.
        is_over = sa.case(
            (_refreshes.lease_until.is_not(None), _refreshes.lease_until < self._clock()),
            # Most texts need not be read as JSON.
            (text.not_like("%failed%"), sa.false()),
            else_=status == "failed",
        )
        return sa.exists().where(_refreshes.table_id == table_id, is_over)
