"""Consent to a policy that drops old partitions, after a look at what would go."""

from __future__ import annotations

import sys

import typer

from windrow_calls.terminal.consoles import show
from windrow_calls.terminal.render import drawn
from windrow_cli.errors import CommandError
from windrow_core.models import RetentionPreview

_SHOWN_TABLES = 20


def confirm(pattern: str, preview: RetentionPreview) -> None:
    """Ask whether a policy may drop old partitions from now on.

    Raises:
        CommandError: Nobody can be asked.
    """
    if not sys.stdin.isatty():
        raise CommandError(
            "the policy would drop old partitions automatically, and their files cannot be "
            "restored: add --yes, or preview with --dry-run"
        )
    show(drawn(preview))
    typer.confirm(
        f"Drop partitions of {pattern} for good whenever they are too old?", abort=True, err=True
    )
