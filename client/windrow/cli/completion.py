"""`--install-completion` and `--show-completion`: Tab completes commands and options."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import shellingham
import typer
from typer._completion_classes import completion_init
from typer._completion_shared import get_completion_script, install

from windrow.errors import WindrowError

# Lets typer understand the completion requests that shells then send.
completion_init()

_SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")


@dataclass(eq=False)
class UnknownShellError(WindrowError):
    """Commands cannot be completed in this shell."""

    shell: str

    def __str__(self) -> str:
        found = f"{self.shell} is not one of them" if self.shell else "no shell was found"
        return f"completion works in bash, zsh, fish and PowerShell, but {found}: set SHELL"


def _install(asked: bool) -> None:
    if asked:
        shell, path = install(shell=_shell(), prog_name="windrow")
        typer.echo(f"installed completion in {path}: it works in new {shell} sessions")
        raise typer.Exit


def _show(asked: bool) -> None:
    if asked:
        script = get_completion_script(
            prog_name="windrow", complete_var="_WINDROW_COMPLETE", shell=_shell()
        )
        typer.echo(script)
        raise typer.Exit


def _shell() -> str:
    try:
        shell = str(shellingham.detect_shell()[0])
    except shellingham.ShellDetectionFailure:
        # Not run from a shell, so use the user's login shell.
        shell = Path(os.environ.get("SHELL", "")).name
    if shell not in _SHELLS:
        raise UnknownShellError(shell)
    return shell


InstallCompletion = Annotated[
    bool,
    typer.Option(
        "--install-completion",
        callback=_install,
        is_eager=True,
        help="Install Tab completion for this shell and exit.",
    ),
]
ShowCompletion = Annotated[
    bool,
    typer.Option(
        "--show-completion",
        callback=_show,
        is_eager=True,
        help="Show the completion script and exit.",
    ),
]
