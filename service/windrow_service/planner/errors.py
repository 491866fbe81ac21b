"""Errors raised by the planner core.

The planner knows nothing of HTTP: `windrow_service.api.problems` decides what each
error looks like on the wire.
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow_core.errors import Fault, StatedError


class PlannerError(StatedError):
    """Base of every error the planner raises on purpose."""

    fault = Fault.INVALID


@dataclass(eq=False)
class UnknownStrategyError(PlannerError):
    """Strategy is not known."""

    name: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"no strategy {self.name!r}: use one of {', '.join(self.names)}"


@dataclass(eq=False)
class PlanTooLargeError(PlannerError):
    """Plan holds too many files or splits."""

    count: int
    most: int
    what: str = "files"

    def __str__(self) -> str:
        limit = "max_split_size" if self.what == "splits" else "WINDROW_LIMITS__MAX_PLAN_FILES"
        return (
            f"the plan would hold {self.count:,} {self.what} and at most {self.most:,} are "
            f"allowed: narrow the filter, or raise {limit}"
        )


@dataclass(eq=False)
class FiltersTooLongError(PlannerError):
    """Filters of all groups are too long."""

    groups: int
    most_bytes: int
    message = (
        "each of {groups:group} needs the part of the filter that its readers still have to "
        "apply, and together these would take more than {most_bytes:,} bytes: {remedy}"
    )
    remedy = "shorten the filter, for example by a join instead of long texts or lists"
