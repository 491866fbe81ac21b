"""Errors of plans."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_core.errors import Call, Fault
from windrow_service.usecases.errors import (
    ConflictError,
    InvalidError,
    NotFoundError,
    UnavailableError,
    UseCaseError,
)


@dataclass(eq=False)
class PlanNotFoundError(NotFoundError):
    """Plan not found."""

    plan_id: str
    message = "no plan {plan_id!r}: it may have expired or been deleted; {remedy}"
    remedy = "plan again"


@dataclass(eq=False)
class PlanSnapshotGoneError(UseCaseError):
    """Snapshot of the plan is gone."""

    fault = Fault.GONE
    plan_id: str
    table: str
    snapshot_id: int
    message = (
        "plan {plan_id!r} can no longer be explained: snapshot {snapshot_id} of table {table!r} "
        "was dropped with the table or its definition; {remedy}"
    )
    remedy = "plan again"


@dataclass(eq=False)
class PlanNotCompletedError(ConflictError):
    """Plan has no groups yet.

    A plan has no groups: it is still being made, or could not be made.
    """

    plan_id: str
    reason: str | None
    retry_after_s = 1
    call = Call("get_plan", plan_id="plan_id")

    def remedy_call(self) -> Call | None:
        """Return the call that shows whether it has been made; None if it could not be made."""
        return super().remedy_call() if self.reason is None else None

    def __str__(self) -> str:
        if self.reason is not None:
            return f"plan {self.plan_id!r} could not be made ({self.reason}); plan again"
        return f"plan {self.plan_id!r} is still being made: {self.remedy_call()}"


class PlanCancelledError(ConflictError):
    """Plan was deleted."""

    message = "the plan was deleted while it was being made; {remedy}"
    remedy = "plan again"


@dataclass(eq=False)
class PlansFullError(UnavailableError):
    """Stored plans take too much space."""

    kept_bytes: int
    max_bytes: int
    retry_after_s: int
    message = "plans that have not expired hold {kept_bytes:,} of {max_bytes:,} bytes: {remedy}"
    remedy = (
        "delete plans that are no longer read, wait until some expire, or raise "
        "WINDROW_LIMITS__MAX_PLAN_BYTES"
    )


class InvalidColumnsError(InvalidError):
    """Columns are not valid."""


@dataclass(eq=False)
class InvalidOptionsError(InvalidError):
    """Request is not valid.

    Options of a request, its session and the table contradict each other.
    """

    slug = "invalid-request"
    reason: str
    source: str
    message = "{reason}; max_split_size comes from the {source}: {remedy}"
    remedy = "set max_split_size in the request as well"
