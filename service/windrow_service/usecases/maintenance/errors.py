"""Errors of maintenance."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_core.errors import Call, Fault
from windrow_service.usecases.errors import (
    ConflictError,
    InvalidError,
    NotFoundError,
    UseCaseError,
)


@dataclass(eq=False)
class PolicyNotFoundError(NotFoundError):
    """Policy not found."""

    pattern: str
    message = "there is no policy for {pattern!r}: {remedy}"
    remedy = "{call} lists all policies"
    call = Call("list_policies")


@dataclass(eq=False)
class PolicyChangedError(UseCaseError):
    """Policy has changed."""

    fault = Fault.CHANGED
    pattern: str
    version: str
    current: str
    message = "the policy for {pattern!r} was expected at {version} but is at {current}; {remedy}"
    remedy = "check it with {call}, then decide again"
    call = Call("get_policy", pattern="pattern")


@dataclass(eq=False)
class BudgetChangedError(UseCaseError):
    """Budget has changed."""

    fault = Fault.CHANGED
    version: str
    current: str
    message = "the budget was expected at {version} but is at {current}; {remedy}"
    remedy = "check it with {call}, then decide again"
    call = Call("get_budget")


@dataclass(eq=False)
class ClaimLostError(ConflictError):
    """Claim is lost.

    Nobody has it, or its lease ran out and another worker has the work.
    """

    claim_id: str
    message = "claim {claim_id} is no longer valid: {remedy}"
    remedy = "stop the work (its commits are safe), and request other work with {call}"
    call = Call("claim_work")


@dataclass(eq=False)
class TooManyPoliciesError(ConflictError):
    """Too many policies."""

    max_policies: int
    message = "there are {max_policies:,} policies already: {remedy}"
    remedy = "remove one, or combine several into one for `name.*`"


class InvalidPolicyError(InvalidError):
    """Policy is not valid."""
