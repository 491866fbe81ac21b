"""Each failure of background work, and each answer of 500 or more, has one line that says why."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api.problems import problem_of
from tests.support.faults.disks import nearly_full, small_disk
from tests.support.servers.coordinators import PLAIN, serving
from windrow_service.bootstrap import build_app
from windrow_service.logs import logging_to
from windrow_service.settings import Settings

pytestmark = pytest.mark.slow


@contextmanager
def coordinator(state: Path, allowed: Path) -> Iterator[tuple[httpx.Client, io.StringIO]]:
    app = build_app(Settings(state_dir=state, allowed_locations=(str(allowed),)))
    log = io.StringIO()
    with (
        logging_to(log, level="info", for_people=False, secrets=[]),
        serving(app) as url,
        httpx.Client(verify=PLAIN, base_url=url, timeout=60) as http,
    ):
        yield http, log


def lines_of(log: io.StringIO, event: str) -> list[dict[str, Any]]:
    lines = map(json.loads, log.getvalue().splitlines())
    return [line for line in lines if line["event"] == event]


def test_a_failed_refresh_is_one_line_with_table_and_reason(tmp_path: Path) -> None:
    with coordinator(tmp_path / "state", tmp_path) as (http, log):
        http.put("/tables/t", json={"location": str(tmp_path / "gone")}).raise_for_status()
        problem = problem_of(http.post("/tables/t/refresh"), 409, "location-unreadable")

    (line,) = lines_of(log, "a refresh failed")
    assert (line["level"], line["table"], line["error"]) == ("warning", "t", "LocationError")
    assert line["reason"] == problem["detail"]
    assert "exception" not in line
    assert lines_of(log, "request failed") == []


def test_a_failed_plan_in_the_background_is_one_line_with_table_and_reason(tmp_path: Path) -> None:
    with coordinator(tmp_path / "state", tmp_path) as (http, log):
        http.put("/tables/t", json={"location": str(tmp_path / "gone")}).raise_for_status()
        asked = {"table": "t", "max_staleness": 0}
        plan = http.post("/plans", json=asked, headers={"Prefer": "respond-async"}).json()
        while (told := http.get(f"/plans/{plan['plan_id']}").json())["status"] == "submitted":
            time.sleep(0.05)

    (line,) = lines_of(log, "a plan in the background failed")
    assert (line["table"], line["plan_id"]) == ("t", plan["plan_id"])
    assert line["reason"] == told["problem"]["detail"]


def test_a_full_disk_is_named_in_the_answer_and_in_the_log(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", 8 * 2**20) as disk,
        coordinator(disk, tmp_path) as (http, log),
    ):
        columns = [{"name": f"c{number}", "type": "bigint"} for number in range(10_000)]
        with nearly_full(disk, 2):
            asked = {"location": str(tmp_path), "columns": columns}
            problem = problem_of(http.put("/tables/t", json=asked), 503, "store-unavailable")

    assert "database or disk is full" in problem["detail"]
    assert "make sure" in problem["detail"]
    (line,) = [line for line in lines_of(log, "request") if line["status"] == 503]
    assert line["problem"] == "store-unavailable"
    assert "database or disk is full" in line["reason"]
