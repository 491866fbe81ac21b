"""Change how one table is maintained, by its own policy: switch it, and exempt partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windrow_core.models import EffectivePolicy, Policy, PolicyDefinition
from windrow_core.models.maintenance import MAX_EXEMPT_FOLDERS
from windrow_service.usecases.maintenance.errors import InvalidPolicyError
from windrow_service.usecases.maintenance.policies import DefinePolicy, maintenance_of
from windrow_service.usecases.maintenance.ports import PolicyStore, StoredPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTablePolicy:
    """Change a table's own policy, which is made if there is none, and removed if it says nothing.

    All of its methods raise PolicyChangedError if somebody else changes the policy meanwhile.
    """

    policies: PolicyStore
    define: DefinePolicy

    async def switch(self, name: str, *, on: bool) -> None:
        """Let a table be maintained, or leave it alone; its other rules stay."""
        own, _, fallback = await self._find(name)
        definition = definition_of(own).model_copy(update={"enabled": on})
        await self._keep(name, own, definition, fallback)

    async def exempt(self, name: str, folder: str) -> None:
        """Leave a partition alone.

        Raises:
            InvalidPolicyError: The table has `MAX_EXEMPT_FOLDERS` such partitions.
        """
        own, policy, fallback = await self._find(name)
        folders = [*policy.exempt_folders]
        if folder not in folders:
            folders.append(folder)
        if len(folders) > MAX_EXEMPT_FOLDERS:
            raise InvalidPolicyError(
                f"a policy names at most {MAX_EXEMPT_FOLDERS:,} partitions to leave alone: exempt "
                "more by a filter on partition columns"
            )
        await self._exempt(name, own, policy, fallback, folders)

    async def include(self, name: str, folder: str) -> None:
        """Stop leaving a partition alone that was exempt."""
        own, policy, fallback = await self._find(name)
        folders = [one for one in policy.exempt_folders if one != folder]
        await self._exempt(name, own, policy, fallback, folders)

    async def _exempt(
        self,
        name: str,
        own: StoredPolicy | None,
        policy: EffectivePolicy,
        fallback: EffectivePolicy,
        folders: Sequence[str],
    ) -> None:
        own_folders = None if list(folders) == fallback.exempt_folders else list(folders)
        # A table's own policy also decides whether the table is maintained.
        changes = {"enabled": policy.enabled, "exempt_folders": own_folders}
        await self._keep(name, own, definition_of(own).model_copy(update=changes), fallback)

    async def _find(
        self, name: str
    ) -> tuple[StoredPolicy | None, EffectivePolicy, EffectivePolicy]:
        """Return a table's own policy, what holds for it, and what would hold without its own."""
        policies = await self.policies.list()
        own = next((one for one in policies if one.info.pattern == name), None)
        infos = [one.info for one in policies]
        others = [one for one in infos if one.pattern != name]
        return own, maintenance_of(name, infos).policy, maintenance_of(name, others).policy

    async def _keep(
        self,
        name: str,
        own: StoredPolicy | None,
        definition: PolicyDefinition,
        fallback: EffectivePolicy,
    ) -> None:
        version = None if own is None else own.version
        if definition == PolicyDefinition(enabled=fallback.enabled):
            if own is not None:
                await self.policies.delete(name, version)
            return
        await self.define(name, definition, version)


def definition_of(policy: StoredPolicy | Policy | None) -> PolicyDefinition:
    """Return what a policy says; without one, that its tables are maintained."""
    if policy is None:
        return PolicyDefinition()
    info = policy.info if isinstance(policy, StoredPolicy) else policy
    return PolicyDefinition(**{name: getattr(info, name) for name in PolicyDefinition.model_fields})
