"""Small bodies that decode to gigabytes are refused before decoding; valid ones are accepted."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.support.api.arrow_bombs import BOMBS
from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import (
    PLAIN,
    CoordinatorProcess,
    coordinator_process,
    peak_bytes,
)
from windrow_calls.snapshots import inventory_stream

pytestmark = pytest.mark.slow

ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}
MOST_GAINED_BYTES = 200 * 2**20
PUBLISH = "/tables/bombed/snapshots"


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorProcess]:
    folder = tmp_path_factory.mktemp("bombed")
    with coordinator_process(tmp_path_factory.mktemp("state"), folder) as process:
        table = {"location": str(folder)}
        httpx.put(f"{process.url}/tables/bombed", verify=PLAIN, json=table).raise_for_status()
        yield process


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: str(bomb.__name__))
def test_a_stream_that_decodes_to_gigabytes_is_refused_and_takes_no_memory(
    coordinator: CoordinatorProcess, bomb: Callable[[], bytes]
) -> None:
    body = bomb()
    before = peak_bytes(coordinator)

    answer = httpx.post(
        coordinator.url + PUBLISH, verify=PLAIN, content=body, headers=ARROW, timeout=60
    )

    problem_of(answer, 422, "invalid-inventory")
    assert peak_bytes(coordinator) - before < MOST_GAINED_BYTES


def test_a_json_body_that_decodes_to_gigabytes_is_refused_and_takes_no_memory(
    coordinator: CoordinatorProcess,
) -> None:
    facts = {"size_bytes": 1, "mtime_ns": 1, "row_count": 1}
    named: list[dict[str, Any]] = [
        {"path": f"x{n}", **facts, "stats": {f"{n}.{m}": {} for m in range(10_000)}}
        for n in range(3)
    ]
    files = [*named, *({"path": f"{n}", **facts} for n in range(9_000))]
    before = peak_bytes(coordinator)

    answer = httpx.post(coordinator.url + PUBLISH, verify=PLAIN, json={"added": files}, timeout=60)

    assert "MAX_PUBLISH_DECODED_BYTES" in problem_of(answer, 422, "invalid-inventory")["detail"]
    assert peak_bytes(coordinator) - before < MOST_GAINED_BYTES


def test_a_damaged_stream_is_refused_or_published(
    coordinator: CoordinatorProcess,
) -> None:
    table = pa.table(
        {
            "path": [f"f{n}" for n in range(50)],
            **{name: list(range(50)) for name in ("size_bytes", "mtime_ns", "row_count")},
            "hosts": [["a", "b"]] * 50,
            "stats": [{"x": {"min": n, "max": n, "null_count": 0}} for n in range(50)],
        }
    )
    whole = inventory_stream(table)
    chance = random.Random(7)
    with httpx.Client(verify=PLAIN, base_url=coordinator.url, headers=ARROW, timeout=60) as http:
        statuses = set()
        for _ in range(150):
            damaged = bytearray(whole)
            for _ in range(chance.randint(1, 4)):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            statuses.add(http.post(PUBLISH, content=bytes(damaged)).status_code)
        assert http.post(PUBLISH, content=whole).status_code == 201

    assert statuses <= {201, 422}
    assert 422 in statuses
