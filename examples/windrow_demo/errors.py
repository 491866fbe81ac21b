"""The error of the demo."""

from __future__ import annotations

from windrow_calls.errors import WindrowError


class DemoError(WindrowError):
    """Something keeps the demo from running; the text says what, and what to do about it."""
