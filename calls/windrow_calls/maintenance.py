"""Maintenance that runs itself: policies, and the budget of all tables together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from windrow_calls.arguments import checked
from windrow_calls.errors import NotFoundError
from windrow_calls.listing import Listing
from windrow_calls.transport import Calls, read_answer, table_path
from windrow_core.cards import ShownList
from windrow_core.models import (
    ClaimRequest,
    ClaimUpdate,
    MaintenanceBudget,
    MaintenanceReceipt,
    MaintenanceRound,
    Policy,
    PolicyDefinition,
    PolicyList,
    QueuedWork,
    ReceiptPage,
    RetentionPreview,
    TableMaintenance,
    WithdrawnWork,
    WorkItem,
    WorkRequest,
)

_BUDGET = "/maintenance/budget"


class MaintenanceCalls(Calls):
    """Calls about maintenance."""

    def set_policy(self, pattern: str, **fields: Any) -> Policy:
        """Create a policy, or change some of its fields; the others stay as they are.

        Args:
            pattern: A table's name, a name followed by `.*` for all below it, or `*`.
            **fields: See `windrow_core.models.PolicyDefinition`, for example
                `target_file_size="256MB"`, `min_age_seconds=3600` or
                `windows=["22:00-06:00 Europe/Berlin"]`. `keep_days=90` lets partitions be dropped
                that are older: look with `preview_retention` first. None leaves a field to less specific
                policies.

        Example:
            client.set_policy("sales.*", target_file_size="256MB", min_age_seconds=3600)
        """
        body, headers = self._changed_policy(pattern, fields)
        answer = self._transport.call("PUT", _path(pattern), body=body, headers=headers)
        return read_answer(Policy, answer)

    def preview_retention(self, pattern: str, **fields: Any) -> RetentionPreview:
        """Return which partitions a changed policy would drop now; nothing is changed.

        Args:
            pattern: As in `set_policy`.
            **fields: As in `set_policy`, for example `keep_days=90`.

        Example:
            client.preview_retention("sales.*", keep_days=90)
        """
        body, _ = self._changed_policy(pattern, fields)
        answer = self._transport.call("POST", f"{_path(pattern)}/retention", body=body)
        return read_answer(RetentionPreview, answer)

    def _changed_policy(
        self, pattern: str, fields: Mapping[str, Any]
    ) -> tuple[str, dict[str, str]]:
        """Return a policy with some fields changed, and the headers to replace it."""
        try:
            answer = self._transport.call("GET", _path(pattern))
        except NotFoundError:
            return checked(PolicyDefinition, dict(fields)).model_dump_json(), {}
        policy = read_answer(Policy, answer).model_dump(exclude_none=True)
        before = {name: policy.get(name) for name in PolicyDefinition.model_fields}
        body = checked(PolicyDefinition, before | dict(fields)).model_dump_json()
        return body, {"If-Match": answer.headers["ETag"]}

    def policies(self) -> list[Policy]:
        """Return the policies that may apply to tables that you may read, by pattern.

        Example:
            client.policies()
        """
        answer = self._transport.call("GET", "/policies")
        return ShownList(read_answer(PolicyList, answer).policies, "policies")

    def policy(self, pattern: str) -> Policy:
        """Return the policy of one pattern.

        Example:
            client.policy("sales.*").min_age_seconds
        """
        return read_answer(Policy, self._transport.call("GET", _path(pattern)))

    def remove_policy(self, pattern: str) -> None:
        """Remove a policy; less specific ones then decide about its tables.

        Example:
            client.remove_policy("sales.*")
        """
        self._transport.call("DELETE", _path(pattern))

    def maintenance(self, table: str) -> TableMaintenance:
        """Return how a table is maintained, which policies say so, and what they led to.

        Example:
            client.maintenance("sales.events")
        """
        answer = self._transport.call("GET", f"{table_path(table)}/maintenance")
        return read_answer(TableMaintenance, answer)

    def request_compaction(
        self, table: str, *, folder: str | None = None, readers_may_see_both: bool = False
    ) -> int:
        """Let workers of maintenance compact a table now, before all other work.

        Windows, quiet time, gain and budget of policies do not matter for this work. `maintenance`
        shows its progress, `withdraw_compaction` withdraws it, and `compact` compacts the table in
        this process instead.

        Args:
            table: Name of the table.
            folder: Only the partition in this folder, such as `ds=2026-11-01`.
            readers_may_see_both: Consent for a table on HDFS or S3, unless its policy has it.

        Returns:
            Number of pieces of work that wait now; 0 if there are no small files to merge, or if
            workers have them already.

        Example:
            client.request_compaction("sales.events")
        """
        fields = {"folder": folder, "readers_may_see_both": readers_may_see_both}
        request = checked(WorkRequest, {name: value for name, value in fields.items() if value})
        body = request.model_dump_json(exclude_unset=True)
        path = f"{table_path(table)}/maintenance/requests"
        return read_answer(QueuedWork, self._transport.call("POST", path, body=body)).items

    def withdraw_compaction(self, table: str) -> int:
        """Withdraw a request of `request_compaction`, unless a worker has already taken it.

        Args:
            table: Name of the table.

        Returns:
            Number of pieces of work that no longer wait; 0 if none waited.

        Example:
            client.withdraw_compaction("sales.events")
        """
        path = f"{table_path(table)}/maintenance/requests"
        return read_answer(WithdrawnWork, self._transport.call("DELETE", path)).items

    def decide_maintenance(self) -> MaintenanceRound:
        """Decide now which partitions to rewrite, of all tables that a policy applies to.

        The coordinator does it every few minutes in any case.

        Example:
            client.decide_maintenance()
        """
        return read_answer(MaintenanceRound, self._transport.call("POST", "/maintenance/rounds"))

    def claim_work(
        self,
        worker: str,
        *,
        pattern: str = "*",
        lease_seconds: int = 60,
        without_spark: bool = False,
    ) -> WorkItem | None:
        """Claim the work that comes first; None if there is none.

        Args:
            worker: Name of the worker, for receipts.
            pattern: Only work on these tables.
            lease_seconds: How long the work belongs to the worker unless it renews its lease.
            without_spark: Only work that needs no Spark.
        """
        fields = {
            "worker": worker,
            "pattern": pattern,
            "lease_seconds": lease_seconds,
            "without_spark": without_spark,
        }
        body = checked(ClaimRequest, fields).model_dump_json()
        answer = self._transport.call("POST", "/maintenance/claims", body=body)
        return read_answer(WorkItem, answer) if answer.content else None

    def update_claim(self, claim_id: str, update: ClaimUpdate) -> MaintenanceReceipt:
        """Renew the lease of work, or report how it ended.

        Raises:
            ClaimLostError: The lease ran out, and the work is no longer the caller's.
        """
        path = f"/maintenance/claims/{claim_id}"
        answer = self._transport.call("PUT", path, body=update.model_dump_json())
        return read_answer(MaintenanceReceipt, answer)

    def receipts(self, table: str | None = None) -> Listing[MaintenanceReceipt]:
        """Return the decisions about tables, with reasons and outcomes, newest first.

        Args:
            table: Only receipts of this table.

        Example:
            for receipt in client.receipts("sales.events"):
                print(receipt.text)
        """
        params: dict[str, str | int] = {} if table is None else {"table": table}
        return self._transport.listing(ReceiptPage, "receipts", "/maintenance/receipts", params)

    def maintenance_budget(self) -> MaintenanceBudget:
        """Return how much the maintenance of all tables may use in an hour.

        Example:
            client.maintenance_budget().core_seconds_per_hour
        """
        return read_answer(MaintenanceBudget, self._transport.call("GET", _BUDGET))

    def set_maintenance_budget(self, **fields: Any) -> MaintenanceBudget:
        """Change how much the maintenance of all tables may use in an hour.

        Args:
            **fields: `core_seconds_per_hour`; `bytes_per_hour`, as a number, as text such as
                `"100GB"`, or None for any number; and `pause`, which pauses all maintenance.
                Fields that you leave out stay as they are.

        Example:
            client.set_maintenance_budget(bytes_per_hour="100GB")
        """
        answer = self._transport.call("GET", _BUDGET)
        before = read_answer(MaintenanceBudget, answer).model_dump()
        answer = self._transport.call(
            "PUT",
            _BUDGET,
            body=checked(MaintenanceBudget, before | fields).model_dump_json(),
            headers={"If-Match": answer.headers["ETag"]},
        )
        return read_answer(MaintenanceBudget, answer)


def _path(pattern: str) -> str:
    return f"/policies/{quote(pattern, safe='')}"
