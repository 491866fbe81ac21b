"""Errors raised by the planner core.

* PlannerError
  + UnknownStrategyError
  + PlanTooLargeError

The planner knows nothing of HTTP: `windrow_service.api.problems` decides what each
error looks like on the wire.
"""


class PlannerError(Exception):
    """Base of every error the planner raises on purpose."""


class UnknownStrategyError(PlannerError):
    """No packing strategy has this name."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(name, known)
        self.name = name
        self.known = known

    def __str__(self) -> str:
        return f"no strategy {self.name!r}: use one of {', '.join(self.known)}"


class PlanTooLargeError(PlannerError):
    """More files or splits survive the filter than one plan may hold."""

    def __init__(self, count: int, most: int, what: str = "files") -> None:
        super().__init__(count, most, what)
        self.count = count
        self.most = most
        self.what = what

    def __str__(self) -> str:
        limit = "max_split_size" if self.what == "splits" else "WINDROW_LIMITS__MAX_PLAN_FILES"
        return (
            f"the plan would hold {self.count:,} {self.what} and at most {self.most:,} are "
            f"allowed: narrow the filter, or raise {limit}"
        )
