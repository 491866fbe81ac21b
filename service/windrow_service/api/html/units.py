"""Durations and sizes as text: those of a sentence or a column have one unit, so that they compare."""

from __future__ import annotations

from collections.abc import Sequence

# A unit, its seconds, and the least that all durations must have for it.
_LONG_UNITS = (("h", 3_600, 7_200), ("min", 60, 120))
# Less than this of a second or a millisecond is not told apart.
_LEAST = 0.001
_SIZES = ("B", "KB", "MB", "GB", "TB", "PB")


def duration_texts(seconds: Sequence[float]) -> list[str]:
    """Return durations in one unit: `['6.55 s', '0.069 s']`, `['69.1 ms', '2 ms']`, `['3 min']`.

    Hours and minutes are for durations all of which are long, and milliseconds for those all of
    which are under a second.
    """
    lengths = [one for one in seconds if one] or [1.0]
    for unit, size, least in _LONG_UNITS:
        if min(lengths) >= least:
            return [f"{one / size:,.0f} {unit}" for one in seconds]
    if max(lengths) < 1:
        return [f"{_digits(one * 1_000)} ms" for one in seconds]
    return [f"{_digits(one)} s" for one in seconds]


def size_texts(sizes: Sequence[float]) -> list[str]:
    """Return sizes in one unit of 1024 in which the smallest is still told: `['2,662 MB', '6.6 MB']`."""
    lengths = [one for one in sizes if one] or [0.0]
    unit = 0
    while unit + 1 < len(_SIZES) and max(lengths) >= 1023.95 * 1024**unit:
        unit += 1
    while unit and min(lengths) < 1024**unit / 100:
        unit -= 1
    return [f"{_size_digits(one / 1024**unit)} {_SIZES[unit]}" for one in sizes]


def _size_digits(value: float) -> str:
    return (
        f"{value:,.0f}"
        if value >= 99.95 or value == int(value)
        else f"{value:.2g}"
        if value < 1
        else f"{value:.1f}"
    )


def _digits(value: float) -> str:
    if not value:
        return "0"
    if value < _LEAST:
        return f"less than {_LEAST}"
    if value >= 99.95:
        return f"{value:,.0f}"
    # Two digits of a fraction are enough beside something larger.
    return f"{value:.2g}" if value < 1 else f"{value:.3g}"
