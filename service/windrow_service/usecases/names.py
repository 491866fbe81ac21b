"""Sets of names that patterns describe."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Names:
    """A set of names; looking a name up takes the same time however large the set is.

    Attributes:
        every: Whether the set contains all names.
        exact: Names in the set.
        below: Prefixes that end in a dot; all names that begin with one of them are in the set.
    """

    every: bool = False
    exact: frozenset[str] = frozenset()
    below: frozenset[str] = frozenset()

    def __contains__(self, name: str) -> bool:
        """Return whether a name is in the set; case matters, as in the names of tables.

        A pattern (a name followed by `.*`, or `*`) is in the set if all of its names are.
        """
        if self.every or name in self.exact:
            return True
        if not self.below:
            return False
        parts = name.split(".")
        return any(".".join(parts[:count]) + "." in self.below for count in range(1, len(parts)))

    def meet(self, pattern: str) -> bool:
        """Return whether a pattern may describe a name of the set."""
        if pattern in self:
            return True
        if pattern == "*":
            return bool(self)
        if not pattern.endswith(".*"):
            return False
        prefix = pattern[:-1]
        return any(one.startswith(prefix) for one in (*self.exact, *self.below))

    def __bool__(self) -> bool:
        """Return whether the set contains any name."""
        return self.every or bool(self.exact or self.below)
