"""How Hypothesis runs here: the same examples every time, and no verdict on speed."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "windrow",
    deadline=None,
    derandomize=True,
    # A busy machine makes drawing slow; that says nothing about the code.
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("windrow")
