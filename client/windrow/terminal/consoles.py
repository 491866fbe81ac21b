"""Consoles of the commands: results on stdout, progress on stderr."""

from __future__ import annotations

import json
from typing import Any

import typer
from pydantic import BaseModel
from rich.console import Console, RenderableType

_WIDTH_WITHOUT_A_TERMINAL = 120


def error_console() -> Console:
    """Return a console on stderr."""
    return _wide(Console(stderr=True, highlight=False))


def show(*renderables: RenderableType) -> None:
    """Print renderables on stdout."""
    console = _wide(Console(highlight=False))
    for renderable in renderables:
        console.print(renderable)


def show_json(value: BaseModel | dict[str, Any]) -> None:
    """Print a value on stdout as JSON."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    typer.echo(json.dumps(value, indent=2))


def _wide(console: Console) -> Console:
    """Give files and pipes, which have no width, enough room for tables."""
    if not console.is_terminal:
        console.width = max(console.width, _WIDTH_WITHOUT_A_TERMINAL)
    return console
