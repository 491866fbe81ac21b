"""Progress of a write, on stderr or in a notebook."""

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
    """The phases of a write; each has a progress bar while it runs."""

    _table: str
    _context: SparkContext
    # None if nothing is shown.
    _progress: Progress | None

    @contextmanager
    def show(self, phase: Phase) -> Iterator[Callable[[int, int], None]]:
        """Show a phase while the block runs; yields a callback for the work done and in total."""
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
        """Show a phase while the block runs; its progress is that of the block's Spark tasks."""
        if self._progress is None:
            yield
            return
        end = threading.Event()
        with self.show(phase) as update, _job_group(self._context) as group:
            tracker = self._context.statusTracker()
            before = set(tracker.getJobIdsForGroup(group))

            def follow() -> None:
                while not end.wait(_POLL_S):
                    jobs = [tracker.getJobInfo(one) for one in tracker.getJobIdsForGroup(group)]
                    new = [job for job in jobs if job is not None and job.jobId not in before]
                    stages = {stage for job in new for stage in job.stageIds}
                    infos = [tracker.getStageInfo(stage) for stage in stages]
                    running = [stage for stage in infos if stage is not None]
                    if running:
                        update(
                            sum(stage.numCompletedTasks for stage in running),
                            sum(stage.numTasks for stage in running),
                        )

            thread = threading.Thread(target=follow, name="windrow-progress", daemon=True)
            thread.start()
            try:
                yield
            finally:
                end.set()
                thread.join()


@contextmanager
def shown_phases(context: SparkContext, table: str, visible: bool | None) -> Iterator[Phases]:
    """Show the phases of a write.

    Args:
        context: Spark context that runs the write's tasks.
        table: Name of the table.
        visible: Whether to show them; by default only in a terminal or a notebook.
    """
    console = Console(stderr=True, highlight=False)
    # Without ipywidgets, Rich cannot draw in a notebook, and keeps printing warnings.
    can_draw = console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)
    if not (can_draw if visible is None else visible):
        yield Phases(table, context, None)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=can_draw) as progress:
        yield Phases(table, context, progress)


def _end(progress: Progress, task: TaskID) -> None:
    total = progress.tasks[task].total or 1
    progress.update(task, completed=total, total=total)
    progress.stop_task(task)


@contextmanager
def _job_group(context: SparkContext) -> Iterator[str]:
    """Yield the job group of this thread: the caller's, which may be used to cancel, or a new one."""
    group = context.getLocalProperty(_GROUP)
    if group is not None:
        yield group
        return
    group = f"windrow-{uuid.uuid4().hex}"
    context.setLocalProperty(_GROUP, group)
    try:
        yield group
    finally:
        # Null unsets the property in the JVM.
        context._jsc.setLocalProperty(_GROUP, None)
