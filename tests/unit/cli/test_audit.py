"""`windrow audit`: who changed what, as a table and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.cli.conftest import Command


def test_changes_of_a_table_are_listed_newest_first(windrow: Command, sales: Path) -> None:
    windrow("table", "register", "audited", str(sales))
    windrow("table", "refresh", "audited")

    shown = windrow("audit", "audited")
    told = json.loads(windrow("audit", "audited", "--json").out)["changes"]

    assert shown.code == 0
    assert "snapshot 1 created" in shown.out
    assert [(change["kind"], change["outcome"]) for change in told][:2] == [
        ("snapshot", "created"),
        ("table", "created"),
    ]
    assert windrow("audit", "audited", "--limit", "1").out.count("anonymous") == 1


def test_changes_are_chosen_by_caller_and_time(windrow: Command, sales: Path) -> None:
    windrow("table", "register", "audited_too", str(sales))

    later = windrow("audit", "audited_too", "--since", "2126-01-01")
    by_nobody = windrow("audit", "audited_too", "--by", "nobody", "--since", "2026-01-01T00:00Z")

    assert "no matching change is recorded" in later.out
    assert "no matching change is recorded" in by_nobody.out
    assert windrow("audit", "--since", "soon").code == 2
