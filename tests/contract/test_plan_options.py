"""Plan options of a request, its session and its table: which one wins, and how it is shown."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import windrow
from tests.support.api.problems import problem_of
from windrow_calls.errors import TableChangedError
from windrow_core.models import READING_OPTIONS, PlanDefaults

MIB = 2**20
MakePlan = Callable[..., dict[str, Any]]


def define(http: httpx.Client, table: str, **options: Any) -> httpx.Response:
    """Give a table these plan options and no others."""
    definition = http.get(f"/tables/{table}").json()["definition"]
    return http.put(f"/tables/{table}", json=definition | {"plan_options": options})


def test_options_of_a_request_win_over_its_session_and_these_over_the_table(
    http: httpx.Client, events: str, make_plan: MakePlan
) -> None:
    define(http, events, strategy="tez", max_split_size="16MB", parallelism=5, open_file_cost=0)

    plan = make_plan(
        events,
        options={"max_split_size": 1},
        session_options={"max_split_size": "32MB", "parallelism": 2},
    )
    said = http.get(f"/plans/{plan['plan_id']}/explain").json()

    taken = {
        "strategy": ("tez", "table"),
        "open_file_cost": (0, "table"),
        "parallelism": (2, "session"),
        "max_split_size": (1, "request"),
        "max_initial_splits": (0, "default"),
    }
    for answer in (plan, said):
        assert answer["option_sources"].keys() == answer["options"].keys()
        assert taken == {
            name: (answer["options"][name], answer["option_sources"][name]) for name in taken
        }
    assert len(plan["groups"]) == 6
    assert said["strategies"][0]["strategy"] == "tez"


def test_null_means_that_an_option_is_not_set(
    http: httpx.Client, events: str, make_plan: MakePlan
) -> None:
    define(http, events, max_small_splits_grouped=1, strategy=None)

    plan = make_plan(
        events,
        options={"max_small_splits_grouped": None},
        session_options={"max_small_splits_grouped": None, "strategy": None},
    )

    assert plan["options"]["strategy"] == "balanced"
    assert plan["option_sources"]["strategy"] == "default"
    assert plan["option_sources"]["max_small_splits_grouped"] == "table"
    assert [len(group["splits"]) for group in plan["groups"]] == [1] * 6


def test_a_background_plan_takes_options_that_its_request_omits_from_the_table(
    http: httpx.Client, events: str
) -> None:
    define(http, events, max_split_size=1)
    body = {"table": events, "session_options": {"parallelism": 3}}

    plan = http.post("/plans", json=body, headers={"Prefer": "respond-async"}).json()
    while plan["status"] == "submitted":
        time.sleep(0.02)
        plan = http.get(f"/plans/{plan['plan_id']}").json()

    assert plan["summary"]["group_count"] == 6
    assert plan["option_sources"]["max_split_size"] == "table"
    assert plan["option_sources"]["parallelism"] == "session"


def test_groups_are_reused_only_while_the_options_are_the_same(
    http: httpx.Client, events: str, make_plan: MakePlan
) -> None:
    assert len(make_plan(events, reuse=True)["groups"]) == 1

    define(http, events, max_split_size=1)

    assert len(make_plan(events, reuse=True)["groups"]) == 6


def test_plan_options_change_without_a_new_snapshot_and_are_kept_as_given(
    http: httpx.Client, events: str
) -> None:
    snapshot = http.get(f"/tables/{events}").json()["current_snapshot"]

    answer = define(http, events, max_split_size="128MB", rack_split_reduction=0.5)

    assert answer.status_code == 200, answer.text
    table = http.get(f"/tables/{events}").json()
    assert table["current_snapshot"] == snapshot
    given = {k: v for k, v in table["definition"]["plan_options"].items() if v is not None}
    assert given == {"max_split_size": 128 * MIB, "rack_split_reduction": 0.5}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_splits": 5}, "body.plan_options.max_splits"),
        ({"strategy": "greedy"}, "body.plan_options.strategy"),
        ({"rack_split_reduction": 0}, "body.plan_options.rack_split_reduction"),
        ({"rack_split_reduction": "0.5"}, "body.plan_options.rack_split_reduction"),
        ({"planning_lookback": 101}, "a whole number from 1 to 100"),
    ],
)
def test_a_table_cannot_set_options_that_a_request_could_not_set(
    http: httpx.Client, events: str, options: dict[str, Any], said: str
) -> None:
    assert said in problem_of(define(http, events, **options), 422, "invalid-request")["detail"]


def test_a_table_cannot_set_options_that_contradict_the_defaults(
    http: httpx.Client, events: str
) -> None:
    problem = problem_of(define(http, events, min_split_size="65MB"), 422, "invalid-table")

    assert "min_split_size (68157440) is above max_split_size (67108864)" in problem["detail"]


def test_a_maximum_caps_sizes_of_lower_precedence_and_refuses_larger_ones_of_higher(
    http: httpx.Client, events: str, make_plan: MakePlan
) -> None:
    define(http, events, min_split_size="8MB", max_split_size="16MB")

    plan = make_plan(events, session_options={"max_split_size": "1MB"})
    refused = http.post("/plans", json={"table": events, "options": {"min_split_size": "17MB"}})

    assert plan["options"]["min_split_size"] == MIB
    detail = problem_of(refused, 422, "invalid-request")["detail"]
    assert f"min_split_size ({17 * MIB}) is above max_split_size ({16 * MIB})" in detail
    assert "max_split_size comes from the table" in detail


def test_options_unknown_to_the_previous_version_are_returned_only_if_they_are_set(
    http: httpx.Client, events: str
) -> None:
    define(http, events, requests_per_second=5.0)
    told = http.get(f"/tables/{events}").json()["definition"]["plan_options"]
    assert told["requests_per_second"] == 5.0
    assert not {"prefetch_files", "prefetch_bytes"} & set(told)

    define(http, events)
    told = http.get(f"/tables/{events}").json()["definition"]["plan_options"]
    assert not READING_OPTIONS & set(told)
    plan = http.post("/plans", json={"table": events}).json()
    assert not READING_OPTIONS & (set(plan["options"]) | set(plan["requested_options"]))
    asked = {"table": events, "options": {"prefetch_files": 64}}
    assert http.post("/plans", json=asked).json()["options"]["prefetch_files"] == 64
    # The client sends no unset ones either, whether it changes or registers a table.
    assert not READING_OPTIONS & set(PlanDefaults().model_dump())


def test_the_client_changes_one_plan_option_and_removes_another(url: str, events: str) -> None:
    with windrow.connect(url) as client:
        client.alter_table(events, plan_options={"max_split_size": "1MB", "strategy": "spark"})
        info = client.alter_table(events, plan_options={"parallelism": 7, "strategy": None})
        plan = client.plan(events, session_options={"max_split_size": "2MB"}).info

    given = info.definition.plan_options.model_dump(exclude_none=True)
    assert given == {"max_split_size": MIB, "parallelism": 7}
    assert plan.options.parallelism == 7
    assert (plan.options.max_split_size, plan.option_sources["max_split_size"]) == (
        2 * MIB,
        "session",
    )


def test_a_table_that_someone_else_changes_meanwhile_is_not_altered(
    url: str, http: httpx.Client, events: str, location: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with windrow.connect(url) as client:
        put = client.put_table

        def overtaken(*given: Any) -> Any:
            define(http, events, strategy="tez")
            return put(*given)

        monkeypatch.setattr(client, "put_table", overtaken)
        with pytest.raises(TableChangedError):
            client.alter_table(events, plan_options={"strategy": "spark"})

    assert http.get(f"/tables/{events}").json()["definition"]["plan_options"]["strategy"] == "tez"
