"""Numbers of the pages of a list."""

from __future__ import annotations

from collections.abc import Sequence

# Pages that are named on either side of the current one.
_NEAR = 2


def page_numbers(at: int, pages: int) -> Sequence[int | None]:
    """Return the pages to link to: the first, the last, and those near; None stands for a gap."""
    near = range(max(at - _NEAR, 1), min(at + _NEAR, pages) + 1)
    numbers = sorted({1, pages, *near})
    result: list[int | None] = []
    for number in numbers:
        last = next((one for one in reversed(result) if one is not None), 0)
        if number == last + 2:
            result.append(last + 1)
        elif number > last + 2:
            result.append(None)
        result.append(number)
    return result
