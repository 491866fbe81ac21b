"""Consent to a policy that drops old partitions, after a look at what would go."""

from __future__ import annotations

import sys

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from windrow_calls.terminal.consoles import show
from windrow_calls.terminal.render import listing, message
from windrow_cli.errors import CommandError
from windrow_core.cards import count_text
from windrow_core.models import RetentionPreview
from windrow_core.sizes import size_text

_SHOWN_TABLES = 20


def confirm(pattern: str, preview: RetentionPreview) -> None:
    """Ask whether a policy may drop old partitions from now on.

    Raises:
        CommandError: Nobody can be asked.
    """
    if not sys.stdin.isatty():
        raise CommandError(
            "the policy would drop old partitions by itself, and their files cannot be brought "
            "back: add --yes, or look with --dry-run"
        )
    show(retention(preview))
    typer.confirm(
        f"Drop partitions of {pattern} for good whenever they are too old?", abort=True, err=True
    )


def retention(preview: RetentionPreview) -> RenderableType:
    """Show what a policy would drop now."""
    if not preview.tables:
        return message("no table has such a name yet, so nothing would be dropped now")
    title = (
        "would drop nothing now"
        if not preview.partitions
        else f"would drop {count_text(preview.partitions, 'partition')} now, with "
        f"{count_text(preview.files, 'file')} of {size_text(preview.size_bytes)}"
    )
    table = listing("table", "partitions>", "files>", "size>", "why…")
    for one in preview.tables[:_SHOWN_TABLES]:
        removal = one.removal
        figures = (
            ("0", "0", size_text(0))
            if removal is None
            else (
                f"{removal.partitions:,}",
                f"{removal.files:,}",
                size_text(removal.size_bytes),
            )
        )
        table.add_row(Text(one.table), *figures, Text(one.text))
    parts: list[RenderableType] = [Text(title, "bold"), table]
    if len(preview.tables) > _SHOWN_TABLES:
        parts.append(Text(f"and {count_text(len(preview.tables) - _SHOWN_TABLES, 'more table')}"))
    return Group(*parts)
