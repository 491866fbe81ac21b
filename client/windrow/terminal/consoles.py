"""Consoles of the commands: results on stdout, progress on stderr."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel
from rich.console import Console, RenderableType

from windrow.errors import WindrowError

_WIDTH_WITHOUT_A_TERMINAL = 120
_PICTURE_WIDTH = 100
# Rich's SVGs load a font from a public server; any monospace font will do.
_FONT_FACES = re.compile(r"@font-face \{.*?\}", re.DOTALL)


@dataclass(eq=False)
class PictureError(WindrowError):
    """A picture cannot be saved."""

    path: Path
    reason: str
    message = "the picture cannot be written to {path}: {reason}"


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


def save_picture(path: Path, title: str, *renderables: RenderableType) -> None:
    """Save renderables as an SVG that loads no external font.

    Raises:
        PictureError: The file cannot be written.
    """
    console = Console(record=True, file=io.StringIO(), width=_PICTURE_WIDTH, highlight=False)
    for renderable in renderables:
        console.print(renderable)
    drawing = console.export_svg(title=title)
    try:
        path.write_text(_FONT_FACES.sub("", drawing), encoding="utf-8")
    except OSError as error:
        raise PictureError(path, error.strerror or str(error)) from error


def _wide(console: Console) -> Console:
    """Give files and pipes, which have no width, enough room for tables."""
    if not console.is_terminal:
        console.width = max(console.width, _WIDTH_WITHOUT_A_TERMINAL)
    return console
