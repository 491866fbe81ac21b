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
    """Base of every error that ends the planning of a write."""


class UnhashableTypeError(WritePlanError):
    """It is not known how Spark hashes columns of this type."""

    def __init__(self, type_: str) -> None:
        super().__init__(type_)
        self.type = type_

    def __str__(self) -> str:
        return (
            f"cannot predict where Spark's hash puts values of type {self.type}: partition by a "
            "boolean, a number, a date, a timestamp or a string"
        )


class InvalidKeysError(WritePlanError):
    """The keys in a request are not keys of the table."""


class NoEstimateError(WritePlanError):
    """There is nothing to estimate the number of files from."""


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
    """The requested scheme cannot place these rows at all."""
