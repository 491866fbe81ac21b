"""A coordinator that is away, busy, slow or something else gives one clear error."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import windrow
from tests.support import hive
from tests.support.servers import free_port, running
from windrow import errors
from windrow_service.settings import Settings

HEALTHY = {
    "version": "9",
    "strategies": [],
    "defaults": {},
    "limits": dict.fromkeys(
        (
            "max_body_bytes",
            "max_filter_nodes",
            "max_filter_depth",
            "max_plan_files",
            "max_page_groups",
            "default_page_groups",
            "max_page_splits",
            "plan_ttl_seconds",
        ),
        1,
    ),
    "allowed_locations": [],
}


def problem(status: int, slug: str) -> bytes:
    return json.dumps(
        {"type": f"urn:windrow:problem:{slug}", "title": "t", "status": status, "detail": "why"}
    ).encode()


Answer = Callable[[BaseHTTPRequestHandler], None]


def sends(status: int, body: bytes, **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def closes(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


def stays_silent(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(0.5)
    handler.close_connection = True


CONFIG = json.dumps(HEALTHY).encode()


@contextmanager
def answering(*answers: Answer) -> Iterator[tuple[str, list[str]]]:
    """Serve these answers one after the other, the last one for ever; yield URL and requests."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            seen.append(f"{self.command} {self.path}")
            answers[min(len(seen), len(answers)) - 1](self)

        do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.block_on_close = False
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", seen
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("call", ["config", "plan", "refresh", "delete"])
def test_a_coordinator_that_is_away_is_named_after_bounded_attempts(call: str) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    calls: dict[str, Callable[[windrow.Client], object]] = {
        "config": lambda client: client.config(),
        "plan": lambda client: client.plan("events"),
        "refresh": lambda client: client.refresh("events"),
        "delete": lambda client: client.delete_table("events"),
    }

    with (
        windrow.connect(url, attempts=2) as client,
        pytest.raises(errors.CoordinatorUnreachableError) as caught,
    ):
        calls[call](client)

    assert (caught.value.url, caught.value.attempts) == (url, 2)
    assert url in str(caught.value)
    assert "windrow serve" in str(caught.value)


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://127.0.0.1"])
def test_what_is_no_url_is_refused_without_trying_again(url: str) -> None:
    with (
        windrow.connect(url) as client,
        pytest.raises(errors.CoordinatorUnreachableError) as caught,
    ):
        client.config()

    assert caught.value.attempts == 1


def test_a_busy_coordinator_is_asked_again_when_it_says() -> None:
    busy = sends(503, problem(503, "busy"), Retry_After="0")
    with answering(busy, busy, sends(200, CONFIG)) as (url, seen), windrow.connect(url) as client:
        config = client.config()

    assert config.version == "9"
    assert seen == ["GET /config"] * 3


def test_a_coordinator_that_stays_busy_is_given_up_after_bounded_attempts() -> None:
    busy = sends(503, problem(503, "busy"), Retry_After="0")
    with (
        answering(busy) as (url, seen),
        windrow.connect(url, attempts=3) as client,
        pytest.raises(errors.BusyError) as caught,
    ):
        client.plan("events")

    assert len(seen) == 3
    assert caught.value.problem.detail == "why"


@pytest.mark.parametrize("retry_after", ["3600", "inf", "1e300"])
def test_a_coordinator_that_asks_for_endless_patience_is_not_waited_for(retry_after: str) -> None:
    busy = sends(503, problem(503, "busy"), Retry_After=retry_after)
    with (
        answering(busy) as (url, seen),
        windrow.connect(url) as client,
        pytest.raises(errors.BusyError) as caught,
    ):
        client.config()

    assert len(seen) == 1
    assert caught.value.retry_after_s == float(retry_after)


@pytest.mark.parametrize("retry_after", ["soon", "-5", "nan", ""])
def test_a_retry_after_that_is_no_number_still_leads_to_another_try(retry_after: str) -> None:
    busy = sends(503, problem(503, "busy"), Retry_After=retry_after)
    with answering(busy, sends(200, CONFIG)) as (url, seen), windrow.connect(url) as client:
        client.config()

    assert len(seen) == 2


