"""`If-None-Match: *`: of all PUTs of a thing that have conditions, only the first one makes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from tests.support.api.contract import operations
from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN, running
from tests.support.tables import hive
from windrow_service.settings import Settings

IF_NEW = {"If-None-Match": "*"}
AT_ONCE = 20


@pytest.fixture
def fresh(database_url: sa.URL, tmp_path: Path) -> Iterator[httpx.Client]:
    """A coordinator of its own with a table `t` that has a partition column."""
    where: dict[str, Any] = {"state_dir": tmp_path}
    if database_url.get_backend_name() != "sqlite":
        where["database_url"] = database_url.render_as_string(hide_password=False)
    with (
        running(Settings(allowed_locations=(str(tmp_path),), **where)) as url,
        httpx.Client(base_url=url, timeout=60, verify=PLAIN) as http,
    ):
        hive.write_events(tmp_path / "t")
        columns = [{"name": "ds", "type": "string"}]
        body = {"location": str(tmp_path / "t"), "partition_columns": columns}
        http.put("/tables/t", json=body).raise_for_status()
        http.post("/tables/t/refresh").raise_for_status()
        yield http


def _table(folder: Path, number: int) -> Any:
    return {"location": str(folder / "new"), "sort_columns": [{"name": f"c{number}"}]}


def _partitions(folder: Path, number: int) -> Any:
    return {"partitions": [{"values": [str(number)], "location": str(folder / "t" / f"p{number}")}]}


PUTS: dict[str, tuple[str, Callable[[Path, int], Any], str]] = {
    "/tables/{name}": ("/tables/new", _table, "table-changed"),
    "/tables/{name}/partitions": ("/tables/t/partitions", _partitions, "table-changed"),
    "/tables/{name}/cache-rules/{rule}": (
        "/tables/t/cache-rules/r",
        lambda _, number: {"filter": f"ds > '{number}'"},
        "cache-rule-changed",
    ),
    "/policies/{pattern}": (
        "/policies/new.*",
        lambda _, number: {"min_files": number + 2},
        "policy-changed",
    ),
    "/maintenance/budget": (
        "/maintenance/budget",
        lambda _, number: {"core_seconds_per_hour": number},
        "budget-changed",
    ),
}
# What is protected is a table that exists.
NEVER_FIRST = "/tables/{name}/protection"


def test_every_put_with_conditions_takes_both() -> None:
    puts = {
        name.removeprefix("PUT "): {one["name"] for one in operation["parameters"]}
        for name, operation in operations().items()
        if name.startswith("PUT ")
    }

    conditional = {path for path, names in puts.items() if "if-match" in names}
    assert conditional == {*PUTS, NEVER_FIRST}
    assert [path for path in conditional if "if-none-match" not in puts[path]] == []


@pytest.mark.parametrize("path", PUTS)
def test_of_many_first_puts_at_once_one_makes_the_thing(
    fresh: httpx.Client, tmp_path: Path, path: str
) -> None:
    at, body, changed = PUTS[path]

    def put(number: int) -> httpx.Response:
        return fresh.put(at, json=body(tmp_path, number), headers=IF_NEW)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = list(threads.map(put, range(AT_ONCE)))

    assert {answer.status_code for answer in answers} <= {200, 201, 412}, answers[0].text
    made = [answer for answer in answers if answer.is_success]
    assert len(made) == 1
    for answer in answers:
        if answer is not made[0]:
            problem_of(answer, 412, changed)
    # Who made it may send it again, without the condition, and changes nothing.
    first = answers.index(made[0])
    again = fresh.put(at, json=body(tmp_path, first))
    assert again.status_code == 200
    assert again.headers.get("ETag") == made[0].headers.get("ETag")


def test_protection_is_never_the_first(fresh: httpx.Client) -> None:
    body = {"deletion_protection": True}

    answer = fresh.put("/tables/t/protection", json=body, headers=IF_NEW)

    problem_of(answer, 412, "table-changed")
    assert not fresh.get("/tables/t").json()["deletion_protection"]


def test_nothing_fits_both_conditions(fresh: httpx.Client) -> None:
    definition = fresh.get("/tables/t")
    both = IF_NEW | {"If-Match": definition.headers["ETag"]}

    for name in ("t", "new"):
        body = definition.json()["definition"]
        problem_of(fresh.put(f"/tables/{name}", json=body, headers=both), 412, "table-changed")


def test_another_value_than_a_star_is_refused(fresh: httpx.Client) -> None:
    headers = {"If-None-Match": '"1"'}

    answer = fresh.put("/policies/new", json={}, headers=headers)

    assert "if-none-match" in problem_of(answer, 422, "invalid-request")["detail"]
    problem_of(fresh.get("/policies/new"), 404, "policy-not-found")
