"""What a look at an installation finds: checks, each with its result and what mends it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from windrow_core.cards import Card, Cell, Grid, Shown, card_of, count_text

State: TypeAlias = Literal["ok", "warning", "failure"]

_MARKS: dict[State, str] = {"ok": "ok", "warning": "warning", "failure": "FAILED"}


@dataclass(frozen=True, slots=True)
class Check(Shown):
    """One thing that was looked at.

    Attributes:
        subject: What was looked at, such as `java`.
        state: `failure` if something cannot work, `warning` if it is slower or less safe than it
            could be.
        result: The result, in one sentence.
        remedy: What mends it; empty if nothing needs to.
        page: The page of the guide about it, such as `how-to/deploy`; empty for none.
    """

    subject: str
    state: State
    result: str
    remedy: str = ""
    page: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis(Shown):
    """What `windrow doctor` and `client.doctor` return.

    Attributes:
        checks: All checks, in the order in which they were made.
    """

    checks: Sequence[Check]

    @property
    def has_failures(self) -> bool:
        """Whether something cannot work."""
        return any(check.state == "failure" for check in self.checks)


@card_of.register
def _(diagnosis: Diagnosis) -> Card:
    failures = sum(check.state == "failure" for check in diagnosis.checks)
    warnings = sum(check.state == "warning" for check in diagnosis.checks)
    title = f"{count_text(len(diagnosis.checks), 'check')}: "
    if failures or warnings:
        title += f"{count_text(failures, 'failure')}, {count_text(warnings, 'warning')}"
    else:
        title += "everything works"
    results = [[check.subject, _MARKS[check.state], check.result] for check in diagnosis.checks]
    grids = [Grid(["check", "state", "result…"], results)]
    remedies: list[Sequence[Cell]] = [
        [check.subject, check.remedy, check.page] for check in diagnosis.checks if check.remedy
    ]
    if remedies:
        grids.append(Grid(["check", "do this…", "guide…"], remedies, "What to do"))
    return Card(title, grids=grids)
