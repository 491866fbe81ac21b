"""Why partitions are rewritten, or left alone, in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from windrow_core.cards import count_text, duration_text, seconds_text
from windrow_core.models import EffectivePolicy, WorkPrediction
from windrow_core.sizes import mean_text, size_text
from windrow_service.planner.maintenance.columns import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Partitions of one table that are left alone for one reason.

    Attributes:
        policy: How the table is maintained.
        partitions: Number of these partitions.
        files: Number of their small files.
        example: Folder of one of them; empty for the table's location.
        wait_seconds: When the first of them is free; None where time alone does not tell.
        score: The highest score among them.
    """

    policy: EffectivePolicy
    partitions: int
    files: int
    example: str
    wait_seconds: float | None
    score: float

    @property
    def who(self) -> str:
        """The partitions, as the subject of a sentence about one or several."""
        if self.partitions == 1:
            return self.example or "the table"
        return f"{self.partitions:,} partitions, such as {self.example or 'the table'},"

    @property
    def was(self) -> str:
        """The verb `be` in the past, for these partitions."""
        return "was" if self.partitions == 1 else "were"

    @property
    def then(self) -> str:
        """When the first of them is free, as the end of a sentence."""
        if self.wait_seconds is None:
            return ""
        return f"; the first is free in {duration_text(self.wait_seconds)}"


def left_alone(reason: Reason, case: Case) -> str:
    """Return why partitions are left alone."""
    return _TEXTS[reason](case)


def chosen(prediction: WorkPrediction, small_bytes: int | None, *, packs: bool = False) -> str:
    """Return why partitions are rewritten.

    Args:
        prediction: What that costs and gains.
        small_bytes: Files below this size are rewritten; None for all small ones.
        packs: Whether they are packed instead.
    """
    gain, each_day = prediction.gain_seconds, prediction.gain_seconds * prediction.reads_per_day
    days = f"{prediction.lasting_days:,.3g}"
    pays_s = 86_400 * prediction.cost_seconds / max(each_day, 1e-9)
    return (
        f"{(packing(prediction) if packs else change(prediction, small_bytes))}. {prediction.reads_per_day:,.3g} reads a day x "
        f"{_short(gain)} x {days} {'day' if days == '1' else 'days'} are "
        f"{_short(prediction.saved_seconds)}, {prediction.score:,.3g} s for each second of rewriting; "
        + (
            f"it pays off after {duration_text(pays_s)}"
            if prediction.saved_seconds >= prediction.cost_seconds
            else "it does not pay off in that time"
        )
    )


def requested(prediction: WorkPrediction, principal: str) -> str:
    """Return why partitions are rewritten that somebody asked for."""
    reads = math.ceil(prediction.cost_seconds / max(prediction.gain_seconds, 1e-9))
    return (
        f"{principal} asked for it: {change(prediction, None)}. "
        f"It pays off after {count_text(reads, 'read')}"
    )


def change(prediction: WorkPrediction, small_bytes: int | None) -> str:
    """Return what a rewrite changes, what it costs, and what a read saves.

    Args:
        prediction: What it costs and gains.
        small_bytes: Files below this size are rewritten; None for all small ones.
    """
    kind = (
        ("small file", "") if small_bytes is None else ("file", f" below {size_text(small_bytes)}")
    )
    return (
        f"{count_text(prediction.files, kind[0])}{kind[1]} ({size_text(prediction.size_bytes)}) in "
        f"{count_text(prediction.partitions, 'partition')} would become "
        f"{prediction.becomes:,} of {mean_text(prediction.becomes, prediction.size_bytes)}: "
        f"{seconds_text(prediction.cost_seconds)} of one core save {_short(prediction.gain_seconds)} "
        "in each read of all of them"
    )


def packing(prediction: WorkPrediction) -> str:
    """Return what packing changes, what it costs, and what a read saves."""
    return (
        f"{count_text(prediction.files, 'file')} ({size_text(prediction.size_bytes)}) in "
        f"{count_text(prediction.partitions, 'partition')} would be read from packs: "
        f"{seconds_text(prediction.cost_seconds)} of one core save {_short(prediction.gain_seconds)} "
        "in each read of all of them"
    )


def _short(seconds: float) -> str:
    return f"{1_000 * seconds:.3g} ms" if seconds < 0.1 else seconds_text(seconds)


def _windows(windows: Sequence[str]) -> str:
    return " and ".join(one if " " in one else f"{one} UTC" for one in windows)


def _quiet(case: Case) -> str:
    age = timedelta(seconds=case.policy.min_age_seconds)
    return (
        f"{case.who} {case.was} written to less than {duration_text(age.total_seconds())} ago"
        f"{case.then}"
    )


_TEXTS: Mapping[Reason, Callable[[Case], str]] = {
    "off": lambda case: "its policy is off",
    "excluded": lambda case: f"{case.who} {case.was} left out by its policy",
    "window": lambda case: f"it is outside the window, {_windows(case.policy.windows)}",
    "quiet": _quiet,
    "backing_off": lambda case: (
        f"after conflicts with writers, or failures, {case.who} must wait{case.then}"
    ),
    "no_gain": lambda case: (
        f"the last runs on {case.who.removesuffix(',')} brought nothing, so that it must wait{case.then}"
    ),
    "nothing_small": lambda case: f"{case.who} would have as many files afterwards",
    "unread": lambda case: (
        f"nobody reads {case.who.removesuffix(',')}, according to the history of plans; if it is "
        "read without Windrow, say how often with `--reads-per-day`"
    ),
    "amplification": lambda case: (
        f"rewriting {case.who.removesuffix(',')} once more would rewrite over twice the bytes that "
        "were written there in 30 days"
    ),
    "not_worth": lambda case: (
        f"rewriting {case.who.removesuffix(',')} would save {case.score:.3g} s of reading for each "
        f"second that it takes, and the policy asks for {case.policy.min_gain:.3g}"
    ),
    "gathering": lambda case: (
        f"{case.who} will be worth it once more files have gathered there{case.then}"
    ),
    "alternative": lambda case: f"{case.who} {case.was} rewritten in another way",
    "too_large": lambda case: (
        f"rewriting {case.who.removesuffix(',')} costs more than the budget or the table's share "
        "can ever hold: raise them with `windrow policy budget` or `--max-share`"
    ),
    "share": lambda case: f"{case.who} must wait: the table has used its share of the budget",
    "budget": lambda case: f"{case.who} must wait: the budget is used up, and others come first",
}
