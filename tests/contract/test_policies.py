"""`/policies`, `/tables/{name}/maintenance` and `/maintenance/budget`: who is maintained, and how."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

import windrow
from tests.support.api.problems import problem_of
from windrow_calls.errors import InvalidArgumentError

NIGHT = {"target_file_size": "256MB", "windows": ["22:00-06:00"], "max_share": 0.25}


@pytest.fixture
def pattern(http: httpx.Client, name: str) -> Iterator[str]:
    """A pattern that no other test uses; its policies are deleted afterwards."""
    yield f"{name}.*"
    for one in (f"{name}.*", f"{name}.t"):
        http.delete(f"/policies/{one}")


def test_a_policy_is_created_changed_with_its_etag_and_deleted(
    http: httpx.Client, pattern: str
) -> None:
    path = f"/policies/{pattern}"
    first = http.put(path, json=NIGHT)
    again = http.put(path, json=NIGHT)

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json() == http.get(path).json()
    assert first.json() | {"created_at": "", "updated_at": ""} == {
        "pattern": pattern,
        "enabled": True,
        "target_file_size": 256 * 2**20,
        "min_files": None,
        "min_gain": None,
        "reads_per_day": None,
        "min_age_seconds": None,
        "windows": ["22:00-06:00"],
        "max_share": 0.25,
        "filter": None,
        "keep_days": None,
        "keep_by": None,
        "keep_zone": None,
        "readers_may_see_both": None,
        "created_at": "",
        "updated_at": "",
    }
    old = {"If-Match": first.headers["ETag"]}
    changed = http.put(path, json=NIGHT | {"enabled": False}, headers=old)
    assert changed.status_code == 200
    problem_of(http.put(path, json=NIGHT, headers=old), 412, "policy-changed")
    problem_of(http.delete(path, headers=old), 412, "policy-changed")
    assert pattern in [one["pattern"] for one in http.get("/policies").json()["policies"]]
    assert http.delete(path, headers={"If-Match": changed.headers["ETag"]}).status_code == 204
    problem_of(http.get(path), 404, "policy-not-found")
    problem_of(http.delete(path), 404, "policy-not-found")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"windows": ["22:00-22:00"]}, "leave windows out"),
        ({"windows": ["22:00-06:00 Europe/Atlantis"]}, "no time zone 'Europe/Atlantis'"),
        ({"windows": ["10pm-6am"]}, "windows"),
        ({"windows": []}, "windows"),
        ({"filter": "ds >"}, "ds >"),
        ({"filter": "ds = '" + "a" * 5_000 + "'"}, "4,000 are allowed"),
        ({"max_share": 0}, "max_share"),
        ({"max_share": 1.5}, "max_share"),
        ({"min_files": 1}, "min_files"),
        ({"off": True}, "off"),
    ],
)
def test_a_policy_that_cannot_work_is_refused(
    http: httpx.Client, pattern: str, fields: dict[str, object], reason: str
) -> None:
    answer = http.put(f"/policies/{pattern}", json=fields)

    assert answer.status_code == 422
    assert reason in answer.json()["detail"]
    assert http.get(f"/policies/{pattern}").status_code == 404


@pytest.mark.parametrize("pattern", ["sales*", "*.events", "a.b.c.d.*", ".*", "a..b", "sales.?"])
def test_a_pattern_is_a_name_or_all_names_below_one(http: httpx.Client, pattern: str) -> None:
    assert http.put(f"/policies/{pattern}", json={}).status_code == 422


def test_a_table_has_each_field_from_the_most_specific_policy(
    http: httpx.Client, client: windrow.Client, pattern: str, tables_folder: object
) -> None:
    table = pattern.replace("*", "t")
    http.put(f"/tables/{table}", json={"location": f"{tables_folder}/x"}).raise_for_status()
    try:
        before = client.maintenance(table)
        client.set_policy(pattern, **NIGHT)
        client.set_policy(table, min_age_seconds=3_600, max_share=0.5)
        both = client.maintenance(table)
        client.set_policy(table, max_share=None, enabled=False)
        after = client.maintenance(table)
        client.remove_policy(table)
    finally:
        http.delete(f"/tables/{table}")

    assert (before.policy.enabled, before.sources) == (False, {})
    assert both.policy.enabled
    assert (both.policy.max_share, both.policy.min_age_seconds) == (0.5, 3_600)
    assert both.sources == {
        "enabled": table,
        "target_file_size": pattern,
        "min_age_seconds": table,
        "windows": pattern,
        "max_share": table,
    }
    assert (after.policy.enabled, after.policy.max_share) == (False, 0.25)
    # What is not changed stays as it is.
    assert after.policy.min_age_seconds == 3_600
    assert client.policy(pattern).windows == ["22:00-06:00"]
    problem_of(http.get("/tables/nobody/maintenance"), 404, "table-not-found")


def test_the_budget_is_changed_in_part_and_refuses_what_is_none(
    http: httpx.Client, client: windrow.Client
) -> None:
    before = client.maintenance_budget()
    try:
        less = client.set_maintenance_budget(bytes_per_hour="100GB")
        assert less == before.model_copy(update={"bytes_per_hour": 100 * 2**30})
        none = client.set_maintenance_budget(core_seconds_per_hour=0)
        assert (none.core_seconds_per_hour, none.bytes_per_hour) == (0, 100 * 2**30)
        stale = {"If-Match": '"stale"'}
        problem_of(http.put("/maintenance/budget", json={}, headers=stale), 412, "budget-changed")
        with pytest.raises(InvalidArgumentError, match="core_seconds_per_hour"):
            client.set_maintenance_budget(core_seconds_per_hour=-1)
    finally:
        client.set_maintenance_budget(**before.model_dump())
    assert client.maintenance_budget() == before
