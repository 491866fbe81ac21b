"""Sizes as people write them, such as `64MB`."""

from __future__ import annotations

import re
from decimal import Decimal

_UNITS = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
_UNITS |= {unit.replace("B", "IB"): factor for unit, factor in _UNITS.items() if len(unit) == 2}
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
    if match is None or unit not in _UNITS:
        raise ValueError(f"{value!r} is not a size: give bytes, or text such as '64MB'")
    # Decimal, since float turns 400 digits into infinity.
    return int(Decimal(match[1]) * _UNITS[unit])
