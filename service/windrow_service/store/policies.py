"""Policies of maintenance and its budget in a SQL database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from windrow_core.models import (
    AuditedOutcome,
    MaintenanceBudget,
    Policy,
    PolicyDefinition,
)
from windrow_service.store import schema
from windrow_service.store.audit import note
from windrow_service.store.database import Database, insert_missing, utc
from windrow_service.store.idempotency import claim, settle
from windrow_service.store.tables import new_version
from windrow_service.usecases.maintenance.errors import (
    BudgetChangedError,
    PolicyChangedError,
    PolicyNotFoundError,
    TooManyPoliciesError,
)
from windrow_service.usecases.maintenance.ports import MAX_POLICIES, StoredBudget, StoredPolicy
from windrow_service.usecases.ports import NO_VERSION, Clock, Once, is_expected

_policies, _maintenance = schema.policies, schema.maintenance
# Number of the row that all tables share.
ROW = 1
_DEFAULT = StoredBudget(info=MaintenanceBudget(), version="default")


class SqlPolicyStore:
    """`PolicyStore` in a SQL database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def put(
        self,
        pattern: str,
        definition: PolicyDefinition,
        if_match: str | None,
        once: Once | None = None,
    ) -> tuple[StoredPolicy, bool]:
        """Make or replace a policy; repeating the same definition changes nothing."""
        now = self._clock()
        async with self._database.writing() as connection:
            await claim(connection, once, now)
            await lock_maintenance(connection)
            row = await _find(connection, pattern)
            _check_version(pattern, row, if_match)
            values: dict[str, object] = {
                "version": new_version(),
                "definition": definition.model_dump_json(),
                "updated_at": now,
            }
            if row is None:
                count = sa.select(sa.func.count()).select_from(_policies)
                if (await connection.execute(count)).scalar_one() >= MAX_POLICIES:
                    raise TooManyPoliciesError(MAX_POLICIES)
                values |= {"pattern": pattern, "created_at": now}
                await connection.execute(sa.insert(_policies).values(values))
                await self._note(connection, "created", pattern, None, values, definition)
            elif PolicyDefinition.model_validate_json(row.definition) != definition:
                await connection.execute(
                    sa.update(_policies).where(_policies.c.pattern == pattern).values(values)
                )
                await self._note(connection, "changed", pattern, row, values, definition)
            result = _stored(await _find(connection, pattern)), row is None
            await settle(connection, once, result)
            return result

    async def get(self, pattern: str) -> StoredPolicy:
        async with self._database.reading() as connection:
            return _stored(await _require(connection, pattern))

    async def list(self) -> Sequence[StoredPolicy]:
        rows = await self._database.rows(sa.select(_policies))
        # Databases differ in the order of names.
        return [_stored(row) for row in sorted(rows, key=lambda row: row.pattern)]

    async def delete(self, pattern: str, if_match: str | None, once: Once | None = None) -> None:
        async with self._database.writing() as connection:
            await claim(connection, once, self._clock())
            await lock_maintenance(connection)
            row = await _require(connection, pattern)
            _check_version(pattern, row, if_match)
            await connection.execute(sa.delete(_policies).where(_policies.c.pattern == pattern))
            await self._note(connection, "deleted", pattern, row, {})
            await settle(connection, once, None)

    async def budget(self) -> StoredBudget:
        return _budget(await self._database.row(_BUDGET))

    async def set_budget(
        self, budget: MaintenanceBudget, if_match: str | None, once: Once | None = None
    ) -> tuple[StoredBudget, bool]:
        """Set the budget; repeating the same one changes nothing."""
        now = self._clock()
        async with self._database.writing() as connection:
            await claim(connection, once, now)
            await lock_maintenance(connection)
            before = _budget((await connection.execute(_BUDGET)).one_or_none())
            is_first = before is _DEFAULT
            by_none = is_first and if_match == NO_VERSION
            if not by_none and not is_expected(before.version, if_match):
                raise BudgetChangedError(str(if_match), before.version)
            result = before, False
            if is_first or before.info != budget:
                result = StoredBudget(info=budget, version=new_version()), is_first
                await connection.execute(
                    sa.update(_maintenance)
                    .where(_maintenance.c.number == ROW)
                    .values(version=result[0].version, budget=budget.model_dump_json())
                )
                await note(
                    connection,
                    now,
                    "budget",
                    "created" if is_first else "changed",
                    item="budget",
                    before=None if is_first else before.version,
                    after=result[0].version,
                    old=before.info,
                    new=budget,
                )
            await settle(connection, once, result)
            return result

    async def _note(
        self,
        connection: AsyncConnection,
        outcome: AuditedOutcome,
        pattern: str,
        row: Any,
        after: Mapping[str, Any],
        new: PolicyDefinition | None = None,
    ) -> None:
        await note(
            connection,
            self._clock(),
            "policy",
            outcome,
            table=None if pattern.endswith("*") else pattern,
            item=pattern,
            before=None if row is None else row.version,
            after=after.get("version"),
            old=None if row is None else PolicyDefinition.model_validate_json(row.definition),
            new=new,
        )


_BUDGET = sa.select(_maintenance.c.version, _maintenance.c.budget).where(
    _maintenance.c.number == ROW
)


async def lock_maintenance(connection: AsyncConnection) -> None:
    """Lock what all tables share until the transaction ends."""
    await insert_missing(connection, _maintenance, {"number": ROW})
    # An update that changes nothing locks the row, in either database.
    await connection.execute(
        sa.update(_maintenance).where(_maintenance.c.number == ROW).values(number=ROW)
    )


async def _find(connection: AsyncConnection, pattern: str) -> Any:
    query = sa.select(_policies).where(_policies.c.pattern == pattern)
    return (await connection.execute(query)).one_or_none()


async def _require(connection: AsyncConnection, pattern: str) -> Any:
    row = await _find(connection, pattern)
    if row is None:
        raise PolicyNotFoundError(pattern)
    return row


def _check_version(pattern: str, row: Any, if_match: str | None) -> None:
    version = NO_VERSION if row is None else row.version
    if not is_expected(version, if_match):
        raise PolicyChangedError(pattern, str(if_match), version)


def _stored(row: Any) -> StoredPolicy:
    definition = PolicyDefinition.model_validate_json(row.definition)
    info = Policy(
        pattern=row.pattern,
        created_at=utc(row.created_at),
        updated_at=utc(row.updated_at),
        # Not its dump: a filter may be a tree.
        **dict(definition),
    )
    return StoredPolicy(info=info, version=row.version)


def _budget(row: Any) -> StoredBudget:
    if row is None or row.budget is None:
        return _DEFAULT
    return StoredBudget(info=MaintenanceBudget.model_validate_json(row.budget), version=row.version)
