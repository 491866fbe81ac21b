"""A table moves, and loses snapshots and lists of partitions, only if the caller agrees to that."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api.problems import problem_of

BY_TEXT = [{"name": "ds", "type": "string"}]
AGREED = {"replace": True}


def stand(http: httpx.Client, table: str) -> tuple[Any, ...]:
    """Return all that a table has: itself, its ETag, its snapshots and its changes."""
    answer = http.get(f"/tables/{table}")
    snapshots = http.get(f"/tables/{table}/snapshots").json()["snapshots"]
    changes = http.get("/audit", params={"table": table}).json()
    return answer.json(), answer.headers["ETag"], snapshots, changes


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"location": "{location}_elsewhere"}, "location"),
        ({"format": "orc"}, "format"),
        ({"columns": [{"name": "id", "type": "bigint"}]}, "columns"),
        ({"partition_columns": BY_TEXT}, "partition_columns"),
        ({"format": "csv", "format_options": {"sep": ";"}}, "format and format_options"),
    ],
)
@pytest.mark.parametrize("headers", [{}, {"If-Match": "*"}])
def test_a_change_that_would_drop_snapshots_is_refused_and_changes_nothing(
    http: httpx.Client,
    events: str,
    location: Path,
    fields: dict[str, Any],
    names: str,
    headers: dict[str, str],
) -> None:
    before = stand(http, events)
    body = {"location": str(location)} | fields
    body["location"] = body["location"].replace("{location}", str(location))

    refused = http.put(f"/tables/{events}", json=body, headers=headers)

    detail = problem_of(refused, 409, "unconfirmed-replacement")["detail"]
    assert f"{events!r} has 1 snapshot, which its new {names} would drop" in detail
    assert f"PUT /tables/{events}?replace=true" in detail
    assert stand(http, events) == before


@pytest.mark.parametrize("agrees", ["replace", "If-Match"])
def test_a_caller_that_agrees_replaces_the_table(
    http: httpx.Client, events: str, location: Path, agrees: str
) -> None:
    etag = http.get(f"/tables/{events}").headers["ETag"]
    sent: dict[str, Any] = {
        "replace": {"params": AGREED},
        "If-Match": {"headers": {"If-Match": etag}},
    }[agrees]
    body = {"location": f"{location}_elsewhere"}

    made = http.put(f"/tables/{events}", json=body, **sent)

    assert (made.status_code, made.json()["current_snapshot"]) == (200, None)
    assert http.get(f"/tables/{events}/snapshots").json()["snapshots"] == []


def test_agreeing_with_an_outdated_table_changes_nothing(
    http: httpx.Client, events: str, location: Path
) -> None:
    before = stand(http, events)

    answer = http.put(
        f"/tables/{events}",
        json={"location": f"{location}_elsewhere"},
        params=AGREED,
        headers={"If-Match": '"old"'},
    )

    problem_of(answer, 412, "table-changed")
    assert stand(http, events) == before


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"sort_columns": [{"name": "id"}]},
        {"bloom_columns": ["id"]},
        {"plan_options": {"max_split_size": 2**20}},
        {"imported_from": "hive:a.b"},
    ],
)
def test_a_change_that_drops_nothing_needs_no_consent(
    http: httpx.Client, events: str, location: Path, fields: dict[str, Any]
) -> None:
    before = http.get(f"/tables/{events}").json()["current_snapshot"]

    made = http.put(f"/tables/{events}", json={"location": str(location)} | fields)

    assert (made.status_code, made.json()["current_snapshot"]) == (200, before)


def test_even_a_table_that_has_nothing_to_lose_moves_only_if_the_caller_agrees(
    http: httpx.Client, name: str, location: Path
) -> None:
    http.put(f"/tables/{name}", json={"location": str(location)})
    elsewhere = {"location": f"{location}_elsewhere"}

    refused = http.put(f"/tables/{name}", json=elsewhere)
    made = http.put(f"/tables/{name}", json=elsewhere, params=AGREED)

    detail = problem_of(refused, 409, "unconfirmed-replacement")["detail"]
    assert f"{name!r} is already registered, at {location}: " in detail
    assert made.status_code == 200


def test_a_table_that_has_nothing_to_lose_changes_where_it_lies_without_being_asked(
    http: httpx.Client, name: str, location: Path
) -> None:
    http.put(f"/tables/{name}", json={"location": str(location)})

    made = http.put(f"/tables/{name}", json={"location": str(location), "format": "orc"})

    assert made.status_code == 200


def test_a_list_of_partitions_alone_is_something_to_lose(
    http: httpx.Client, name: str, location: Path
) -> None:
    # Even an empty list, which says that the table has no partitions.
    body = {"location": str(location), "partition_columns": BY_TEXT}
    http.put(f"/tables/{name}", json=body)
    http.put(f"/tables/{name}/partitions", json={"partitions": []}).raise_for_status()

    refused = http.put(f"/tables/{name}", json=body | {"location": f"{location}_elsewhere"})

    assert "a list of 0 partitions" in problem_of(refused, 409, "unconfirmed-replacement")["detail"]


def test_an_idempotency_key_agrees_to_nothing_but_its_own_request(
    http: httpx.Client, events: str, location: Path
) -> None:
    body = {"location": f"{location}_elsewhere"}
    path, key = f"/tables/{events}", {"Idempotency-Key": events}

    refused = http.put(path, json=body, headers=key)
    made = http.put(path, json=body, headers=key, params=AGREED)
    again = http.put(path, json=body, headers=key, params=AGREED)
    other = http.put(path, json=body, headers=key)

    problem_of(refused, 409, "unconfirmed-replacement")
    assert (made.status_code, again.headers["Idempotency-Replayed"]) == (200, "true")
    problem_of(other, 422, "idempotency-key-reused")


def test_of_two_callers_at_once_only_the_one_that_agreed_replaces_the_table(
    http: httpx.Client, events: str, location: Path
) -> None:
    places = {"agreed": f"{location}_1", "not": f"{location}_2"}

    def register(who: str) -> int:
        params = AGREED if who == "agreed" else {}
        where = {"location": places[who]}
        return http.put(f"/tables/{events}", json=where, params=params).status_code

    with ThreadPoolExecutor(2) as threads:
        for _ in range(10):
            http.put(f"/tables/{events}", json={"location": str(location)}, params=AGREED)
            http.post(f"/tables/{events}/refresh").raise_for_status()
            agreed, silent = threads.map(register, places)

            after = http.get(f"/tables/{events}").json()
            assert (agreed, silent, after["current_snapshot"]) == (200, 409, None)
            assert after["definition"]["location"] == places["agreed"]
