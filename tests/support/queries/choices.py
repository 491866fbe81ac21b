"""Choices at random that can be repeated, and made simpler while something still holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

_T = TypeVar("_T")


class Choices:
    """Numbers that are drawn, or were drawn before; of alternatives, the first is the simplest.

    Attributes:
        taken: All numbers so far.
    """

    def __init__(self, seed: str | None = None, beginning: Sequence[int] = ()) -> None:
        """Start to choose.

        Args:
            seed: What new numbers depend on; without it they are 0.
            beginning: The numbers to begin with.
        """
        self._random = None if seed is None else Random(seed)
        self._beginning = beginning
        self.taken: list[int] = []

    def below(self, count: int) -> int:
        """Return a number from 0 to `count - 1`."""
        place = len(self.taken)
        if place < len(self._beginning):
            number = self._beginning[place] % count
        else:
            number = 0 if self._random is None else self._random.randrange(count)
        self.taken.append(number)
        return number

    def chance(self, percent: int) -> bool:
        """Return true so many times in a hundred."""
        return self.below(100) >= 100 - percent

    def one_of(self, items: Sequence[_T]) -> _T:
        """Return one of some items."""
        return items[self.below(len(items))]

    def weighted(self, items: Sequence[tuple[int, _T]]) -> _T:
        """Return one of some items, each as often as its weight says."""
        place = self.below(sum(weight for weight, _ in items))
        for weight, item in items:
            if place < weight:
                return item
            place -= weight
        raise AssertionError("weights are positive")


def simplest(
    numbers: Sequence[int], holds: Callable[[Sequence[int]], bool], attempts: int = 300
) -> list[int]:
    """Return numbers as few and as small as can be found for which something still holds.

    Args:
        numbers: Numbers for which it holds.
        holds: Whether it holds for other numbers.
        attempts: How often to ask.
    """
    best = list(numbers)
    size = len(best)
    while size:
        place = 0
        while place < len(best):
            block, rest = best[place : place + size], best[place + size :]
            for other in (best[:place] + rest, best[:place] + [0] * len(block) + rest):
                if other == best or attempts == 0:
                    continue
                attempts -= 1
                if holds(other):
                    best = other
                    break
            else:
                place += size
        size //= 2
    return best
