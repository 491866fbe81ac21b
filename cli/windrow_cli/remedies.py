"""The words of commands for remedies of the coordinator's problems."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from windrow_calls.errors import ProblemError

if TYPE_CHECKING:
    # Commands that call no coordinator start without the models.
    from windrow_core.models import Remedy

# Fields of a request for a write plan that are not options of their own.
_COUNTS = {
    "keys": "--counts",
    "keys.columns": "--counts",
    "keys.buckets": "the column `bucket` of --counts",
}


def in_commands(error: ProblemError) -> str:
    """Return the text of an error, with commands instead of HTTP calls."""
    problem, remedy = error.problem, error.problem.remedy
    if remedy is not None and remedy.call == "plan_write":
        return problem.detail.replace(remedy.text, _in_options(remedy))
    return problem.worded("command")


def _in_options(remedy: Remedy) -> str:
    fields = "|".join(sorted(map(re.escape, remedy.arguments), reverse=True))
    # A value in quotes may follow.
    field = re.compile(rf"\b({fields})\b(?: '(\w+)')?")
    return field.sub(
        lambda match: " ".join(filter(None, (_option(match[1]), match[2]))), remedy.text
    )


def _option(field: str) -> str:
    return _COUNTS.get(field, f"--{field.replace('_', '-')}")
