"""Packages that are not installed, as far as a program can tell."""

from __future__ import annotations

import sys
from collections.abc import Collection


class Absent:
    """A finder that fails for packages as if they were not installed."""

    def __init__(self, packages: Collection[str]) -> None:
        self._packages = packages

    def find_spec(self, name: str, *_: object) -> None:
        """Leave other packages to the usual finders."""
        if name.partition(".")[0] in self._packages:
            raise ModuleNotFoundError(f"{name} is not installed here", name=name)


def hide(packages: Collection[str]) -> None:
    """Make packages impossible to import."""
    for name in packages:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Absent(packages))
