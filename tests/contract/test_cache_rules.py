"""`/tables/{name}/cache-rules`: add, look up and delete cache rules."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN
from tests.support.tables import hive

RECENT = {"filter": "ds >= '2026-11-02'"}


@pytest.fixture(scope="module")
def partitioned(url: str, tables_folder: Path) -> str:
    """A table partitioned by day, for tests that do not change it."""
    hive.write_events(tables_folder / "partitioned")
    with httpx.Client(verify=PLAIN, base_url=url) as http:
        table = {"location": str(tables_folder / "partitioned")}
        http.put("/tables/partitioned", json=table).raise_for_status()
        http.post("/tables/partitioned/refresh").raise_for_status()
    return "partitioned"


def path(table: str, rule: str = "recent") -> str:
    return f"/tables/{table}/cache-rules/{rule}"


def test_a_new_rule_is_created_and_repeating_it_changes_nothing(
    http: httpx.Client, events: str
) -> None:
    first = http.put(path(events), json=RECENT)
    again = http.put(path(events), json=RECENT)

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json() == http.get(path(events)).json()
    assert first.json() == {
        "table": events,
        "rule": "recent",
        "filter": "ds >= '2026-11-02'",
        "expires_at": None,
        "max_bytes": None,
        "created_at": first.json()["created_at"],
    }
    etags = {answer.headers["ETag"] for answer in (first, again, http.get(path(events)))}
    assert len(etags) == 1


def test_a_rule_keeps_its_filter_its_end_and_its_size_limit_as_given(
    http: httpx.Client, events: str
) -> None:
    ends = datetime.now(timezone(timedelta(hours=2))) + timedelta(days=7)
    tree = {"op": "in", "column": "ds", "values": ["2026-11-01", None]}
    definition = {"filter": tree, "expires_at": ends.isoformat(), "max_bytes": "5GB"}

    made = http.put(path(events), json=definition).json()

    assert made["filter"] == tree
    assert datetime.fromisoformat(made["expires_at"]) == ends
    assert made["max_bytes"] == 5 * 2**30


def test_a_changed_rule_gets_a_new_etag_and_keeps_its_creation_time(
    http: httpx.Client, events: str
) -> None:
    first = http.put(path(events), json=RECENT)

    changed = http.put(path(events), json={"filter": "ds = '2026-11-01'"})

    assert changed.status_code == 200
    assert changed.headers["ETag"] != first.headers["ETag"]
    assert changed.json()["created_at"] == first.json()["created_at"]
    assert http.get(path(events)).json()["filter"] == "ds = '2026-11-01'"


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_change_with_an_old_etag_is_refused(http: httpx.Client, events: str, method: str) -> None:
    old = http.put(path(events), json=RECENT).headers["ETag"]
    http.put(path(events), json={"filter": "ds = '2026-11-01'"}).raise_for_status()
    body = RECENT if method == "PUT" else None

    refused = http.request(method, path(events), json=body, headers={"If-Match": old})
    current = {"If-Match": http.get(path(events)).headers["ETag"]}
    made = http.request(method, path(events), json=body, headers=current)

    problem_of(refused, 412, "cache-rule-changed")
    assert made.is_success


def test_if_match_with_a_star_only_requires_the_rule_to_exist(
    http: httpx.Client, events: str
) -> None:
    missing = http.put(path(events), json=RECENT, headers={"If-Match": "*"})
    http.put(path(events), json=RECENT).raise_for_status()

    problem_of(missing, 412, "cache-rule-changed")
    assert http.put(path(events), json=RECENT, headers={"If-Match": "*"}).status_code == 200


def test_rules_are_listed_by_name_and_gone_once_they_are_deleted(
    http: httpx.Client, events: str
) -> None:
    for rule in ("b", "a.2", "C_1"):
        http.put(path(events, rule), json=RECENT).raise_for_status()

    listed = http.get(f"/tables/{events}/cache-rules").json()["rules"]
    assert [rule["rule"] for rule in listed] == ["C_1", "a.2", "b"]
    assert http.delete(path(events, "b")).status_code == 204
    problem_of(http.get(path(events, "b")), 404, "cache-rule-not-found")
    problem_of(http.delete(path(events, "b")), 404, "cache-rule-not-found")


def test_rules_of_a_missing_table_are_not_found(http: httpx.Client) -> None:
    problem_of(http.put(path("nobody"), json=RECENT), 404, "table-not-found")
    for answer in (
        http.get(path("nobody")),
        http.delete(path("nobody")),
        http.get("/tables/nobody/cache-rules"),
    ):
        problem_of(answer, 404, "table-not-found")


def test_a_recreated_table_has_no_rules(http: httpx.Client, events: str, location: Path) -> None:
    http.put(path(events), json=RECENT).raise_for_status()
    http.delete(f"/tables/{events}").raise_for_status()
    http.put(f"/tables/{events}", json={"location": str(location)}).raise_for_status()

    assert http.get(f"/tables/{events}/cache-rules").json() == {"rules": []}


@pytest.mark.slow
def test_a_table_has_at_most_a_hundred_rules(http: httpx.Client, events: str) -> None:
    for number in range(100):
        assert http.put(path(events, f"r{number}"), json=RECENT).status_code == 201

    problem_of(http.put(path(events), json=RECENT), 409, "too-many-cache-rules")
    assert http.put(path(events, "r7"), json={"filter": "ds IS NULL"}).status_code == 200
    assert len(http.get(f"/tables/{events}/cache-rules").json()["rules"]) == 100


def test_a_change_repeated_with_its_key_is_made_once(http: httpx.Client, events: str) -> None:
    key = {"Idempotency-Key": f"put-{events}"}
    first = http.put(path(events), json=RECENT, headers=key)
    http.put(path(events), json={"filter": "ds IS NULL"}).raise_for_status()

    again = http.put(path(events), json=RECENT, headers=key)
    other = http.put(path(events), json={"filter": "ds IS NULL"}, headers=key)

    assert (again.status_code, again.content) == (201, first.content)
    assert again.headers["ETag"] == first.headers["ETag"]
    assert again.headers["Idempotency-Replayed"] == "true"
    problem_of(other, 422, "idempotency-key-reused")
    assert http.get(path(events)).json()["filter"] == "ds IS NULL"
    key = {"Idempotency-Key": f"delete-{events}"}
    for replayed in (None, "true"):
        gone = http.delete(path(events), headers=key)
        assert (gone.status_code, gone.headers.get("Idempotency-Replayed")) == (204, replayed)


# --- refusals -------------------------------------------------------------------


@pytest.mark.parametrize(
    "filter",
    [
        "id > 5",
        "ds >= '2026-11-02' AND (ID = 5 OR ds IS NULL)",
        {"op": "starts_with", "column": "name", "prefix": "x"},
        {"op": "not", "arg": {"op": "is_null", "column": "id"}},
        # Never TRUE, but it still names a column that is not a partition column.
        "id = 1.5",
    ],
    ids=str,
)
def test_a_rule_on_another_column_names_it_and_the_partition_columns(
    http: httpx.Client, partitioned: str, filter: Any
) -> None:
    answer = http.put(path(partitioned), json={"filter": filter})

    detail = problem_of(answer, 422, "invalid-cache-rule")["detail"]
    assert ("'name'" if "name" in str(filter) else "'id'") in detail
    assert "partition columns alone, which are ds" in detail


@pytest.mark.parametrize(
    ("filter", "said"),
    [
        ("day >= '2026-11-02'", "no column 'day'"),
        ("ds >=", "the filter ends unexpectedly"),
        ("ds >= 'x'", "ds"),
        ("", "the filter is empty"),
        ("ds = (SELECT 1)", "SELECT"),
        ({"op": "eq", "column": "ds", "value": "x"}, "ds"),
    ],
)
def test_a_filter_that_cannot_be_read_is_refused_as_in_a_plan(
    http: httpx.Client, partitioned: str, filter: Any, said: str
) -> None:
    answer = http.put(path(partitioned), json={"filter": filter})

    assert said in problem_of(answer, 422, "invalid-filter")["detail"]


@pytest.mark.parametrize(
    "filter",
    [
        "ds = NULL",
        "ds <> NULL AND ds >= '2026-11-01'",
        "NOT (ds = NULL)",
        "ds IN (NULL)",
        {"op": "eq", "column": "ds", "value": None},
    ],
    ids=str,
)
def test_a_filter_that_is_never_true_is_refused(
    http: httpx.Client, partitioned: str, filter: Any
) -> None:
    answer = http.put(path(partitioned), json={"filter": filter})

    assert "IS NULL" in problem_of(answer, 422, "invalid-cache-rule")["detail"]
    for fit in ("ds = NULL OR ds >= '2026-11-01'", "ds IS NULL"):
        http.put(path(partitioned), json={"filter": fit}).raise_for_status()


def test_a_table_without_partition_columns_cannot_have_rules(
    http: httpx.Client, name: str, location: Path
) -> None:
    hive.write_file(location / "part-0.parquet", range(5))
    http.put(f"/tables/{name}", json={"location": str(location)}).raise_for_status()
    http.post(f"/tables/{name}/refresh").raise_for_status()

    answer = http.put(path(name), json={"filter": "id > 3"})

    assert "has no partition columns" in problem_of(answer, 422, "invalid-cache-rule")["detail"]


def test_a_table_without_a_snapshot_must_be_refreshed_first(
    http: httpx.Client, name: str, location: Path
) -> None:
    http.put(f"/tables/{name}", json={"location": str(location)}).raise_for_status()

    answer = http.put(path(name), json=RECENT)

    detail = problem_of(answer, 409, "table-not-refreshed")["detail"]
    assert f"POST /tables/{name}/refresh first" in detail


@pytest.mark.parametrize(
    ("fields", "slug"),
    [
        ({"expires_at": "2020-01-01T00:00:00Z"}, "invalid-cache-rule"),
        ({"expires_at": "0001-01-01T00:00:00+14:00"}, "invalid-cache-rule"),
        ({"expires_at": "9999-12-31T23:59:59-14:00"}, "invalid-cache-rule"),
        ({"expires_at": "2199-01-01T00:00:00"}, "invalid-request"),
        ({"max_bytes": 0}, "invalid-request"),
        ({"max_bytes": "many"}, "invalid-request"),
        ({"priority": 1}, "invalid-request"),
        ({"filter": None}, "invalid-request"),
        ({"filter": "ds IN (" + ",".join(["'2026-11-01'"] * 90_000) + ")"}, "invalid-request"),
        (
            {"filter": {"op": "in", "column": "ds", "values": ["2026-11-01"] * 9_000}},
            "invalid-cache-rule",
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_an_invalid_definition_is_refused(
    http: httpx.Client, partitioned: str, fields: dict[str, Any], slug: str
) -> None:
    problem_of(http.put(path(partitioned), json=RECENT | fields), 422, slug)


@pytest.mark.parametrize("value", ["NaN", "Infinity"])
def test_a_number_that_json_does_not_have_is_refused(
    http: httpx.Client, name: str, location: Path, value: str
) -> None:
    hive.write_file(location / "amount=1.5" / "part-0.parquet", range(5))
    columns = [{"name": "amount", "type": "double"}]
    table = {"location": str(location), "partition_columns": columns}
    http.put(f"/tables/{name}", json=table).raise_for_status()
    http.post(f"/tables/{name}/refresh").raise_for_status()
    headers = {"Content-Type": "application/json"}

    def put(value: str) -> httpx.Response:
        body = f'{{"filter": {{"op": "lt", "column": "amount", "value": {value}}}}}'
        return http.put(path(name), content=body, headers=headers)

    problem_of(put(value), 422, "invalid-request")
    assert put(f'"{value}"').status_code == 201


@pytest.mark.parametrize("rule", ["a:b", "*", "a%20b", ".a", "x" * 129, "%F0%9F%90%99"])
def test_names_that_could_be_patterns_or_keys_are_refused(
    http: httpx.Client, partitioned: str, rule: str
) -> None:
    problem_of(http.put(path(partitioned, rule), json=RECENT), 422, "invalid-request")
    assert http.put(path(partitioned, f"{rule}%0a"), json=RECENT).status_code == 422
