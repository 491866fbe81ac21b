"""`/plans/{id}/explain`: a plan's explanation, and its comparison with other strategies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import httpx
import pyarrow as pa
import pytest

import windrow
from tests.support.api.problems import problem_of
from tests.support.tables import hive
from windrow_core.planning import StrategyName

MIB = 2**20
STRATEGIES = list(get_args(StrategyName))
MakePlan = Callable[..., dict[str, Any]]


def explained(http: httpx.Client, plan: dict[str, Any]) -> dict[str, Any]:
    answer = http.get(f"/plans/{plan['plan_id']}/explain")
    assert answer.status_code == 200, answer.text
    explanation: dict[str, Any] = answer.json()
    return explanation


def publish(url: str, name: str, location: Path, sizes: list[int], hosts: list[list[str]]) -> None:
    location.mkdir()
    files = pa.table(
        {
            "path": [f"f{at:05d}.parquet" for at in range(len(sizes))],
            "size_bytes": sizes,
            "mtime_ns": [0] * len(sizes),
            "row_count": [1] * len(sizes),
            "hosts": pa.array(hosts, pa.list_(pa.string())),
        }
    )
    with windrow.connect(url) as client:
        client.register_table(name, str(location), columns={"id": "bigint"})
        client.publish(name, files)


@pytest.fixture(scope="module")
def shared(url: str, tables_folder: Path) -> str:
    """A table for tests that do not change it."""
    hive.write_events(tables_folder / "explained")
    with windrow.connect(url) as client:
        client.register_table("explained", str(tables_folder / "explained"))
        client.refresh("explained")
    return "explained"


QUESTIONS: dict[str, dict[str, Any]] = {
    "everything": {},
    "a filter that partitions settle": {"filter": "ds >= '2026-11-02'"},
    "a filter that statistics settle": {"filter": "id BETWEEN 15 AND 25 OR NOT (id < 50)"},
    "a filter of texts": {"filter": "name LIKE 'name-1%' AND ds IN ('2026-11-01', '2026-11-03')"},
    "a filter that no row matches": {"filter": "ds = '2030-01-01'"},
    "a limit": {"filter": "ds >= '2026-11-02'", "limit": 11},
    "options": {"options": {"max_split_size": 1, "parallelism": 4}},
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_the_first_strategy_and_its_figures_are_those_of_the_plan(
    http: httpx.Client, shared: str, make_plan: MakePlan, strategy: str, question: dict[str, Any]
) -> None:
    options = question.get("options", {}) | {"strategy": strategy}
    plan = make_plan(shared, **question | {"options": options, "page_size": 1000})
    summary = plan["summary"]

    explanation = explained(http, plan)

    own = explanation["strategies"][0]
    assert (own["strategy"], own["group_count"]) == (strategy, summary["group_count"])
    assert {each["strategy"] for each in explanation["strategies"]} == set(STRATEGIES)
    assert sum(reason["groups"] for reason in explanation["reasons"]) == summary["group_count"]
    assert sum(reason["splits"] for reason in explanation["reasons"]) == summary["split_count"]
    assert sum(reason["size_bytes"] for reason in explanation["reasons"]) == summary["size_bytes"]
    assert sum(explanation["fill_histogram"]) == summary["group_count"]
    assert sum(explanation["locality"].values()) == summary["size_bytes"]
    assert {
        step["step"]: (step["files"], step["size_bytes"]) for step in explanation["pruned"]
    } == {
        step: (summary[f"files_pruned_by_{step}"], summary[f"bytes_pruned_by_{step}"])
        for step in ("manifest", "partition", "statistics", "bloom", "limit")
    }
    for field in ("files_total", "files_planned", "size_bytes", "split_count"):
        assert explanation[field] == summary[field]
    for field in ("plan_id", "table", "snapshot_id", "options"):
        assert explanation[field] == plan[field]


def test_each_strategys_figures_equal_a_plan_made_with_it(
    http: httpx.Client, url: str, name: str, location: Path, make_plan: MakePlan
) -> None:
    hosts = [[f"h{at % 4}"] for at in range(120)]
    publish(url, name, location, [(1 + at % 7) * MIB for at in range(120)], hosts)
    options = {"max_split_size": 32 * MIB, "parallelism": 3}
    plan = make_plan(name, options=options | {"strategy": "spark"})

    explanation = explained(http, plan)

    counts = {each["strategy"]: each["group_count"] for each in explanation["strategies"]}
    made = {
        strategy: make_plan(name, options=options | {"strategy": strategy})["summary"]
        for strategy in STRATEGIES
    }
    assert counts == {strategy: summary["group_count"] for strategy, summary in made.items()}
    assert len(set(counts.values())) > 1
    for each in explanation["strategies"]:
        assert each["fewest_groups"] <= each["group_count"]
        assert 0 < each["fill"] <= 1
        assert each["longest_task_seconds"] <= each["slowest_slot_seconds"]
        assert each["slowest_slot_seconds"] <= each["all_tasks_seconds"]
        assert each["all_tasks_seconds"] <= 3 * each["slowest_slot_seconds"]


def test_all_strategies_are_compared_with_the_requested_or_the_calibrated_open_cost(
    http: httpx.Client, events: str, make_plan: MakePlan
) -> None:
    calibrated = http.get("/config").json()["defaults"]["open_file_cost"]

    left_out = explained(http, make_plan(events, options={"strategy": "spark"}))
    asked = explained(http, make_plan(events, options={"open_file_cost": "8MB"}))

    assert left_out["options"]["open_file_cost"] == 4 * MIB
    assert left_out["open_file_cost"] == calibrated
    assert asked["open_file_cost"] == 8 * MIB
    # These few files are one group under every strategy: only the cost model could differ.
    for explanation in (left_out, asked):
        assert {each["group_count"] for each in explanation["strategies"]} == {1}
        assert len({each["all_tasks_seconds"] for each in explanation["strategies"]}) == 1
    slowest = asked["strategies"][0]["slowest_slot_seconds"]
    assert slowest > left_out["strategies"][0]["slowest_slot_seconds"]


def test_bytes_are_counted_by_locality(
    http: httpx.Client, url: str, name: str, location: Path, make_plan: MakePlan
) -> None:
    # One group, which prefers host a; host b is in the same rack, host c in another.
    hosts = [["/r/a"]] * 3 + [["/r/b"], ["/q/c"], []]
    publish(url, name, location, [4 * MIB] * 3 + [1 * MIB, 2 * MIB, 3 * MIB], hosts)
    options = {"strategy": "iceberg", "open_file_cost": 0}

    explanation = explained(http, make_plan(name, options=options))

    assert explanation["locality"] == {
        "host_bytes": 12 * MIB,
        "rack_bytes": MIB,
        "elsewhere_bytes": 2 * MIB,
        "unknown_bytes": 3 * MIB,
    }


def test_an_explanation_is_the_same_after_the_table_has_changed(
    http: httpx.Client, events: str, location: Path, make_plan: MakePlan
) -> None:
    plan = make_plan(events)
    before = explained(http, plan)
    hive.write_file(location / "ds=2026-11-09" / "new.parquet", [1])
    http.post(f"/tables/{events}/refresh").raise_for_status()

    assert explained(http, plan) == before


def test_a_missing_or_deleted_plan_is_not_explained(
    http: httpx.Client, events: str, make_plan: MakePlan
) -> None:
    plan = make_plan(events)
    path = f"/plans/{plan['plan_id']}"
    http.delete(path).raise_for_status()

    problem_of(http.get(f"{path}/explain"), 404, "plan-not-found")
    problem_of(http.get("/plans/not-an-id/explain"), 422, "invalid-request")


def test_the_explanation_of_a_plan_without_its_snapshot_says_what_is_missing(
    http: httpx.Client, events: str, location: Path, make_plan: MakePlan
) -> None:
    plan = make_plan(events)
    path = f"/plans/{plan['plan_id']}/explain"
    http.delete(f"/tables/{events}").raise_for_status()

    dropped = http.get(path)
    http.put(f"/tables/{events}", json={"location": str(location)}).raise_for_status()
    registered = http.get(path)
    http.post(f"/tables/{events}/refresh").raise_for_status()
    refreshed = http.get(path)

    # The last answer is from a new table that has a snapshot with the same id.
    for answer in (dropped, registered, refreshed):
        detail = problem_of(answer, 410, "plan-snapshot-gone")["detail"]
        assert plan["plan_id"] in detail
        assert "plan again" in detail


def test_the_client_explains_a_plan(url: str, events: str) -> None:
    with windrow.connect(url) as client:
        plan = client.plan(events, parallelism=2)

        explanation = client.explain(plan.info.plan_id)

    assert explanation.strategies[0].group_count == len(plan)
    assert explanation.options == plan.info.options
