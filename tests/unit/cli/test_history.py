"""`windrow history`: plans that were made, as a table and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.cli.conftest import Command


def test_plans_of_a_table_are_listed_newest_first(windrow: Command, sales: Path) -> None:
    windrow("table", "register", "planned", str(sales))
    windrow("table", "refresh", "planned")
    for text in ("id > 1", "id > 2"):
        windrow("plan", "planned", "--filter", text)

    shown = windrow("history", "planned")
    told = json.loads(windrow("history", "planned", "--json").out)["plans"]

    assert shown.code == 0
    assert [one["filter"] for one in told] == ["id > 2", "id > 1"]
    assert shown.out.index("id > 2") < shown.out.index("id > 1")
    latest = windrow("history", "--limit", "1", "--since", "2026-01-01", "--json").out
    assert json.loads(latest)["plans"] == told[:1]
    assert windrow("history", "--plan", told[1]["plan_id"]).out.count(told[1]["plan_id"][:8]) == 1


def test_a_search_without_results_says_so(windrow: Command) -> None:
    assert "no matching plan is recorded" in windrow("history", "--until", "2001-01-01").out
    assert windrow("history", "--since", "soon").code == 2
