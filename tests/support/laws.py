"""The number of examples for property tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from hypothesis import settings

_Case = TypeVar("_Case")

# What profiles multiply the number of examples by.
_TIMES = {"ci": 0.25, "slice": 1, "nightly": 20}


def is_nightly() -> bool:
    """Return whether this is a nightly run (`make test-nightly`), which may take long, or a slice of it."""
    return settings.get_current_profile_name() in ("nightly", "slice")


def times(at_night: int, by_day: int) -> int:
    """Return how often to do something; a slice of a nightly run does a twentieth, or what a day does."""
    share = _TIMES.get(settings.get_current_profile_name(), 0) / _TIMES["nightly"]
    return max(by_day, round(at_night * share)) if is_nightly() else by_day


def examples(count: int, **more: Any) -> settings:
    """Return settings for about a number of examples, the same in every run.

    Usual runs use a quarter of that number. Nightly runs use many times as many examples, and
    different ones each time; a slice of such a run uses that number of them.
    """
    times = _TIMES.get(settings.get_current_profile_name(), 1)
    return settings(max_examples=max(1, round(count * times)), **more)


def a_few(cases: Sequence[_Case], every: int) -> Sequence[_Case]:
    """Return the first of each so many cases; all of them in nightly runs."""
    return cases if is_nightly() else cases[::every]


def in_turn(cases: Sequence[_Case], turn: int, count: int) -> Sequence[_Case]:
    """Return `count` of the cases, other ones at each turn; all of them in nightly runs."""
    if is_nightly() or count >= len(cases):
        return cases
    return [cases[(turn * count + nth) % len(cases)] for nth in range(count)]
