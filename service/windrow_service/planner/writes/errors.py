"""Errors raised while a write is planned."""

from __future__ import annotations

import re
from dataclasses import dataclass

from windrow_core.errors import Call
from windrow_service.planner.errors import PlannerError

_FIELD = re.compile(r"\{([\w.]+)\}")


@dataclass(eq=False)
class UnhashableTypeError(PlannerError):
    """Spark's hash of this type is not known."""

    type: str
    message = "cannot predict where Spark's hash puts values of type {type}: {remedy}"
    remedy = "partition by a boolean, a number, a date, a timestamp or a string"


@dataclass(eq=False)
class UnplannableWriteError(PlannerError):
    """Base of errors about the request for a plan.

    Attributes:
        advice: What to do about it, with names of the request's fields in braces.
    """

    reason: str
    advice: str = ""

    def remedy_call(self) -> Call | None:
        """Return the call, with the fields that it lacks."""
        fields = dict.fromkeys(_FIELD.findall(self.advice))
        return Call("plan_write", _FIELD.sub(r"\1", self.advice), **fields) if fields else None

    def __str__(self) -> str:
        return f"{self.reason}: {self.remedy_call() or self.advice}" if self.advice else self.reason


class InvalidKeysError(UnplannableWriteError):
    """Keys of the write are not valid."""


class NoEstimateError(UnplannableWriteError):
    """Too little is known about the write."""


@dataclass(eq=False)
class TooManyFilesError(PlannerError):
    """Write would make too many files."""

    files: int
    max_files: int
    message = "the write would make {files:,} files and max_files is {max_files:,}: {remedy}"
    remedy = "ask for a larger target, write fewer partitions at a time, or {call}"

    def remedy_call(self) -> Call:
        """Return the call with another limit."""
        return Call("plan_write", "raise max_files", max_files=None)


class SchemeUnfitError(UnplannableWriteError):
    """Scheme cannot place these rows."""
