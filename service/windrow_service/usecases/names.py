"""Sets of names that patterns describe."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Names:
    """Some names, told apart from others in a time that does not depend on how many there are.

    Attributes:
        every: Whether all names are meant.
        exact: These names.
        below: All names that begin with one of these, each of which ends in a dot.
    """

    every: bool = False
    exact: frozenset[str] = frozenset()
    below: frozenset[str] = frozenset()

    def __contains__(self, name: str) -> bool:
        """Tell whether a name is meant; upper and lower case differ, as in the names of tables."""
        if self.every or name in self.exact:
            return True
        if not self.below:
            return False
        parts = name.split(".")
        return any(".".join(parts[:count]) + "." in self.below for count in range(1, len(parts)))

    def __bool__(self) -> bool:
        """Tell whether any name is meant."""
        return self.every or bool(self.exact or self.below)
