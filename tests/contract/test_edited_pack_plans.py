"""Scans of plans whose places in packs are wrong: the rows of the files, and no others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import windrow
from tests.support.tables.packs import pack_here, packs_for_few_files, write_small_files
from windrow_calls.plans import PlanCalls, SplitPlan

ROWS = 40


def edited(plan: SplitPlan, changes: dict[int, Any]) -> SplitPlan:
    """Return a plan with other places in a pack, for files by their order there."""
    splits = plan.groups["splits"].to_pylist()
    in_order = sorted((one for some in splits for one in some), key=lambda one: one["pack_row"])
    for at, row in changes.items():
        in_order[at]["pack_row"] = row
    at = plan.groups.column_names.index("splits")
    column = pa.array(splits, plan.groups.schema.field("splits").type)
    return replace(plan, groups=plan.groups.set_column(at, "splits", column))


@pytest.mark.parametrize(
    "changes",
    [{}, {0: -1}, {0: -ROWS}, {5: 4 * ROWS}, {5: 4 * ROWS + 1}, {59: 58 * ROWS}, {59: 2**40}],
)
def test_a_scan_returns_the_rows_of_the_files_whatever_a_plan_says_of_packs(
    client: windrow.Client,
    name: str,
    location: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[int, Any],
) -> None:
    write_small_files(location, rows=ROWS)
    client.register_table(name, str(location))
    pack_here(client, name)
    plan = PlanCalls.plan
    packs = []

    def plan_with_changes(own: Any, *arguments: Any, **more: Any) -> SplitPlan:
        answer = plan(own, *arguments, **more)
        packs.extend(answer.info.packs)
        return edited(answer, changes)

    monkeypatch.setattr(PlanCalls, "plan", plan_with_changes)
    with packs_for_few_files():
        rows = client.scan(name, columns=["id"]).to_table()

    assert packs
    assert sorted(rows["id"].to_pylist()) == list(range(60 * ROWS))
