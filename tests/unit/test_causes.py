"""Why a read took long: each cause is named where it is the cause, and nowhere else."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from windrow_core.models import PastPlan, PlanOptions, PlanSummary, ScanReport, WayFigures
from windrow_service.usecases.plans.causes import causes_of, durations_of

_AT = datetime(2026, 11, 27, tzinfo=timezone.utc)
MIB = 2**20


def past(
    *, scan: dict[str, Any] | None = None, options: dict[str, Any] | None = None, **fields: Any
) -> PastPlan:
    """Return a plan of 64 files of 64 MB, half of the table, read by 8 slots in 2 s."""
    request = {name: fields.pop(name) for name in ("filter", "limit") if name in fields}
    summary = {
        "strategy": "balanced",
        "files_total": 128,
        "files_planned": 64,
        "files_pruned_by_partition": 64,
        "files_pruned_by_statistics": 0,
        "size_bytes": 64 * 64 * MIB,
        "group_count": 64,
        "split_count": 64,
        "largest_group_bytes": 64 * MIB,
        "smallest_group_bytes": 64 * MIB,
        "largest_group_splits": 1,
        "groups_with_hosts": 0,
        "planning_seconds": 0.01,
        "longest_task_seconds": 0.25,
        "slowest_slot_seconds": 2.0,
        "all_tasks_seconds": 16.0,
        **fields,
    }
    report = {"plan_id": "0" * 32, "seconds": 2.1, "planning_seconds": 0.02} | (scan or {})
    report.setdefault("native", {"files": 64, "seconds": 16.0})
    return PastPlan(
        number=1,
        plan_id="0" * 32,
        table="t",
        principal="ana",
        status="completed",
        created_at=_AT,
        expires_at=_AT,
        seconds=0.02,
        options=PlanOptions.completed({"parallelism": 8, **(options or {})}),
        summary=PlanSummary.model_validate(summary),
        scan=None if scan is None else ScanReport.model_validate(report),
        **request,
    )


def kinds(plan: PastPlan) -> list[str]:
    return [one.kind for one in causes_of(plan)]


def test_a_read_of_what_is_needed_has_no_cause() -> None:
    assert kinds(past()) == kinds(past(scan={})) == []


CASES: dict[str, PastPlan] = {
    "planning": past(scan={"planning_seconds": 9.0}),
    "single_files": past(
        scan={"cache_hits": 576}, cacheable_files=576, group_count=576, cached_files=576
    ),
    "nothing_pruned": past(
        scan={}, filter="amount > 3", files_total=64, files_pruned_by_partition=0
    ),
    "no_condition": past(scan={}, files_total=64, files_pruned_by_partition=0),
    "small_files": past(
        scan={"seconds": 11.0, "groups": {"files": 4380, "seconds": 80.0}, "native": {}},
        files_total=9_000,
        files_planned=4_380,
        size_bytes=4_380 * 16_384,
    ),
    "cold_cache": past(scan={"cache_hits": 3}, cacheable_files=16),
    "slow_store": past(scan={"requests": 500, "retries": 40, "waited_seconds": 100.0}),
    "elsewhere": past(scan={"seconds": 60.0}),
    "uneven": past(slowest_slot_seconds=9.0),
}


@pytest.mark.parametrize("kind", CASES)
def test_the_cause_is_named(kind: str) -> None:
    cause, *_ = causes_of(CASES[kind])

    assert cause.kind == kind
    assert cause.seconds > 0
    assert not cause.text.endswith(".")
    assert not cause.remedy.endswith(".")


def test_causes_say_how_many_files_and_why() -> None:
    (alone,) = causes_of(CASES["single_files"])
    assert "576 of 576 groups hold one file each" in alone.text
    assert "cached_splits=separate" in alone.text
    (unpruned,) = causes_of(CASES["nothing_pruned"])
    assert "`amount > 3` left out nothing: all 64 files" in unpruned.text
    (store,) = causes_of(CASES["slow_store"])
    assert "40 of 500" in store.text


def test_a_choice_that_joins_cached_files_is_no_cause() -> None:
    plan = past(
        scan={"cache_hits": 576},
        options={"cached_splits": "by_worker"},
        cacheable_files=576,
        group_count=576,
    )
    assert kinds(plan) == []


def test_a_limit_explains_why_a_condition_leaves_out_nothing() -> None:
    plan = past(scan={}, filter="a > 3", limit=5, files_total=64, files_pruned_by_partition=0)
    assert kinds(plan) == []


def test_the_weightiest_cause_comes_first() -> None:
    plan = past(
        scan={"planning_seconds": 1.0, "seconds": 20.0},
        filter="amount > 3",
        files_total=64,
        files_pruned_by_partition=0,
    )
    assert kinds(plan) == ["elsewhere", "nothing_pruned"]


def test_a_plan_that_failed_has_no_durations() -> None:
    plan = past().model_copy(update={"summary": None, "options": None, "status": "failed"})
    assert (durations_of(plan), causes_of(plan)) == (None, [])


def test_a_plan_of_many_groups_has_durations_once_they_are_reported() -> None:
    assert durations_of(past(slowest_slot_seconds=None)) is None
    reported = durations_of(past(slowest_slot_seconds=None, scan={}))
    assert reported is not None
    assert (reported.reading, reported.total) == (2.0, pytest.approx(2.12))
    assert WayFigures().seconds == 0
