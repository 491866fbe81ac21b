"""The audit log: who changed what."""

from __future__ import annotations

from datetime import datetime

from windrow_calls.listing import Listing
from windrow_calls.transport import Calls
from windrow_core.models import AuditPage, AuditRecord


class AuditCalls(Calls):
    """Calls about the audit log; they need the scope `admin`."""

    def changes(
        self,
        *,
        table: str | None = None,
        principal: str | None = None,
        since: datetime | None = None,
    ) -> Listing[AuditRecord]:
        """Return the changes of tables, snapshots, cache rules, writes and tokens, newest first.

        Args:
            table: Only changes of this table.
            principal: Only changes by this caller.
            since: Only changes from this time on, with a time zone.

        Example:
            client.changes(table="sales.events")
        """
        limits = {
            "table": table,
            "principal": principal,
            "since": None if since is None else since.isoformat(),
        }
        params = {name: value for name, value in limits.items() if value is not None}
        return self._transport.listing(AuditPage, "changes", "/audit", params)
