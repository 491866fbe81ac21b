"""Sizes and durations as people write them, such as `64MB` and `15m`; which files are small."""

from __future__ import annotations

import re
from decimal import Decimal

# A file is small if it is below this part of its target size.
SMALL = 0.5
# A table with nothing but files of this size has no excess files.
WELL_SIZED_BYTES = 128 * 2**20

_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")
_FACTORS = {unit: 1024**power for power, unit in enumerate(_UNITS)}
_FACTORS |= {unit.replace("B", "IB"): factor for unit, factor in _FACTORS.items() if len(unit) == 2}
_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?B?)\s*$", re.IGNORECASE)


def parse_size(value: object) -> object:
    """Turn a size such as `64MB` into bytes; values other than text stay unchanged.

    Units are powers of 1024, as Spark reads them: `KB` and `KiB` are the same.

    Raises:
        ValueError: The text is not a size.
    """
    if not isinstance(value, str):
        return value
    match = _SIZE.match(value)
    unit = match[2].upper().removesuffix("B") + "B" if match else "?"
    if match is None or unit not in _FACTORS:
        raise ValueError(f"{value!r} is not a size: give bytes, or text such as '64MB'")
    # Decimal, since float turns 400 digits into infinity.
    return int(Decimal(match[1]) * _FACTORS[unit])


def size_text(size_bytes: float) -> str:
    """Return bytes as readable text in units of 1024, such as `11.2 KB`."""
    unit = 0
    while size_bytes >= 1023.95 and unit < len(_UNITS) - 1:
        size_bytes, unit = size_bytes / 1024, unit + 1
    digits = 0 if unit == 0 or size_bytes >= 99.95 else 1
    number = f"{size_bytes:,.{digits}f}"
    return f"{number.removesuffix('.0')} {_UNITS[unit]}"


def mean_text(count: int, size_bytes: float) -> str:
    """Return how large so many files are that hold some bytes: `9.2 KB on average`."""
    size = size_text(size_bytes / max(count, 1))
    return size if count == 1 else f"{size} on average"


def parse_duration(text: str) -> int:
    """Return the seconds of a duration such as `90d`.

    Raises:
        ValueError: The text is not a duration.
    """
    match = re.fullmatch(f"([0-9]{{1,6}})([{''.join(_SECONDS)}])", text.strip())
    if match is None:
        raise ValueError(
            f"{text!r} is not a duration: give a number followed by m, h, d or w, such as 90d"
        )
    return int(match[1]) * _SECONDS[match[2]]


def short_duration_text(seconds: int) -> str:
    """Return seconds as text such as `1h` or `90s`, in the largest unit that is whole."""
    units = ((unit, size) for unit, size in _SECONDS.items() if unit != "w")
    for unit, size in units:
        if seconds >= size and not seconds % size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
