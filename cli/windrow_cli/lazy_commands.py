"""The module of each command; it is imported when the command runs or a help text lists it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

# Module of each command, and the function or command group in it, in the order of `--help`.
_HOMES = {
    "serve": ("serve", "serve"),
    "plan": ("plans", "plan"),
    "cat": ("cat", "cat"),
    "engines": ("engines", "engines"),
    "explain": ("explain", "explain"),
    "history": ("history", "history"),
    "write-plan": ("write_plan", "write_plan"),
    "compact": ("compact", "compact"),
    "erase": ("erase", "erase"),
    "receipt": ("erase", "receipts"),
    "pack": ("pack", "pack"),
    "packs": ("pack", "packs"),
    "advise": ("advise", "advise"),
    "maintain": ("maintain", "maintain"),
    "policy": ("policy", "app"),
    "table": ("tables", "app"),
    "cache": ("cache", "app"),
    "worker": ("worker", "app"),
    "db": ("db", "app"),
    "token": ("token", "app"),
    "write": ("writes", "app"),
    "audit": ("audit", "audit"),
    "doctor": ("doctor", "doctor"),
    "status": ("status", "status"),
}


class Commands(TyperGroup):
    """The commands of `windrow`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = _Loaded()


class _Loaded(Mapping[str, Any]):
    """Commands by name; each is built when it is first looked up."""

    def __init__(self) -> None:
        self._groups: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._groups:
            module, attribute = _HOMES[name]
            function = getattr(import_module(f"windrow_cli.{module}"), attribute)
            # Typer builds a command differently inside a group, so a group is built around it.
            parent = typer.Typer(rich_markup_mode=None, add_completion=False)
            parent.callback()(_nothing)
            if isinstance(function, typer.Typer):
                parent.add_typer(function, name=name)
            else:
                parent.command(name)(function)
            group: Any = get_command(parent)
            self._groups[name] = group.commands[name]
        return self._groups[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)


def _nothing() -> None: ...
