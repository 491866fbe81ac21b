"""Odd values in the place of each value of a document, for laws about damaged metadata."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**31,
    10**15,
    2**62,
    2**63,
    2**70,
    -(2**63) - 1,
    1.5,
    math.nan,
    "",
    "x",
    "\ud800",
    "../../..",
    "9" * 5_000,
    [],
    [None],
    [1],
    {},
    {"a": 1},
    [{}],
)

Place = tuple[str | int, ...]


def places_in(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the place of each value in a JSON document, beginning with the whole."""
    yield place
    if isinstance(value, dict):
        for name, one in value.items():
            yield from places_in(one, (*place, name))
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from places_in(one, (*place, at))


def with_value(document: Any, place: Place, value: Any) -> Any:
    """Return a document with another value in one place."""
    if not place:
        return value
    copy = document.copy()
    copy[place[0]] = with_value(copy[place[0]], place[1:], value)
    return copy
