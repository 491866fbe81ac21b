"""Tables in formats other than Parquet are published and planned, but not refreshed or read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import windrow
from tests.support.conformance import Case
from tests.support.problems import problem_of
from windrow.errors import RefreshFailedError

MakePlan = Callable[..., dict[str, Any]]
formats = pytest.mark.parametrize("format_", ["orc", "csv", "json", "text"])


@pytest.fixture
def client(url: str) -> Iterator[windrow.Client]:
    with windrow.connect(url) as client:
        yield client


def register(client: windrow.Client, name: str, location: Path, format_: str) -> None:
    location.mkdir()
    client.register_table(name, str(location), format_, columns={"id": "bigint"})


@pytest.mark.parametrize(
    ("format_", "offsets", "expected"),
    [
        ("orc", [3, 90, 180], [70, 90, 90]),
        ("orc", [], [250]),
        ("csv", [], [75, 75, 100]),
        ("json", [0, 90, 180], [70, 90, 90]),
        ("text", [], [75, 75, 100]),
    ],
)
def test_files_of_any_format_are_cut_only_where_allowed(
    client: windrow.Client,
    name: str,
    location: Path,
    make_plan: MakePlan,
    format_: str,
    offsets: list[int],
    expected: list[int],
) -> None:
    register(client, name, location, format_)
    client.publish(name, Case(name="", strategy="", sizes=[250], offsets=[offsets]).published())

    plan = make_plan(name, options={"max_split_size": 100})

    assert plan["format"] == format_
    assert sorted(s["length"] for g in plan["groups"] for s in g["splits"]) == expected


@formats
def test_a_refresh_of_another_format_asks_for_a_published_inventory(
    client: windrow.Client, http: httpx.Client, name: str, location: Path, format_: str
) -> None:
    register(client, name, location, format_)

    problem = problem_of(http.post(f"/tables/{name}/refresh"), 409, "format-not-refreshable")

    assert f"POST /tables/{name}/snapshots" in problem["detail"]
    with pytest.raises(RefreshFailedError, match=f"is {format_}, and only Parquet is refreshed"):
        client.refresh(name)


def test_an_unknown_format_is_refused_and_known_ones_are_listed(
    http: httpx.Client, name: str, location: Path
) -> None:
    answer = http.put(f"/tables/{name}", json={"location": str(location), "format": "avro"})

    problem = problem_of(answer, 422, "invalid-request")
    assert "'parquet', 'orc', 'csv', 'json' or 'text'" in problem["detail"]
