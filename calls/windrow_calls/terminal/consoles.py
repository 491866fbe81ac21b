"""Consoles of the commands: results on stdout, progress on stderr."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import typer
from rich.console import Console, RenderableType

from windrow_calls.terminal.listings import PIPE_WIDTH


def error_console() -> Console:
    """Return a console on stderr."""
    return _wide(Console(stderr=True, highlight=False))


def show(*renderables: RenderableType) -> None:
    """Print renderables on stdout."""
    console = _wide(Console(highlight=False))
    for renderable in renderables:
        if console.width < PIPE_WIDTH:
            console.print(renderable)
        else:
            with console.capture() as output:
                console.print(renderable)
            # Lines of texts are padded to the width; the last cells of a list may be empty.
            typer.echo(
                "\n".join(line.rstrip(" ") for line in output.get().rstrip("\n").split("\n"))
            )


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
    """Give files and pipes, which have no width unless COLUMNS says so, room for every line."""
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        console.width = PIPE_WIDTH
    return console
