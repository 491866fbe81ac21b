"""The interface of metrics; these meters do nothing, those of `prometheus.py` count."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from windrow_core.models import PlanSummary, RefreshStatus, WorkerInfo

Store = Literal["database", "cache_map"]
Gauge = Literal[
    "queue_running",
    "queue_waiting",
    "manifest_cache_bytes",
    "refreshes_running",
    "clock_skew_seconds",
]


@dataclass(frozen=True, slots=True)
class TableFigures:
    """How many files a table has: `excess` of them are more than it needs."""

    name: str
    files: int
    size_bytes: int
    excess: int


@dataclass(frozen=True, slots=True)
class MaintenanceFigures:
    """Work items of maintenance that wait and run, what they would gain, and the budget's rest."""

    waiting: int
    running: int
    excess_files: int
    left_seconds: float


# Records a call: its seconds, and whether it remained unanswered.
Called: TypeAlias = Callable[[float, bool], None]


class LooksAtTables(Protocol):
    """Finds tables that need care."""

    async def worst(self, limit: int) -> tuple[int, Sequence[TableFigures]]:
        """Return how many tables there are, and the tables with the most excess files."""


class LooksAtMaintenance(Protocol):
    """Finds out how maintenance is getting on."""

    async def figures(self) -> MaintenanceFigures:
        """Return its figures."""


class Meters:
    """Records events; its methods can be called from any thread, and never raise."""

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Record a request that was answered."""

    def plan(self, summary: PlanSummary, phases: Mapping[str, float]) -> None:
        """Record a plan that was made, and the seconds of each phase."""

    def waited(self, queue: str, seconds: float) -> None:
        """Record how long some work waited for a thread."""

    def refused(self, queue: str) -> None:
        """Record work that was refused because too much was waiting."""

    def manifests(self, *, hits: int, misses: int) -> None:
        """Record how many manifests were in memory, and how many were not."""

    def refresh(self, status: RefreshStatus) -> None:
        """Record a refresh that ended here."""

    def write(self, kind: str, state: str) -> None:
        """Record a write that reached a state."""

    def work(self, state: str) -> None:
        """Record a work item of maintenance that ended."""

    def maintenance(self, figures: MaintenanceFigures) -> None:
        """Record how maintenance is getting on."""

    def compaction_planned(self) -> None:
        """Record a page of a compaction plan."""

    def caller(self, store: Store, operation: str) -> Called:
        """Return a function that records calls of an operation of the database or the cache map."""
        return _ignore

    def gauge(self, name: Gauge, read: Callable[[], float], queue: str | None = None) -> None:
        """Show the current value of a number; `read` is called from any thread."""

    def tables(self, count: int, worst: Sequence[TableFigures]) -> None:
        """Record how many tables there are, and the tables with the most excess files."""

    def workers(self, live: Sequence[WorkerInfo]) -> None:
        """Record what live workers report about their caches."""


def _ignore(seconds: float, failed: bool) -> None: ...


UNMEASURED = Meters()
