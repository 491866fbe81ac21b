"""What erasures need from outside."""

from __future__ import annotations

from typing import Protocol

from windrow_core.models.erasures import ErasureReceipt
from windrow_service.usecases.tables.ports import StoredTable


class ErasureStore(Protocol):
    """What the database keeps of tables beside their current snapshot."""

    async def forget_plans(self, table: StoredTable) -> int:
        """Forget the plans of a table, and the filters of past ones; return how many plans."""

    async def sharing(self, table: StoredTable) -> int:
        """Return how many other tables have locations that overlap a table's own."""

    async def scrub(self) -> str | None:
        """Overwrite what was deleted; return what may be left of it, and what helps."""

    async def note(self, table: StoredTable, receipt: ErasureReceipt) -> None:
        """Record a receipt in the audit log."""
