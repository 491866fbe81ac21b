"""Errors raised while a write is planned.

* PlannerError
  + WritePlanError
    - UnhashableTypeError
    - InvalidKeysError
    - NoEstimateError
    - TooManyFilesError
    - SchemeUnfitError
"""

from windrow_service.planner.errors import PlannerError


class WritePlanError(PlannerError):
    """Base of every error that a write plan ends with."""


class UnhashableTypeError(WritePlanError):
    """Spark's hash of a column of this type is not known here."""

    def __init__(self, type_: str) -> None:
        super().__init__(type_)
        self.type = type_

    def __str__(self) -> str:
        return (
            f"where Spark's hash puts values of type {self.type} cannot be predicted: partition by "
            "a boolean, a number, a date, a timestamp or a string"
        )


class InvalidKeysError(WritePlanError):
    """The keys that a caller gives are not keys of the table."""


class NoEstimateError(WritePlanError):
    """Nothing says how many files there should be."""


class TooManyFilesError(WritePlanError):
    """The plan would make more files than allowed."""

    def __init__(self, files: int, max_files: int) -> None:
        super().__init__(files, max_files)
        self.files = files
        self.max_files = max_files

    def __str__(self) -> str:
        return (
            f"the write would make {self.files:,} files and max_files is {self.max_files:,}: ask "
            "for a larger target, write fewer partitions at a time, or raise max_files"
        )


class SchemeUnfitError(WritePlanError):
    """The scheme that was asked for cannot place these rows at all."""
