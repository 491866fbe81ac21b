"""How many files Spark's own scans of a folder have read for a query."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame

_SCAN = "FileSourceScanExec"


class FileScan(NamedTuple):
    """A scan of a folder: the columns that it reads, and the number of files."""

    columns: frozenset[str]
    files: int


def file_scans(query: DataFrame, location: Path) -> list[FileScan]:
    """Return the scans of a folder by a query whose rows have been collected.

    Args:
        query: The query. A scan of its plan that did not run, since Spark did not need it, has
            read no files; one whose rows several parts of the plan use has read them once.
        location: The folder.
    """
    scans: dict[int, FileScan] = {}
    for scan in _scans(query._jdf.queryExecution().executedPlan()):
        roots = [root.toUri().getPath() for root in _items(scan.relation().location().rootPaths())]
        if roots != [str(location)]:
            continue
        count = scan.metrics().apply("numFiles")
        names = (attribute.name() for attribute in _items(scan.output()))
        scans[count.id()] = FileScan(frozenset(names), max(0, count.value()))
    return list(scans.values())


def _scans(plan: Any) -> Iterator[Any]:
    """Yield the scans below a node of a physical plan, some of them several times."""
    name = plan.getClass().getSimpleName()
    if name == _SCAN:
        yield plan
    parts = [*_items(plan.children()), *_items(plan.subqueries())]
    if name == "AdaptiveSparkPlanExec":
        # Scans that ran before Spark found that it did not need them are in the first plan alone.
        parts = [plan.executedPlan(), plan.initialPlan()]
    elif name.endswith("QueryStageExec"):
        parts = [plan.plan()]
    elif name in ("ReusedExchangeExec", "ReusedSubqueryExec"):
        parts = [plan.child()]
    for part in parts:
        yield from _scans(part)


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(at) for at in range(sequence.size()))
