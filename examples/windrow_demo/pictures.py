"""Output of a command as an SVG picture."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console, RenderableType

from windrow_demo.errors import DemoError

_WIDTH = 100
# Rich's SVGs load a font from a public server; any monospace font will do.
_FONT_FACES = re.compile(r"@font-face \{.*?\}", re.DOTALL)


def save_picture(path: Path, title: str, *renderables: RenderableType) -> None:
    """Save renderables as an SVG that loads no external font."""
    console = Console(record=True, file=io.StringIO(), width=_WIDTH, highlight=False)
    for renderable in renderables:
        console.print(renderable)
    drawing = console.export_svg(title=title)
    try:
        path.write_text(_FONT_FACES.sub("", drawing), encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise DemoError(f"the picture cannot be written to {path}: {reason}") from error
