"""The number of examples for property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

# What each profile multiplies the number of examples by.
_TIMES = {"quick": 0.25, "any-failure": 0.5, "ci": 0.5, "nightly": 20}


def is_nightly() -> bool:
    """Return whether this is a nightly run (`make test-nightly`), which may take long."""
    return bool(settings.get_current_profile_name() == "nightly")


def examples(count: int, **more: Any) -> settings:
    """Return settings for a law that is worth this number of examples.

    Usual runs try half as many, the same each time, and those without slow tests a quarter. Nightly
    runs try many times as many, and different ones each time.
    """
    times = _TIMES[settings.get_current_profile_name()]
    return settings(max_examples=max(1, round(count * times)), **more)
