"""Ports of maintenance: the store of policies and of the budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from windrow_core.models import MaintenanceBudget, Policy, PolicyDefinition
from windrow_service.usecases.ports import Once

# Each round of decisions reads all of them.
MAX_POLICIES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPolicy:
    """A policy as callers see it, and its version, which changes whenever it does: its ETag."""

    info: Policy
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBudget:
    """The budget, and its version."""

    info: MaintenanceBudget
    version: str


class PolicyStore(Protocol):
    """Policies by pattern, and the budget of all maintenance."""

    async def put(
        self,
        pattern: str,
        definition: PolicyDefinition,
        if_match: str | None,
        once: Once | None = None,
    ) -> tuple[StoredPolicy, bool]:
        """Make or replace a policy; return it, and whether it is new.

        Args:
            pattern: The names of tables that it applies to.
            definition: How these are maintained.
            if_match: The version that it must have; `*` for any, None for no condition.
            once: The caller's key.

        Raises:
            PolicyChangedError: The policy is at another version, or does not exist.
            TooManyPoliciesError: It is new, and there are `MAX_POLICIES`.
        """

    async def get(self, pattern: str) -> StoredPolicy:
        """Return a policy.

        Raises:
            PolicyNotFoundError: There is none for this pattern.
        """

    async def list(self) -> Sequence[StoredPolicy]:
        """Return all policies by pattern."""

    async def delete(self, pattern: str, if_match: str | None, once: Once | None = None) -> None:
        """Delete a policy.

        Raises:
            PolicyNotFoundError: There is none for this pattern.
            PolicyChangedError: It is at another version.
        """

    async def budget(self) -> StoredBudget:
        """Return the budget, which is the default one if none was set."""

    async def set_budget(
        self, budget: MaintenanceBudget, if_match: str | None, once: Once | None = None
    ) -> tuple[StoredBudget, bool]:
        """Set the budget; return it, and whether it is the first one.

        Raises:
            BudgetChangedError: The budget is at another version.
        """
