"""Consoles of the commands: results on stdout, progress on stderr."""

from __future__ import annotations

import json
from collections.abc import Callable

import typer
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


def show_json(value: object) -> None:
    """Print a value on stdout as JSON; models in it become objects."""
    typer.echo(json.dumps(value, indent=2, default=lambda model: model.model_dump(mode="json")))


def show_result(value: object, rendering: Callable[[], RenderableType], as_json: bool) -> None:
    """Print the result of a command on stdout: as JSON, or rendered."""
    if as_json:
        show_json(value)
    else:
        show(rendering())


def _wide(console: Console) -> Console:
    """Give files and pipes, which have no width, enough room for tables."""
    if not console.is_terminal:
        console.width = max(console.width, _WIDTH_WITHOUT_A_TERMINAL)
    return console
