"""No call works long on a body that is wrong in many ways, or says so at length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from tests.support.api.json_bombs import KINDS, calls_with_json, unknown_keys
from tests.support.api.problems import problem_of
from tests.support.laws import a_few
from tests.support.servers.coordinators import (
    PLAIN,
    CoordinatorProcess,
    coordinator_process,
    peak_bytes,
)
from windrow_core.models import CachedFilesReport, InventoryChange, PlanRequest, WritePlanRequest

pytestmark = pytest.mark.slow

# The chart's limit leaves more for bodies than this.
MOST_GAINED_BYTES = 250 * 2**20
MOST_CHARACTERS = 8_000
JSON = {"Content-Type": "application/json"}
SIZE = 120_000


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorProcess]:
    folder = tmp_path_factory.mktemp("attacked")
    with coordinator_process(tmp_path_factory.mktemp("state"), folder) as process:
        table = {"location": str(folder)}
        httpx.put(f"{process.url}/tables/attacked", verify=PLAIN, json=table).raise_for_status()
        yield process


@pytest.mark.parametrize("kind", a_few(KINDS, 3), ids=lambda kind: str(kind.__name__))
def test_every_call_refuses_a_body_with_a_short_problem_and_little_memory(
    coordinator: CoordinatorProcess, kind: Callable[[int], bytes]
) -> None:
    body = kind(SIZE)
    before = peak_bytes(coordinator)

    with httpx.Client(base_url=coordinator.url, verify=PLAIN, timeout=60) as http:
        for method, path in calls_with_json():
            answer = http.request(method, path, content=body, headers=JSON)

            where = f"{method} {path}: {answer.status_code} {answer.text[:300]}"
            assert 400 <= answer.status_code < 500, where
            assert answer.headers["Content-Type"] == "application/problem+json", where
            assert len(answer.text) < MOST_CHARACTERS, where

    assert peak_bytes(coordinator) - before < MOST_GAINED_BYTES


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        (unknown_keys(10_001), "10,000 keys in one object"),
        (unknown_keys(65_001), "65,000 keys"),
        (b"[" * 501 + b"]" * 501, "500 levels of lists and objects"),
        (b"[%s]" % b",".join([b"[]"] * 65_000), "65,000 lists and objects"),
        (b"[%s]" % b",".join([b"1"] * 1_000_001), "1,000,000 values"),
    ],
    ids=["keys of one object", "keys", "depth", "lists and objects", "values"],
)
def test_a_refusal_names_the_limit(http: httpx.Client, body: bytes, limit: str) -> None:
    answer = http.post("/plans", content=body, headers=JSON)

    assert f"more than {limit}" in problem_of(answer, 413, "body-too-complex")["detail"]


@pytest.mark.parametrize("call", ["POST snapshots", "PUT partitions", "POST /plans"])
def test_a_refusal_names_the_stream_that_may_be_longer(
    http: httpx.Client, events: str, call: str
) -> None:
    method, path = call.split()
    path = path if path.startswith("/") else f"/tables/{events}/{path}"

    complex_ = http.request(method, path, content=b"[" * 501 + b"]" * 501, headers=JSON)
    large = http.request(method, path, content=b" " * (16 * 2**20 + 1), headers=JSON)

    for answer, type_ in ((complex_, "body-too-complex"), (large, "body-too-large")):
        detail = problem_of(answer, 413, type_)["detail"]
        assert ("send an Arrow stream" in detail) == (call != "POST /plans")


def test_a_few_errors_are_listed_and_the_others_counted(http: httpx.Client) -> None:
    detail = problem_of(
        http.post("/plans", content=unknown_keys(5_000), headers=JSON), 422, "invalid-request"
    )["detail"]

    assert "body.k8: Extra inputs are not permitted" in detail
    assert "k10" not in detail
    assert "and 4,991 more errors" in detail


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (PlanRequest, {"table": "t", "columns": [1] * 9_999}),
        (CachedFilesReport, {"table": "t", "session": "0" * 16, "added": [{}] * 9_999}),
        (InventoryChange, {"removed": [1] * 9_999}),
        (WritePlanRequest, {"keys": {"values": [], "rows": ["x"] * 9_999}}),
    ],
)
def test_only_the_first_wrong_item_of_a_list_is_an_error(model: Any, body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as raised:
        model.model_validate(body)

    assert raised.value.error_count() <= 3


def test_the_longest_allowed_lists_are_accepted(http: httpx.Client, events: str) -> None:
    tree = {"op": "or", "args": [{"op": "in", "column": "id", "values": list(range(10_000))}] * 9}
    files = [{"path": f"{n}", "size_bytes": 1, "mtime_ns": 1} for n in range(10_000)]
    beat = {"host": "h", "capacity_bytes": 1, "used_bytes": 0}
    session = http.put("/workers/w-long", json=beat).json()["session"]
    keys = {
        "columns": [{"name": "a", "type": "string"}],
        "values": [[f"{number}" for number in range(100_000)]],
        "rows": [1] * 100_000,
    }

    assert http.post("/plans", json={"table": events, "filter": tree}).status_code == 200
    report = {"table": events, "session": session, "added": files, "removed": files}
    assert http.post("/workers/w-long/cached-files", json=report).status_code == 200
    plan = http.post("/write-plans", json={"keys": keys, "bytes_per_row": 1000})
    assert plan.status_code == 200, plan.text
