"""What a policy would drop now, before it is set."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_core.models import (
    Policy,
    PolicyDefinition,
    RetentionPreview,
    TableRetention,
)
from windrow_service.usecases.maintenance.policies import (
    DefinePolicy,
    maintenance_of,
    names_of,
)
from windrow_service.usecases.maintenance.ports import PolicyStore
from windrow_service.usecases.maintenance.retention import OldPartitions, RetentionFinder
from windrow_service.usecases.ports import Clock
from windrow_service.usecases.tables.ports import TableStore

_PAGE = 200
_MAX_TABLES = 1_000
_SHOWN_VALUES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewRetention:
    """Show which partitions a policy would drop."""

    tables: TableStore
    policies: PolicyStore
    define: DefinePolicy
    finder: RetentionFinder
    clock: Clock

    async def __call__(self, pattern: str, definition: PolicyDefinition) -> RetentionPreview:
        """Return what would be dropped of each table of a pattern if its policy were this.

        Other policies stay as they are, and may decide otherwise about some of the tables.

        Raises:
            InvalidPolicyError: A window or a time zone is not valid, or the policy is too long.
            InvalidFilterError: The filter cannot be read.
            BusyError: Too much is waiting already.
        """
        await self.define.check(definition)
        now = self.clock()
        others = [one.info for one in await self.policies.list() if one.info.pattern != pattern]
        policy = Policy(pattern=pattern, created_at=now, updated_at=now, **dict(definition))
        going: list[TableRetention] = []
        staying: list[TableRetention] = []
        partitions = files = size_bytes = 0
        after, more = "", True
        while more:
            page = await self.tables.page(after, _PAGE, names_of(pattern))
            more = page.more
            for table in page:
                after = table.info.name
                effective = maintenance_of(after, [*others, policy]).policy
                outcome = await self.finder.find(table, effective, now)
                if isinstance(outcome, OldPartitions):
                    removal = outcome.removal
                    partitions += removal.partitions
                    files += removal.files
                    size_bytes += removal.size_bytes
                    values = list(outcome.values[:_SHOWN_VALUES])
                    entry = TableRetention(
                        table=after, removal=removal, values=values, text=outcome.text
                    )
                    going.append(entry)
                else:
                    text = outcome.text
                    staying.append(TableRetention(table=after, removal=None, values=[], text=text))
        return RetentionPreview(
            tables=[*going, *staying][:_MAX_TABLES],
            partitions=partitions,
            files=files,
            size_bytes=size_bytes,
        )
