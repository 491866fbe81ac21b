"""Lists of tables in a SQL database: it sorts and counts, so that only the page is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from windrow_service.planner.upkeep.health import (
    FAIR_WASTE,
    FEW_EXCESS,
    HEALTHS,
    OPEN_FILE_BYTES,
    POOR_WASTE,
)
from windrow_service.store import schema
from windrow_service.store.database import Database
from windrow_service.store.figures import (
    WITH_SNAPSHOTS,
    number_of,
    snapshot_without_columns,
    surplus_files,
    without_columns,
)
from windrow_service.store.pages import without_nulls
from windrow_service.store.table_names import is_among
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import Clock
from windrow_service.usecases.tables.lists import ListedTable, TableConditions

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
        counted: Any = schema.tables
        if conditions.health is not None:
            counted = WITH_SNAPSHOTS
            where.append(self._rank() == HEALTHS.index(conditions.health))
        value = self._value(conditions)
        order = value.desc() if conditions.is_descending else value.asc()
        # Only the keys are sorted: sorting whole rows takes longer.
        keys_query = (
            sa.select(_key)
            .select_from(WITH_SNAPSHOTS)
            .where(*where)
            .order_by(order.nulls_last(), _name)
            .offset(offset)
            .limit(limit)
        )
        figures = without_columns(schema.snapshots.c.info, self._database.is_postgresql)
        query = sa.select(
            _key, _name, figures.label("figures"), self._is_failing().label("is_failing")
        ).select_from(WITH_SNAPSHOTS)
        async with self._database.reading() as connection:
            count = await connection.scalar(
                sa.select(sa.func.count()).select_from(counted).where(*where)
            )
            keys = list(await connection.scalars(keys_query))
            rows = await connection.execute(query.where(_key.in_(keys)))
            by_key = {
                row.table_id: ListedTable(
                    row.name,
                    row.figures and snapshot_without_columns(row.figures),
                    is_failing=bool(row.is_failing),
                )
                for row in rows
            }
        return count or 0, [by_key[one] for one in keys if one in by_key]

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

    def _value(self, conditions: TableConditions) -> sa.ColumnElement[Any]:
        on_server = self._database.is_postgresql
        files, size = number_of("file_count", on_server), number_of("size_bytes", on_server)
        if conditions.order == "name":
            return _name
        if conditions.order == "files":
            return files
        if conditions.order == "size":
            return size
        if conditions.order == "mean":
            return sa.cast(size, sa.Float) / sa.func.nullif(files, 0)
        if conditions.order == "snapshot":
            return schema.snapshots.c.created_at
        if conditions.order == "health":
            return self._rank()
        return surplus_files(on_server)

    def _rank(self) -> sa.ColumnElement[int]:
        """Return the position of a table's health in `HEALTHS`; see `health_of`."""
        on_server = self._database.is_postgresql
        files, size = number_of("file_count", on_server), number_of("size_bytes", on_server)
        surplus = surplus_files(on_server)
        cost = sa.cast(OPEN_FILE_BYTES, sa.Float)
        work = sa.func.nullif(files * cost + size, 0)
        # Counting bytes instead of dividing keeps both databases to the same result.
        lost = surplus * cost
        return sa.case(
            (self._is_failing(), HEALTHS.index("failing")),
            (schema.tables.c.current_snapshot_id.is_(None), HEALTHS.index("unread")),
            (
                sa.or_(surplus < FEW_EXCESS, lost < FAIR_WASTE * work, work.is_(None)),
                HEALTHS.index("good"),
            ),
            (lost < POOR_WASTE * work, HEALTHS.index("fair")),
            else_=HEALTHS.index("poor"),
        )

    def _is_failing(self) -> sa.ColumnElement[bool]:
        text = _refreshes.status
        if self._database.is_postgresql:
            status = sa.cast(without_nulls(text), postgresql.JSON)["status"].astext
        else:
            status = sa.func.json_extract(text, "$.status")
        # A lease that has run out belongs to a runner that is presumed dead.
        is_over = sa.case(
            (_refreshes.lease_until.is_(None), status == "failed"),
            else_=_refreshes.lease_until < self._clock(),
        )
        return sa.exists().where(_refreshes.table_id == _key, is_over)