@pytest.mark.parametrize(
    ("status", "slug", "expected"),
    [
        (404, "table-not-found", errors.NotFoundError),
        (409, "table-not-refreshed", errors.TableNotRefreshedError),
        (412, "table-changed", errors.TableChangedError),
        (403, "location-not-allowed", errors.NotAllowedError),
        (413, "body-too-large", errors.InvalidRequestError),
        (422, "invalid-filter", errors.InvalidRequestError),
        (500, "internal-error", errors.ProblemError),
        (418, "of-a-later-version", errors.ProblemError),
    ],
)
def test_a_problem_becomes_its_error_at_once(
    status: int, slug: str, expected: type[errors.ProblemError]
) -> None:
    with (
        answering(sends(status, problem(status, slug))) as (url, seen),
        windrow.connect(url) as client,
        pytest.raises(expected, match="why") as caught,
    ):
        client.table("events")

    assert type(caught.value) is expected
    assert len(seen) == 1


@pytest.mark.parametrize(
    "answer",
    [
        sends(200, b"<html>welcome</html>"),
        sends(200, b""),
        sends(200, b"[]"),
        sends(200, b'{"version": 1}'),
        sends(404, b"<html>not found</html>"),
        sends(502, b""),
        sends(503, b"upstream is down"),
        sends(302, b"", Location="/elsewhere"),
        sends(500, b'{"error": "x"}'),
        sends(404, b"\xff\xfe"),
    ],
)
def test_an_answer_of_something_else_is_refused_and_names_the_url(answer: Answer) -> None:
    with (
        answering(answer) as (url, seen),
        windrow.connect(url) as client,
        pytest.raises(errors.UnsupportedAnswerError) as caught,
    ):
        client.config()

    assert f"{url}/config" in str(caught.value)
    assert len(seen) == 1


@pytest.mark.parametrize(
    "answer",
    [closes, stays_silent, sends(200, CONFIG[:20], Content_Length=str(len(CONFIG)))],
    ids=["closes", "stays silent", "stops in the middle"],
)
def test_an_answer_that_breaks_off_is_asked_for_again_where_that_changes_nothing(
    answer: Answer,
) -> None:
    once = sends(200, CONFIG)
    with answering(answer, once) as (url, seen), windrow.connect(url, timeout_s=0.2) as client:
        assert client.config().version == "9"
        assert len(seen) == 2

    with (
        answering(answer) as (url, seen),
        windrow.connect(url, timeout_s=0.2) as client,
        pytest.raises(errors.CoordinatorUnreachableError),
    ):
        client.plan("events")
    assert len(seen) == 1


def test_an_answer_that_cannot_be_unpacked_is_an_error_of_the_coordinator() -> None:
    garbled = sends(200, b"not gzip", Content_Encoding="gzip")
    with (
        answering(garbled) as (url, _),
        windrow.connect(url, attempts=1) as client,
        pytest.raises(errors.CoordinatorUnreachableError),
    ):
        client.config()


def test_a_name_never_leads_to_another_path() -> None:
    with (
        answering(sends(404, problem(404, "table-not-found"))) as (url, seen),
        windrow.connect(url) as client,
    ):
        for name in ("a/refresh", "a?b", "a#b", "a b", "é"):
            with pytest.raises(errors.NotFoundError):
                client.table(name)

    assert seen == [
        f"GET /tables/{quoted}" for quoted in ("a%2Frefresh", "a%3Fb", "a%23b", "a%20b", "%C3%A9")
    ]


def test_a_client_does_all_that_a_coordinator_offers(tmp_path: Path) -> None:
    location = hive.write_events(tmp_path / "events")
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),))
    told: list[str] = []

    with running(settings) as url, windrow.connect(url) as client:
        client.register_table("events", str(location), sort_columns=["id"])
        with pytest.raises(errors.TableNotRefreshedError):
            client.plan("events")
        status = client.refresh("events", on_progress=lambda progress: told.append(progress.phase))
        plan = client.plan("events", filter="ds > '2026-11-01'", columns=["id"], max_split_size=1)
        named = [table.name for table in client.tables()]
        kept = [snapshot.snapshot_id for snapshot in client.snapshots("events")]
        client.delete_plan(plan.info.plan_id)
        with pytest.raises(errors.NotFoundError):
            client.delete_plan(plan.info.plan_id)
        (location / "ds=2026-11-01" / "part-00000.parquet").write_bytes(b"")
        with pytest.raises(errors.RefreshFailedError, match=r"ds=2026-11-01/part-00000\.parquet"):
            client.refresh("events")
        client.delete_table("events")

    assert status.changed is True
    assert told[-1] == "done"
    assert (len(plan), plan.summary.files_planned, plan.groups.num_rows) == (4, 4, 4)
    assert (named, kept) == (["events"], [1])
