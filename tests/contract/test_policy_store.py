"""Behaviour of the store of policies and of the budget on every database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timezone
from functools import partial

import pytest
import sqlalchemy as sa

from tests.support.servers.databases import on_database
from windrow_core.models import MaintenanceBudget, PolicyDefinition
from windrow_service.store.database import Database
from windrow_service.store.policies import SqlPolicyStore
from windrow_service.usecases.errors import RepeatedRequestError
from windrow_service.usecases.maintenance.errors import (
    BudgetChangedError,
    PolicyChangedError,
    PolicyNotFoundError,
    TooManyPoliciesError,
)
from windrow_service.usecases.maintenance.ports import MAX_POLICIES
from windrow_service.usecases.ports import Once

NOW = datetime(2026, 11, 21, tzinfo=timezone.utc)
LARGE = PolicyDefinition.model_validate({"target_file_size": "256MB", "filter": "ds > 'a'"})
OFF = PolicyDefinition(enabled=False)

Law = Callable[[SqlPolicyStore], Awaitable[None]]


@pytest.fixture
def holds(database_url: sa.URL) -> Callable[[Law], None]:
    """Run a law on a database."""

    async def run(law: Law, database: Database) -> None:
        await law(SqlPolicyStore(database, lambda: NOW))

    return lambda law: on_database(database_url, partial(run, law))


Holds = Callable[[Law], None]


def test_a_policy_exists_until_it_is_deleted(holds: Holds) -> None:
    async def law(policies: SqlPolicyStore) -> None:
        first, is_new = await policies.put("sales.*", LARGE, None)
        again, is_new_again = await policies.put("sales.*", LARGE, first.version)
        later, _ = await policies.put("sales.*", OFF, "*")

        assert (is_new, is_new_again, again) == (True, False, first)
        assert first.info.target_file_size == 256 * 2**20
        assert later == await policies.get("sales.*")
        assert (later.info.enabled, later.info.filter) == (False, None)
        for stale in (first.version, "other"):
            with pytest.raises(PolicyChangedError):
                await policies.put("sales.*", LARGE, stale)
            with pytest.raises(PolicyChangedError):
                await policies.delete("sales.*", stale)
        for pattern in ("b", "*", "B"):
            await policies.put(pattern, OFF, None)
        patterns = [one.info.pattern for one in await policies.list()]
        assert patterns == ["*", "B", "b", "sales.*"]
        await policies.delete("sales.*", later.version)
        with pytest.raises(PolicyNotFoundError):
            await policies.get("sales.*")
        with pytest.raises(PolicyNotFoundError):
            await policies.delete("sales.*", None)
        with pytest.raises(PolicyChangedError):
            await policies.put("sales.*", LARGE, "*")

    holds(law)


def test_the_number_of_policies_is_limited_and_a_change_is_made_once_per_key(
    holds: Holds,
) -> None:
    once = Once(principal="me", key="k", fingerprint="f", answer=lambda result: f"{result!r}")

    async def law(policies: SqlPolicyStore) -> None:
        result = await policies.put("t0", LARGE, None, once)
        with pytest.raises(RepeatedRequestError) as repeated:
            await policies.put("t0", LARGE, None, once)
        assert repeated.value.answer == repr(result)
        for number in range(1, MAX_POLICIES):
            await policies.put(f"t{number}", OFF, None)

        with pytest.raises(TooManyPoliciesError):
            await policies.put("more", OFF, None)
        assert not (await policies.put("t0", OFF, None))[1]

    holds(law)


def test_the_budget_has_a_default_until_one_is_set(holds: Holds) -> None:
    small = MaintenanceBudget(core_seconds_per_hour=60, bytes_per_hour=2**30)

    async def law(policies: SqlPolicyStore) -> None:
        default = await policies.budget()
        assert default.info == MaintenanceBudget()

        first, is_first = await policies.set_budget(small, default.version)
        again, is_first_again = await policies.set_budget(small, None)
        later, _ = await policies.set_budget(MaintenanceBudget(), first.version)

        assert (is_first, is_first_again, again) == (True, False, first)
        assert (first.info, later.info) == (small, MaintenanceBudget())
        assert await policies.budget() == later
        with pytest.raises(BudgetChangedError):
            await policies.set_budget(small, first.version)

    holds(law)
