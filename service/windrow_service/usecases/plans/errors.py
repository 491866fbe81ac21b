"""Errors of plans.

* UseCaseError
  + NotFoundError
    - PlanNotFoundError
  + PlanSnapshotGoneError
  + PlanNotCompletedError
  + PlanCancelledError
  + PlansFullError
  + InvalidColumnsError
"""

from __future__ import annotations

from windrow_service.usecases.errors import NotFoundError, UseCaseError


class PlanNotFoundError(NotFoundError):
    """No plan has this id, or it has expired or was deleted."""

    def __init__(self, plan_id: str) -> None:
        super().__init__(plan_id)
        self.plan_id = plan_id

    def __str__(self) -> str:
        return f"no plan {self.plan_id!r}: it may have expired or been deleted; plan again"


class PlanSnapshotGoneError(UseCaseError):
    """A plan is still there, and the snapshot that it was made from is not."""

    def __init__(self, plan_id: str, table: str, snapshot_id: int) -> None:
        super().__init__(plan_id, table, snapshot_id)
        self.plan_id = plan_id
        self.table = table
        self.snapshot_id = snapshot_id

    def __str__(self) -> str:
        return (
            f"plan {self.plan_id!r} cannot be explained any more: snapshot {self.snapshot_id} of "
            f"table {self.table!r} was dropped with the table or its definition; plan again"
        )


class PlanNotCompletedError(UseCaseError):
    """A plan has no groups: it is still being made, or could not be made."""

    def __init__(self, plan_id: str, reason: str | None) -> None:
        super().__init__(plan_id, reason)
        self.plan_id = plan_id
        self.reason = reason
        self.retry_after_s = 1

    def __str__(self) -> str:
        if self.reason is not None:
            return f"plan {self.plan_id!r} could not be made ({self.reason}); plan again"
        return (
            f"plan {self.plan_id!r} is still being made: GET /plans/{self.plan_id} until its status "
            "is completed"
        )


class PlanCancelledError(UseCaseError):
    """Nobody wants a plan any more that is being made."""

    def __str__(self) -> str:
        return "the plan was deleted while it was being made; plan again"


class PlansFullError(UseCaseError):
    """All plans together take as much room as they may."""

    def __init__(self, kept_bytes: int, max_bytes: int, retry_after_s: int) -> None:
        super().__init__(kept_bytes, max_bytes, retry_after_s)
        self.kept_bytes = kept_bytes
        self.max_bytes = max_bytes
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return (
            f"plans that have not expired hold {self.kept_bytes:,} of {self.max_bytes:,} bytes: "
            "delete plans that are no longer read, wait until some expire, or raise "
            "WINDROW_LIMITS__MAX_PLAN_BYTES"
        )


class InvalidColumnsError(UseCaseError):
    """A plan asks for columns that the table does not have, or twice for one."""
