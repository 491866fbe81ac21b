"""The request log: one short line per request, without secrets or local variables."""

from __future__ import annotations

import io
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import httpx
import pytest

import windrow
from tests.support.api.problems import problem_of
from tests.support.servers.coordinators import PLAIN, coordinator_process, serving
from windrow_service.bootstrap import build_app
from windrow_service.logs import logging_to
from windrow_service.settings import Settings

TOKEN = "wdr_" + "s3cret-token_" * 3


def logged(settings: Settings, *paths: str, **headers: str) -> tuple[list[httpx.Response], str]:
    """Send requests to a coordinator with a broken route; return its answers and its log."""
    app = build_app(settings)

    @app.get("/broken/{number}", include_in_schema=False)
    async def broken(number: int) -> None:
        megabytes = [TOKEN + "x" * 1000] * 50_000
        raise RuntimeError(f"Authorization: Bearer {TOKEN} {len(megabytes)} {'y' * 100_000}")

    log = io.StringIO()
    with (
        logging_to(log, level="info", for_people=False, secrets=["hunter-two"]),
        serving(app) as url,
    ):
        answers = [httpx.get(url + path, verify=PLAIN, headers=headers) for path in paths]
    return answers, log.getvalue()


def lines_of(log: str, event: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, log.splitlines()) if line["event"] == event]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(state_dir=tmp_path)


def test_an_unforeseen_error_is_one_short_line_without_secrets(settings: Settings) -> None:
    sent = {"Authorization": f"Bearer {TOKEN}", "X-Request-Id": "ours-7"}

    (answer,), log = logged(settings, "/broken/7", **sent)

    problem = problem_of(answer, 500, "internal-error")
    assert problem["request_id"] == answer.headers["X-Request-Id"] == "ours-7"
    assert "ours-7" in problem["detail"]
    (failed,) = lines_of(log, "request failed")
    assert failed["request_id"] == "ours-7"
    assert "in broken" in failed["exception"]
    assert "RuntimeError: Authorization: [hidden]" in failed["exception"]
    assert TOKEN not in log
    assert len(log) < 16_000


def test_each_request_is_one_line(settings: Settings) -> None:
    named = {"X-Request-Id": "not sane", "Authorization": f"Bearer {TOKEN}"}

    answers, log = logged(
        settings, "/config", "/tables/none?key=hunter-two", "/nowhere/hunter-two", **named
    )

    lines = lines_of(log, "request")
    assert [
        (line["method"], line.get("route"), line["status"], line["principal"]) for line in lines
    ] == [
        ("GET", "/config", 200, "anonymous"),
        ("GET", "/tables/{name}", 404, "anonymous"),
        ("GET", None, 404, "anonymous"),
    ]
    assert lines[2]["path"] == "/nowhere/[hidden]"
    assert all(line["ms"] >= 0 and line["level"] == "info" for line in lines)
    ids = [answer.headers["X-Request-Id"] for answer in answers]
    assert [line["request_id"] for line in lines] == ids
    assert len({*ids, "not sane"}) == 4
    assert answers[1].json()["request_id"] == ids[1]


def test_health_checks_are_not_logged_by_default(settings: Settings) -> None:
    _, log = logged(settings, "/health/live", "/health/ready")

    assert lines_of(log, "request") == []


def test_an_error_in_an_embedded_coordinator_shows_no_local_variables(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with windrow.embedded(
        state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),)
    ) as client:
        client.register_table("t", str(tmp_path), columns={"id": "bigint"})
        with sqlite3.connect(tmp_path / "state" / "windrow.db") as database:
            database.execute("UPDATE tables SET definition = '{\"broken\": 1}'")
        with pytest.raises(windrow.WindrowError):
            client.table("t")

    told = capfd.readouterr().err
    assert "request failed" in told
    assert "Traceback" in told
    assert " locals " not in told
    assert len(told) < 16_000


@pytest.mark.slow
def test_an_unread_log_blocks_nothing(tmp_path: Path) -> None:
    allowed = tmp_path / "tables"
    allowed.mkdir()
    # A pipe holds 64 KiB, and the log is longer.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    unread = os.open(pipe, os.O_RDWR)
    prefix = ("bash", "-c", f'exec "$@" 2>{pipe}', "bash")
    try:
        with (
            coordinator_process(tmp_path / "state", allowed, prefix=prefix) as coordinator,
            httpx.Client(verify=PLAIN, base_url=coordinator.url, timeout=30) as http,
        ):
            answers = {http.get("/config").status_code for _ in range(1000)}
    finally:
        os.close(unread)

    assert answers == {200}
