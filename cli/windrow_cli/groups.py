"""Groups of commands, such as `windrow table`."""

from __future__ import annotations

import typer


def command_group(help: str) -> typer.Typer:
    """Return an empty group, which shows its help when it is called without a command."""
    group = typer.Typer(help=help, invoke_without_command=True)

    @group.callback()
    def show_help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    return group
