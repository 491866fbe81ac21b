"""`POST /write-plans`: how many files a write makes, and how; or why it cannot be said."""

from __future__ import annotations

import datetime
from typing import Any

import httpx
import pytest

from tests.support.problems import problem_of

MIB = 2**20


def days(count: int) -> list[str]:
    first = datetime.date(2018, 1, 1)
    return [(first + datetime.timedelta(day)).isoformat() for day in range(count)]


def keys_of(rows: list[int]) -> dict[str, Any]:
    return {
        "columns": [{"name": "ds", "type": "string"}],
        "values": [days(len(rows))],
        "rows": rows,
    }


def planned(http: httpx.Client, **request: Any) -> dict[str, Any]:
    answer = http.post("/write-plans", json=request)
    assert answer.status_code == 200, answer.text
    plan: dict[str, Any] = answer.json()
    return plan


def test_counted_keys_get_an_exact_plan(http: httpx.Client) -> None:
    rows = [5_000, 100, 200, 1_600, 0]

    plan = planned(http, keys=keys_of(rows), target_rows=1_000)

    assert (plan["scheme"], plan["basis"]) == ("exact", "rows")
    assert plan["keys"]["files"] == [5, 1, 1, 2, 1]
    # Large keys first; the small ones share what follows.
    assert plan["keys"]["first_task"] == [0, 7, 7, 5, 7]
    assert plan["tasks"] == 8
    assert plan["files"] == 9
    assert plan["keys"]["values"] == [days(5)]
    assert plan["outcome"]["largest_file_bytes"] is None
    assert {other["scheme"] for other in plan["others"]} == {
        "coalesce", "repartition", "columns", "salted", "range", "range_hash",
    }  # fmt: skip
    assert all(other["reason"] for other in plan["others"])


def test_a_table_that_is_not_there_is_named(http: httpx.Client) -> None:
    answer = http.post("/write-plans", json={"table": "no_such", "rows": 5})

    problem_of(answer, 404, "table-not-found")


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param({"target_file_size": 0, "rows": 1}, id="a target of no bytes"),
        pytest.param({"target_rows": 0, "rows": 1}, id="a target of no rows"),
        pytest.param({"scheme": "hope", "rows": 1}, id="an unknown scheme"),
    ],
)
def test_what_the_contract_does_not_allow_is_refused(
    http: httpx.Client, request_: dict[str, Any]
) -> None:
    problem_of(http.post("/write-plans", json=request_), 422, "invalid-request")
