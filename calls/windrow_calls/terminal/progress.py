"""Progress of refreshes, and of work on many files, on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from windrow_calls.refreshes import describe_refresh
from windrow_core.models import RefreshProgress


@contextmanager
def refreshing(console: Console, table: str) -> Iterator[Callable[[RefreshProgress], None]]:
    """Show the progress of a refresh; yields the callback for `Client.refresh`."""
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn())
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task(f"{table}: listing", total=None)

        def update(now: RefreshProgress) -> None:
            reading = now.phase == "reading footers" and now.footers_total > 0
            progress.update(
                task,
                description=f"{table}: {describe_refresh(now)}",
                total=now.footers_total if reading else None,
                completed=now.footers_read if reading else 0,
            )

        yield update


def counting(console: Console | None) -> Progress:
    """Return a bar that counts files; on no console, it is not shown."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=console is None,
        transient=True,
    )
