"""Bars, as long as the room allows."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

# Shorter, bars of different lengths look the same.
LEAST_BAR = 8
_MOST_CELLS = 30
_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar_text(value: float, largest: float, cells: int) -> str:
    """Return a bar of at most `cells`, to an eighth of a cell; a value above 0 is never empty."""
    eighths = max(round(value / largest * cells * 8), 1) if value > 0 and largest > 0 else 0
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


class Bar:
    """A bar in a column of bars of the same scale.

    Args:
        value: What it stands for.
        largest: The value of a bar that takes all the room.
        style: Its style.
    """

    def __init__(self, value: float, largest: float, style: str) -> None:
        self._value = value
        self._largest = largest
        self._style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        cells = min(options.max_width, _MOST_CELLS)
        yield Text(bar_text(self._value, self._largest, cells), self._style, end="")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(LEAST_BAR, _MOST_CELLS)

    def __str__(self) -> str:
        # The figure beside it says the same.
        return ""
