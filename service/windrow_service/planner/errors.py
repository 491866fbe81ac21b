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
    """More files survive the filter than one plan may hold."""

    def __init__(self, file_count: int, max_files: int) -> None:
        super().__init__(file_count, max_files)
        self.file_count = file_count
        self.max_files = max_files

    def __str__(self) -> str:
        return (
            f"the plan would hold {self.file_count:,} files and at most {self.max_files:,} are "
            "allowed: narrow the filter, or raise WINDROW_LIMITS__MAX_PLAN_FILES"
        )
