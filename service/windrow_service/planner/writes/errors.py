"""Errors raised while a write is planned.

* PlannerError
  + WritePlanError
    - UnhashableTypeError
    - InvalidKeysError
    - NoEstimateError
    - TooManyFilesError
    - SchemeUnfitError
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow_service.planner.errors import PlannerError


class WritePlanError(PlannerError):
    """Base of every error that ends the planning of a write."""


@dataclass(eq=False)
class UnhashableTypeError(WritePlanError):
    """Spark's hash of columns of this type is not known."""

    type: str
    message = "cannot predict where Spark's hash puts values of type {type}: {remedy}"
    remedy = "partition by a boolean, a number, a date, a timestamp or a string"


class InvalidKeysError(WritePlanError):
    """The keys in a request are not keys of the table."""


class NoEstimateError(WritePlanError):
    """There is nothing to estimate the number of files from."""


@dataclass(eq=False)
class TooManyFilesError(WritePlanError):
    """The plan would make more files than allowed."""

    files: int
    max_files: int
    message = "the write would make {files:,} files and max_files is {max_files:,}: {remedy}"
    remedy = "ask for a larger target, write fewer partitions at a time, or raise max_files"


class SchemeUnfitError(WritePlanError):
    """The requested scheme cannot place these rows at all."""
