"""Progress bars, on stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Counter:
    """A progress bar whose total may become known later."""

    def __init__(self, progress: Progress, what: str, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task(what, total=total)

    def expect(self, total: int) -> None:
        """Set the total."""
        self._progress.update(self._task, total=total)

    def advance(self, count: int = 1) -> None:
        """Add to the count."""
        self._progress.advance(self._task, count)


@contextmanager
def counting(console: Console, what: str, total: int | None = None) -> Iterator[Counter]:
    """Show a progress bar while the block runs; yields its counter."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        yield Counter(progress, what, total)
