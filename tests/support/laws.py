"""The number of examples for property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

_NIGHTLY_TIMES = 20


def is_nightly() -> bool:
    """Return whether this is a nightly run (`make test-nightly`), which may take long."""
    return bool(settings.get_current_profile_name() == "nightly")


def examples(count: int, **more: Any) -> settings:
    """Return settings for a number of examples, the same in every run.

    Nightly runs use many times as many examples, and different ones each time.
    """
    return settings(max_examples=count * (_NIGHTLY_TIMES if is_nightly() else 1), **more)
