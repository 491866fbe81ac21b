"""Check policies, and find out how a table is maintained: the most specific policy wins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from windrow_core.models import (
    EffectivePolicy,
    Policy,
    PolicyDefinition,
    TableMaintenance,
)
from windrow_service.filters.limits import FilterLimits
from windrow_service.filters.sql import parse_sql
from windrow_service.usecases.maintenance.errors import InvalidPolicyError
from windrow_service.usecases.maintenance.ports import PolicyStore, StoredPolicy
from windrow_service.usecases.maintenance.windows import require_window, require_zone
from windrow_service.usecases.names import Names
from windrow_service.usecases.ports import Once, Runner

_EVERY, _BELOW = "*", ".*"
# All policies are listed in one answer.
_MAX_CHARACTERS = 4_000
_FIELDS = tuple(EffectivePolicy.model_fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinePolicy:
    """Make a policy, or replace it."""

    policies: PolicyStore
    runner: Runner
    filter_limits: FilterLimits

    async def __call__(
        self,
        pattern: str,
        definition: PolicyDefinition,
        if_match: str | None,
        once: Once | None = None,
    ) -> tuple[StoredPolicy, bool]:
        """Return the policy, and whether it is new.

        Raises:
            InvalidPolicyError: A window has no length or an unknown time zone, or the policy is
                too long.
            InvalidFilterError: The filter cannot be read.
            PolicyChangedError: The policy is not at version `if_match`.
            TooManyPoliciesError: The policy is new, and there are `MAX_POLICIES`.
            BusyError: Too much is waiting already.
        """
        await self.check(definition)
        return await self.policies.put(pattern, definition, if_match, once)

    async def check(self, definition: PolicyDefinition) -> None:
        """Make sure that a policy can work.

        Raises:
            InvalidPolicyError: A window or a time zone is not valid, or the policy is too long.
            InvalidFilterError: The filter cannot be read.
            BusyError: Too much is waiting already.
        """
        await self.runner.run(lambda: self._check(definition))

    def _check(self, definition: PolicyDefinition) -> None:
        for window in definition.windows or ():
            require_window(window)
        if definition.keep_zone is not None:
            require_zone(definition.keep_zone)
        length = len(definition.model_dump_json())
        if length > _MAX_CHARACTERS:
            raise InvalidPolicyError(
                f"the policy takes {length:,} characters, and {_MAX_CHARACTERS:,} are allowed: "
                "shorten its filter, for example by ranges in place of lists of values"
            )
        if isinstance(definition.filter, str):
            # Tables differ in their columns, to which it is bound when they are looked at.
            limits = self.filter_limits
            parse_sql(definition.filter, max_nodes=limits.max_nodes, max_depth=limits.max_depth)


def applies(pattern: str, table: str) -> bool:
    """Return whether a policy for a pattern applies to a table."""
    if pattern.endswith(_BELOW):
        return table.startswith(pattern[:-1])
    return pattern in (_EVERY, table)


def maintenance_of(table: str, policies: Iterable[Policy]) -> TableMaintenance:
    """Return how a table is maintained; the order of the policies does not matter."""
    # A pattern that applies is longer the more specific it is; `name.*` does not apply to `name`.
    chain = sorted((one for one in policies if applies(one.pattern, table)), key=_specificity)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for policy in chain:
        for name in _FIELDS:
            value = getattr(policy, name)
            if value is not None:
                values[name], sources[name] = value, policy.pattern
    return TableMaintenance(table=table, policy=EffectivePolicy(**values), sources=sources)


def _specificity(policy: Policy) -> int:
    pattern = policy.pattern
    return 0 if pattern == _EVERY else len(pattern.removesuffix(_BELOW))


def names_of(pattern: str) -> Names:
    """Return the names that a pattern describes."""
    if pattern == _EVERY:
        return Names(every=True)
    if pattern.endswith(_BELOW):
        return Names(below=frozenset((pattern[:-1],)))
    return Names(exact=frozenset((pattern,)))
