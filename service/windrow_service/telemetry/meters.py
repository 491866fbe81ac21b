"""What is measured; this measures nothing, and `prometheus.py` counts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from windrow.models import PlanSummary, RefreshStatus, WorkerInfo

Store = Literal["database", "cache_map"]
Gauge = Literal["queue_running", "queue_waiting", "manifest_cache_bytes", "refreshes_running"]

# A table with nothing but files of this size has no excess files.
WELL_SIZED_BYTES = 128 * 2**20


@dataclass(frozen=True, slots=True)
class TableFigures:
    """How many files a table has: `excess` of them are more than WELL_SIZED_BYTES would need."""

    name: str
    files: int
    size_bytes: int
    excess: int


# Takes the seconds of a call, and whether it was not answered.
Called: TypeAlias = Callable[[float, bool], None]


class LooksAtTables(Protocol):
    """Finds tables that need care."""

    async def worst(self, limit: int) -> tuple[int, Sequence[TableFigures]]:
        """Return how many tables there are, and those with the most excess files."""


class Meters:
    """Takes note of what happens; called from any thread, and never raises."""

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Take note of a request that was answered.

        Args:
            method: Its method.
            route: The template of its path; empty if there is none.
            status: The answer's.
            seconds: How long it took.
        """

    def plan(self, summary: PlanSummary, phases: Mapping[str, float]) -> None:
        """Take note of a plan that was made, and of the seconds of each phase."""

    def waited(self, queue: str, seconds: float) -> None:
        """Take note of work that had to wait for a thread."""

    def refused(self, queue: str) -> None:
        """Take note of work that was refused because too much was waiting."""

    def manifests(self, *, hits: int, misses: int) -> None:
        """Take note of manifests that were in memory, and of others."""

    def refresh(self, ended: RefreshStatus) -> None:
        """Take note of a refresh that ended here."""

    def write(self, kind: str, state: str) -> None:
        """Take note of a write that reached a state."""

    def compaction_planned(self) -> None:
        """Take note of a page of a compaction plan."""

    def caller(self, store: Store, operation: str) -> Called:
        """Return what takes note of each call of an operation of the database or the cache map."""
        return _ignore

    def gauge(self, name: Gauge, read: Callable[[], float], queue: str | None = None) -> None:
        """Show a number as it is at the moment of looking; `read` is called from any thread."""

    def tables(self, count: int, worst: Sequence[TableFigures]) -> None:
        """Take note of how many tables there are, and of those with the most excess files."""

    def workers(self, live: Sequence[WorkerInfo]) -> None:
        """Take note of what live workers say of their caches."""


def _ignore(seconds: float, failed: bool) -> None: ...


UNMEASURED = Meters()
