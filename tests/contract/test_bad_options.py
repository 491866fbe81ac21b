"""Invalid plan options are refused with the field's name and its whole range."""

from __future__ import annotations

from typing import Any, get_args

import httpx
import pytest

from tests.support.api.problems import problem_of
from windrow_core.planning import StrategyName

SIZES = ["max_split_size", "min_split_size", "max_initial_split_size", "open_file_cost"]
NO_SIZES = {
    "negative": -1,
    "negative text": "-1MB",
    "beyond the largest": 2**70,
    "text beyond the largest": "9" * 400 + "TB",
    "a part of a byte": 1.5,
    "an unknown unit": "64 parsecs",
    "no text": "",
    "a list": [1],
    "an object": {},
}
COUNTS = {
    "parallelism": (1, 1_000_000),
    "max_initial_splits": (0, 1_000_000),
    "max_small_splits_grouped": (1, 10_000_000),
    "max_partition_num": (1, 1_000_000),
    "planning_lookback": (1, 100),
}
CHOICES = {
    "strategy": list(get_args(StrategyName)),
    "cached_splits": ["separate", "by_worker"],
}


def refused(http: httpx.Client, **fields: Any) -> str:
    # Options are checked before the table is looked up, so it need not exist.
    answer = http.post("/plans", json={"table": "no.table"} | fields)
    detail: str = problem_of(answer, 422, "invalid-request")["detail"]
    return detail


@pytest.mark.parametrize("size", NO_SIZES.values(), ids=NO_SIZES)
@pytest.mark.parametrize("field", SIZES)
def test_text_that_is_not_a_size_is_refused(http: httpx.Client, field: str, size: object) -> None:
    detail = refused(http, options={field: size})

    low, high = (0, 2**40) if field == "open_file_cost" else (1, 2**50)
    assert detail.startswith(f"body.options.{field}: ")
    assert f"bytes from {low} to {high:,}" in detail
    assert "'64MB'" in detail


@pytest.mark.parametrize("zero", [0, "0", "0MB"], ids=str)
@pytest.mark.parametrize("field", SIZES[:3])
def test_a_size_of_0_is_refused(http: httpx.Client, field: str, zero: object) -> None:
    detail = refused(http, options={field: zero})

    assert f"{field}: it must be bytes from 1 to {2**50:,}" in detail


@pytest.mark.parametrize("field", COUNTS)
def test_a_count_out_of_range_is_refused(http: httpx.Client, field: str) -> None:
    low, high = COUNTS[field]

    for count in (low - 1, -7, high + 1, 2**70, 1.5, "many", [1]):
        detail = refused(http, options={field: count})

        wanted = f"a whole number from {low:,} to {high:,}"
        assert detail == f"body.options.{field}: it must be {wanted}"


@pytest.mark.parametrize("field", COUNTS)
def test_both_ends_of_a_range_are_allowed(http: httpx.Client, events: str, field: str) -> None:
    for count in COUNTS[field]:
        answer = http.post("/plans", json={"table": events, "options": {field: count}})

        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("field", ["min_split_size", "max_initial_split_size"])
def test_a_size_above_the_maximum_is_refused(http: httpx.Client, events: str, field: str) -> None:
    options = {"max_split_size": "1MB", field: "1025KB"}

    detail = refused(http, options=options)

    assert f"{field} (1049600) is above max_split_size (1048576)" in detail
    assert "may be 1 to 1048576" in detail
    same = http.post("/plans", json={"table": events, "options": options | {field: "1MB"}})
    assert same.is_success


def test_an_initial_size_above_the_default_maximum_is_refused(
    http: httpx.Client, events: str
) -> None:
    # The table might allow more, so it is looked up first.
    detail = refused(http, table=events, options={"max_initial_split_size": "65MB"})

    assert f"max_initial_split_size ({65 * 2**20}) is above max_split_size" in detail


@pytest.mark.parametrize("value", ["greedy", "", "Balanced", None, 3], ids=repr)
@pytest.mark.parametrize("field", CHOICES)
def test_an_unknown_choice_is_refused_and_all_choices_are_listed(
    http: httpx.Client, field: str, value: object
) -> None:
    detail = refused(http, options={field: value})

    assert detail.startswith(f"body.options.{field}: ")
    assert all(f"'{choice}'" in detail for choice in CHOICES[field])


def test_an_unknown_option_is_refused_and_named(http: httpx.Client) -> None:
    assert "body.options.max_splits" in refused(http, options={"max_splits": 5})


@pytest.mark.parametrize(
    ("field", "values", "wanted"),
    [
        ("limit", [0, -1, 10**12], "from 1 to 100,000,000,000"),
        ("page_size", [-1, 10_001], "from 0 to 10,000"),
        ("snapshot_id", [0, 2**31], "from 1 to 2,147,483,647"),
    ],
)
def test_a_number_that_is_no_option_is_refused_in_the_same_way(
    http: httpx.Client, field: str, values: list[int], wanted: str
) -> None:
    for value in values:
        detail = refused(http, **{field: value})

        assert detail == f"body.{field}: it must be a whole number {wanted}"


def test_all_faults_are_named_at_once(http: httpx.Client) -> None:
    detail = refused(http, options={"parallelism": 0, "max_split_size": 0}, limit=0)

    for field in ("options.parallelism", "options.max_split_size", "limit"):
        assert f"body.{field}: it must be" in detail


def test_the_published_contract_states_the_ranges(http: httpx.Client) -> None:
    schemas = http.get("/openapi.json").json()["components"]["schemas"]
    options = schemas["PlanOptions"]["properties"]

    for field, (low, high) in COUNTS.items():
        number = options[field].get("anyOf", [options[field]])[0]
        assert (number["minimum"], number["maximum"]) == (low, high)
    size = options["max_split_size"]
    assert (size["minimum"], size["maximum"]) == (1, 2**50)
