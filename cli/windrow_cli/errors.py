"""The error of commands that cannot do what their arguments say."""

from __future__ import annotations

from windrow_calls.errors import WindrowError


class CommandError(WindrowError):
    """A command cannot do what its arguments say; the text says why, and what to do."""
