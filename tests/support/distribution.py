"""The assignment of test files to the processes of a run, and their order."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

_TESTS = Path(__file__).parents[1]
# Most tests in these folders take seconds, since they start and kill processes.
SLOW_FOLDERS = {"browser", "deploy", "faults", "spark"}
# Things that files share, since they are costly to start: the folder of the files that use one, a
# text in these files, and the number of processes of a run that start it. The slowest come first.
# Two sessions keep two cores busy.
_SHARED = {
    "benchmarks": ("spark", "one_process(", 1),
    "older Spark": ("spark", "on_older_sparks", 1),
    "session": ("spark", "spark: SparkSession", 2),
    "cluster": ("spark", "CachingCluster", 1),
    "coordinator of commands": ("unit/cli", "", 1),
}


def place_in_line(item: pytest.Item) -> int:
    """Return the place of a marked test: the long ones are first.

    The many short files at the end then keep all processes of a run busy.
    """
    if resources := shared_by(str(item.path)):
        return min(list(_SHARED).index(name) for name in resources)
    if item.get_closest_marker("spark"):
        return len(_SHARED)
    return len(_SHARED) + (1 if item.get_closest_marker("slow") else 2)


@cache
def shared_by(file: str) -> frozenset[str]:
    """Return the names of the things that a file shares with others."""
    path = _TESTS.parent / file
    used_there = {
        name: marker
        for name, (folder, marker, _) in _SHARED.items()
        if _TESTS / folder in path.parents
    }
    text = path.read_text() if used_there else ""
    return frozenset(name for name, marker in used_there.items() if marker in text)


class WholeFiles(LoadFileScheduling):  # type: ignore[misc]
    """Gives processes whole files, first those that use what they have already started."""

    def _split_scope(self, nodeid: str) -> str:
        # Each suite of others is a process of its own, and takes minutes.
        return nodeid if nodeid.startswith("tests/judges/") else str(super()._split_scope(nodeid))

    def _assign_work_unit(self, node: WorkerController) -> None:
        file = self._next_file(node)
        if file is None:
            # All remaining files are for processes that have started the things they share.
            node.shutdown()
        else:
            self.workqueue.move_to_end(file, last=False)
            super()._assign_work_unit(node)

    def _next_file(self, node: WorkerController) -> str | None:
        started = {
            each: frozenset[str]().union(*map(shared_by, files))
            for each, files in self.assigned_work.items()
        }
        counts = Counter(name for names in started.values() for name in names)
        mine = started[node]
        for_others = {name for name, (_, _, most) in _SHARED.items() if counts[name] >= most} - mine
        possible = [file for file in self.workqueue if not shared_by(file) & for_others]
        return min(possible, key=lambda file: not shared_by(file) & mine, default=None)
