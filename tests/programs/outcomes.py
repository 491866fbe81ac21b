"""What a call on Spark returns, or the message of its error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import windrow
from windrow.spark import plain_errors


def outcome(act: Callable[[], Any]) -> Any:
    """Return the result of a call, or the message of its error."""
    try:
        with plain_errors():
            return act()
    except windrow.WindrowError as error:
        return str(error)
