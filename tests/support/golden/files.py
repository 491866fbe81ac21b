"""The golden files, by name: how each is made, and with which packages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "golden"


@dataclass(frozen=True, slots=True)
class Golden:
    """A golden file, made by `text()` of the module of this package with its name.

    Attributes:
        file: Its name in `FOLDER`.
        packages: Packages whose versions show in it; its first line has them.
    """

    file: str
    packages: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """Where it is stored."""
        return FOLDER / self.file

    def text(self) -> str:
        """Return what it would hold now."""
        module = import_module(f"tests.support.golden.{self.path.stem}")
        rest: str = module.text()
        return self.first_line() + rest

    def first_line(self) -> str:
        """Return its first line, or nothing if it depends on no package."""
        if not self.packages:
            return ""
        return lines_of([{"written_with": {name: version(name) for name in self.packages}}])


GOLDENS = {
    "problems": Golden("problems.jsonl"),
    "commands": Golden("commands.txt", ("typer",)),
    "outputs": Golden("outputs.txt", ("rich",)),
    "manifests": Golden("manifests.jsonl", ("pyarrow",)),
    "plans": Golden("plans.jsonl", ("numpy",)),
}


def lines_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as lines of JSON."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
