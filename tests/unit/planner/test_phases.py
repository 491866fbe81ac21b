"""The planner announces its phases in the order in which they are declared and documented."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.tables.inventories import inventory
from windrow_core.planning import PlanPhase
from windrow_service.planner.plan import plan_groups
from windrow_service.planner.policy import Policy

DOCS = Path(__file__).parents[3] / "docs"
# The first and the last are around the planner.
PLANNED = list(PlanPhase)[1:-1]


def test_the_planner_announces_each_of_its_phases_once_and_in_order() -> None:
    phases: list[PlanPhase] = []

    plan_groups(inventory([1]), None, Policy(), begin=phases.append)

    assert phases == PLANNED


def test_documents_list_the_phases_in_their_order() -> None:
    labels = [phase.label for phase in PlanPhase]
    metric = re.search(r"^\| `windrow_planning_seconds` .*", _page("reference/metrics.md"), re.M)
    drawing = re.search(r"(\w+→)+\w+", _page("architecture.md"))

    assert metric is not None
    assert [word for word in re.findall(r"`(\w+)`", metric[0]) if word in labels] == labels
    assert drawing is not None
    assert drawing[0].split("→") == [phase.label for phase in PLANNED]


def _page(name: str) -> str:
    return (DOCS / name).read_text()
