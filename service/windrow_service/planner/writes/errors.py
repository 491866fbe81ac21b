"""Errors raised while a write is planned."""

from __future__ import annotations

from dataclasses import dataclass

from windrow_service.planner.errors import PlannerError


@dataclass(eq=False)
class UnhashableTypeError(PlannerError):
    """Spark's hash of this type is not known."""

    type: str
    message = "cannot predict where Spark's hash puts values of type {type}: {remedy}"
    remedy = "partition by a boolean, a number, a date, a timestamp or a string"


class InvalidKeysError(PlannerError):
    """Keys of the write are not valid."""


class NoEstimateError(PlannerError):
    """Too little is known about the write."""


@dataclass(eq=False)
class TooManyFilesError(PlannerError):
    """Write would make too many files."""

    files: int
    max_files: int
    message = "the write would make {files:,} files and max_files is {max_files:,}: {remedy}"
    remedy = "ask for a larger target, write fewer partitions at a time, or raise max_files"


class SchemeUnfitError(PlannerError):
    """Scheme cannot place these rows."""
