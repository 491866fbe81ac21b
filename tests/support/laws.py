"""How many examples a law is tried on."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

_NIGHTLY_TIMES = 20


def is_nightly() -> bool:
    """Return whether this run may take long: `make test-nightly`."""
    return bool(settings.get_current_profile_name() == "nightly")


def examples(count: int, **more: Any) -> settings:
    """Return settings for so many examples, the same every time.

    In a nightly run they are others every time, and many times as many.
    """
    return settings(max_examples=count * (_NIGHTLY_TIMES if is_nightly() else 1), **more)
