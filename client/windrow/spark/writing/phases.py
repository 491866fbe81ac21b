"""How far a write is, on stderr or in a notebook."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal, TypeAlias

from pyspark import SparkContext
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

Phase: TypeAlias = Literal["counting", "writing", "checking", "moving"]

_POLL_S = 0.3
_GROUP = "spark.jobGroup.id"


@dataclass(frozen=True, slots=True)
class Phases:
    """The phases of a write; each gets a bar while it lasts."""

    _table: str
    _context: SparkContext
    # None where nothing is shown.
    _progress: Progress | None

    @contextmanager
    def show(self, phase: Phase) -> Iterator[Callable[[int, int], None]]:
        """Show a phase while the body runs; the body gets what says how much of it is done."""
        progress = self._progress
        if progress is None:
            yield lambda done, total: None
            return
        task = progress.add_task(f"{self._table}: {phase}", total=None)

        def update(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        try:
            yield update
        finally:
            _end(progress, task)

    @contextmanager
    def of_spark(self, phase: Phase) -> Iterator[None]:
        """Show a phase that Spark's tasks make up while the body runs."""
        if self._progress is None:
            yield
            return
        over = threading.Event()
        with self.show(phase) as update, _job_group(self._context) as group:
            tracker = self._context.statusTracker()
            before = set(tracker.getJobIdsForGroup(group))

            def follow() -> None:
                while not over.wait(_POLL_S):
                    jobs = [tracker.getJobInfo(one) for one in tracker.getJobIdsForGroup(group)]
                    new = [job for job in jobs if job is not None and job.jobId not in before]
                    stages = {stage for job in new for stage in job.stageIds}
                    found = [tracker.getStageInfo(stage) for stage in stages]
                    known = [stage for stage in found if stage is not None]
                    if known:
                        update(
                            sum(stage.numCompletedTasks for stage in known),
                            sum(stage.numTasks for stage in known),
                        )

            thread = threading.Thread(target=follow, name="windrow-progress", daemon=True)
            thread.start()
            try:
                yield
            finally:
                over.set()
                thread.join()


@contextmanager
def shown_phases(context: SparkContext, table: str, shown: bool | None) -> Iterator[Phases]:
    """Show the phases of a write, if asked to, or by default in a terminal and a notebook.

    Args:
        context: That runs the write's tasks.
        table: The table's name.
        shown: Whether to show them; None leaves it to where this runs.
    """
    console = Console(stderr=True, highlight=False)
    # Without it, Rich has nothing to draw with in a notebook, and says so again and again.
    can_draw = console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)
    if not (can_draw if shown is None else shown):
        yield Phases(table, context, None)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        yield Phases(table, context, progress)


def _end(progress: Progress, task: TaskID) -> None:
    total = progress.tasks[task].total or 1
    progress.update(task, completed=total, total=total)
    progress.stop_task(task)


@contextmanager
def _job_group(context: SparkContext) -> Iterator[str]:
    """Yield the group of this thread's jobs: the caller's, by which jobs may be cancelled, or one."""
    group = context.getLocalProperty(_GROUP)
    if group is not None:
        yield group
        return
    group = f"windrow-{uuid.uuid4().hex}"
    context.setLocalProperty(_GROUP, group)
    try:
        yield group
    finally:
        # The JVM takes null for "no longer set".
        context._jsc.setLocalProperty(_GROUP, None)
