"""A coordinator that is unreachable, busy, slow or not a coordinator causes one clear error."""

from __future__ import annotations

import json
import random
import re
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from email.message import Message
from email.utils import format_datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

import windrow
from tests.support.servers.coordinators import PLAIN, free_port, running
from tests.support.tables import hive
from windrow_calls import errors
from windrow_core.models import Health, Limits
from windrow_service.settings import Settings

# These tests count requests, and make all of them.
connect = partial(windrow.connect, check=False)

HEALTHY = {
    "version": "9",
    "strategies": [],
    "defaults": {},
    "limits": dict.fromkeys(Limits.model_fields, 1),
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
    # Until the client gives up.
    handler.rfile.read(1)
    handler.close_connection = True


def patience_s(answer: Answer) -> float:
    """Return how long to wait for an answer: on a busy machine, others than silence take long, too."""
    return 2.0 if answer is stays_silent else 60.0


CONFIG = json.dumps(HEALTHY).encode()
INFO = json.dumps(
    {
        "name": "events",
        "definition": {"location": "/data"},
        "created_at": "2026-11-21T00:00:00Z",
        "updated_at": "2026-11-21T00:00:00Z",
        "current_snapshot": None,
    }
).encode()


class Seen(str):
    """A request as `METHOD /path`, with its headers."""

    headers: Message


@contextmanager
def answering(*answers: Answer) -> Iterator[tuple[str, list[Seen]]]:
    """Serve these answers in turn, then repeat the last; yield the URL and the requests."""
    seen: list[Seen] = []

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Seen(f"{self.command} {self.path}")
            request.headers = self.headers
            seen.append(request)
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
def test_an_unreachable_coordinator_is_named_after_bounded_attempts(call: str) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    calls: dict[str, Callable[[windrow.Client], object]] = {
        "config": lambda client: client.config(),
        "plan": lambda client: client.plan("events"),
        "refresh": lambda client: client.refresh("events"),
        "delete": lambda client: client.delete_table("events"),
    }

    with (
        connect(url, attempts=2) as client,
        pytest.raises(errors.CoordinatorUnreachableError) as caught,
    ):
        calls[call](client)

    assert (caught.value.url, caught.value.attempts) == (url, 2)
    assert url in str(caught.value)
    assert "windrow serve" in str(caught.value)


def test_retries_and_embedded_coordinators_draw_no_random_numbers_of_the_application(
    tmp_path: Path,
) -> None:
    before = random.getstate()

    with (
        connect(f"http://127.0.0.1:{free_port()}", attempts=2) as client,
        pytest.raises(errors.CoordinatorUnreachableError),
    ):
        client.config()
    with windrow.embedded(tmp_path) as client:
        client.config()

    assert random.getstate() == before


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://127.0.0.1"])
def test_an_invalid_url_is_refused_without_a_retry(url: str) -> None:
    with (
        connect(url) as client,
        pytest.raises(errors.CoordinatorUnreachableError) as caught,
    ):
        client.config()

    assert caught.value.attempts == 1


def test_a_client_of_nobody_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    monkeypatch.setenv("WINDROW_URL", url)

    with pytest.raises(errors.CoordinatorUnreachableError, match="windrow serve") as caught:
        windrow.connect(attempts=5)

    assert (caught.value.url, caught.value.attempts) == (url, 5)


@pytest.mark.parametrize("attempts", [1, 4])
@pytest.mark.parametrize("ending", [closes, sends(502, b"gone")], ids=["direct", "proxy"])
def test_a_client_is_made_although_the_first_replicas_that_it_meets_are_ending(
    ending: Answer, attempts: int
) -> None:
    live = sends(200, Health(status="ok").model_dump_json().encode())

    with (
        answering(ending, ending, ending, live) as (url, seen),
        windrow.connect(url, attempts=attempts),
    ):
        assert seen == ["GET /health/live"] * 4
    with (
        answering(ending) as (url, seen),
        pytest.raises((errors.CoordinatorUnreachableError, errors.UnsupportedAnswerError)),
    ):
        windrow.connect(url, attempts=attempts)
    assert len(seen) == 4


@pytest.mark.parametrize("answer", [sends(200, b"<html>Spark</html>"), sends(404, b"")])
def test_a_client_of_another_service_is_not_made(answer: Answer) -> None:
    with (
        answering(answer) as (url, _),
        pytest.raises(errors.UnsupportedAnswerError, match="is this a Windrow coordinator"),
    ):
        windrow.connect(url)


@pytest.mark.parametrize(
    "answer", [sends(200, b'{"status": "ok"}'), sends(403, problem(403, "scope-missing"))]
)
def test_a_client_is_made_once_a_coordinator_has_answered(answer: Answer) -> None:
    with answering(answer) as (url, seen), windrow.connect(url):
        pass

    assert seen == ["GET /health/live"]


def test_a_busy_coordinator_is_retried_after_the_delay_that_it_sends() -> None:
    busy = sends(503, problem(503, "busy"), Retry_After="0")
    with answering(busy, busy, sends(200, CONFIG)) as (url, seen), connect(url) as client:
        config = client.config()

    assert config.version == "9"
    assert seen == ["GET /config"] * 3


def test_a_coordinator_that_stays_busy_is_an_error_after_bounded_attempts() -> None:
    busy = sends(503, problem(503, "busy"), Retry_After="0")
    with (
        answering(busy) as (url, seen),
        connect(url, attempts=3) as client,
        pytest.raises(errors.BusyError) as caught,
    ):
        client.plan("events")

    assert len(seen) == 3
    assert caught.value.problem.detail == "why"


@pytest.mark.parametrize("retry_after", ["3600", "inf", "1e300"])
def test_a_client_does_not_wait_for_a_retry_after_beyond_the_bound(retry_after: str) -> None:
    busy = sends(503, problem(503, "busy"), Retry_After=retry_after)
    with (
        answering(busy) as (url, seen),
        connect(url) as client,
        pytest.raises(errors.BusyError) as caught,
    ):
        client.config()

    assert len(seen) == 1
    assert caught.value.retry_after_s == float(retry_after)


def test_a_retry_after_may_be_a_date() -> None:
    now = datetime.now(timezone.utc)
    soon, late = (
        sends(503, problem(503, "busy"), Retry_After=format_datetime(now + later, usegmt=True))
        for later in (timedelta(seconds=-1), timedelta(hours=1))
    )
    with answering(soon, sends(200, CONFIG)) as (url, seen), connect(url) as client:
        client.config()
    assert len(seen) == 2

    with (
        answering(late) as (url, seen),
        connect(url) as client,
        pytest.raises(errors.BusyError),
    ):
        client.config()
    assert len(seen) == 1


@pytest.mark.parametrize("retry_after", ["soon", "-5", "nan", "", "1 Jan 99999 00:00:00 GMT"])
def test_an_invalid_retry_after_still_leads_to_a_retry(retry_after: str) -> None:
    busy = sends(503, problem(503, "busy"), Retry_After=retry_after)
    with answering(busy, sends(200, CONFIG)) as (url, seen), connect(url) as client:
        client.config()

    assert len(seen) == 2


@pytest.mark.parametrize(
    ("status", "slug", "expected"),
    [
        (404, "table-not-found", errors.NotFoundError),
        (409, "table-not-refreshed", errors.TableNotRefreshedError),
        (409, "table-protected", errors.TableProtectedError),
        (409, "folder-protected", errors.TableProtectedError),
        (409, "unconfirmed-replacement", errors.UnconfirmedReplacementError),
        (412, "table-changed", errors.TableChangedError),
        (401, "unauthenticated", errors.NotAuthenticatedError),
        (403, "location-not-allowed", errors.NotAllowedError),
        (403, "scope-missing", errors.NotAllowedError),
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
        connect(url) as client,
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
        sends(302, b"", Location="/elsewhere"),
        sends(500, b'{"error": "x"}'),
        sends(404, b"\xff\xfe"),
    ],
)
def test_an_answer_from_another_service_is_refused_with_its_url(answer: Answer) -> None:
    with (
        answering(answer) as (url, seen),
        connect(url) as client,
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
def test_a_truncated_answer_is_requested_again(answer: Answer) -> None:
    once = sends(200, CONFIG)
    with (
        answering(answer, once) as (url, seen),
        connect(url, timeout_s=patience_s(answer)) as client,
    ):
        assert client.config().version == "9"
        assert len(seen) == 2


@pytest.mark.parametrize(
    "answer",
    [
        closes,
        stays_silent,
        sends(503, problem(503, "store-unavailable"), Retry_After="0"),
        sends(504, problem(504, "outcome-unknown")),
        sends(502, b""),
        sends(503, b"upstream is down"),
        sends(504, b"<html>"),
    ],
    ids=["closes", "stays silent", "unavailable", "unknown", "502", "503", "504"],
)
@pytest.mark.parametrize("call", ["register", "delete"])
def test_a_change_is_retried_under_the_same_key(answer: Answer, call: str) -> None:
    calls: dict[str, Callable[[windrow.Client], object]] = {
        "register": lambda client: client.register_table("events", "/data"),
        "delete": lambda client: client.delete_table("events"),
    }
    done = sends(200, INFO)

    with (
        answering(answer, answer, done) as (url, seen),
        connect(url, timeout_s=patience_s(answer)) as client,
    ):
        calls[call](client)
        calls[call](client)

    keys = [request.headers["Idempotency-Key"] for request in seen]
    assert len(keys) == 4
    assert len(set(keys[:3])) == 1
    assert len(set(keys)) == 2


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (sends(502, b""), errors.UnsupportedAnswerError),
        (sends(504, problem(504, "outcome-unknown")), errors.OutcomeUnknownError),
        (closes, errors.CoordinatorUnreachableError),
    ],
)
def test_persistent_failures_are_errors_after_bounded_attempts(
    answer: Answer, expected: type[errors.WindrowError]
) -> None:
    with (
        answering(answer) as (url, seen),
        connect(url, attempts=3) as client,
        pytest.raises(expected),
    ):
        client.delete_table("events")

    assert len(seen) == 3


def test_a_read_request_has_no_idempotency_key() -> None:
    with answering(sends(200, CONFIG)) as (url, seen), connect(url) as client:
        client.config()

    assert "Idempotency-Key" not in seen[0].headers


SECRET = "wdr_" + "s" * 43


def test_the_token_is_sent_and_comes_from_the_environment_by_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WINDROW_TOKEN", f"{SECRET}\n")
    with answering(sends(200, CONFIG)) as (url, seen):
        for token in (None, "wdr_other", ""):
            with connect(url, token=token) as client:
                client.config()

    sent = [request.headers["Authorization"] for request in seen]
    assert sent == [f"Bearer {SECRET}", "Bearer wdr_other", None]


def test_a_token_in_a_file_is_read_anew_for_each_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
        (folder / "token").write_text(f"{folder.name}.of.file\n")
    # Kubernetes replaces all files of a volume at once, by a link to another folder.
    volume, file = tmp_path / "volume", tmp_path / "volume" / "token"
    volume.symlink_to(folders[0])
    monkeypatch.setenv("WINDROW_TOKEN_FILE", str(file))
    with answering(sends(200, CONFIG)) as (url, seen):
        with connect(url) as client:
            client.config()
            (tmp_path / "new").symlink_to(folders[1])
            (tmp_path / "new").rename(volume)
            client.config()
            for content in (b"", b"\xff\xfe", b"of.two lines"):
                file.write_bytes(content)
                client.config()
            file.unlink()
            client.config()
            file.write_text("third.of.file")
            client.config()
        # Both an argument and WINDROW_TOKEN take precedence over the file.
        for token in ("given", ""):
            with connect(url, token=token) as client:
                client.config()
        monkeypatch.setenv("WINDROW_TOKEN", SECRET)
        with connect(url) as client:
            client.config()

    sent = [request.headers["Authorization"] for request in seen]
    kept = ["Bearer second.of.file"] * 5
    assert sent[:7] == ["Bearer first.of.file", *kept, "Bearer third.of.file"]
    assert sent[7:] == ["Bearer given", None, f"Bearer {SECRET}"]


def test_a_token_file_without_a_token_is_refused_with_its_setting_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    monkeypatch.setenv("WINDROW_TOKEN_FILE", str(file))
    for content, why in ((None, "No such file"), (b" \n", "empty"), (b"\xff", "not text")):
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(errors.WindrowError, match=why) as caught:
            connect("http://127.0.0.1:1")
        assert "WINDROW_TOKEN_FILE" in str(caught.value)


def test_the_token_appears_in_no_text_of_client_or_error() -> None:
    with (
        answering(sends(401, problem(401, "unauthenticated"))) as (url, _),
        connect(url, token=SECRET) as client,
        pytest.raises(errors.NotAuthenticatedError, match="WINDROW_TOKEN") as caught,
    ):
        client.config()

    assert SECRET not in repr(vars(client)) + repr(vars(client._transport)) + repr(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("token", [f"{SECRET}\nX: y", "wdr_\u00e9", f"{SECRET} {SECRET}"])
def test_an_invalid_token_is_refused_and_not_repeated_in_the_error(token: str) -> None:
    with pytest.raises(errors.WindrowError, match="windrow token create") as caught:
        connect("http://127.0.0.1:1", token=token)

    assert token not in str(caught.value) + repr(caught.value)


def test_the_token_is_not_sent_to_a_redirect_target() -> None:
    with answering(sends(200, CONFIG)) as (elsewhere, asked_elsewhere):
        away = sends(307, b"", Location=f"{elsewhere}/config")
        with (
            answering(away) as (url, _),
            connect(url, token=SECRET) as client,
            pytest.raises(errors.UnsupportedAnswerError),
        ):
            client.config()

    assert asked_elsewhere == []


@contextmanager
def losing_answers(upstream: str, count: int) -> Iterator[tuple[str, list[int]]]:
    """Forward requests but drop the first answers to each change; yield the URL and statuses."""
    answered: list[int] = []
    lost: Counter[str] = Counter()

    with httpx.Client(verify=PLAIN, base_url=upstream, timeout=60) as http:

        def passes_on(handler: BaseHTTPRequestHandler) -> None:
            answer = http.request(
                handler.command,
                handler.path,
                content=handler.body,  # type: ignore[attr-defined]
                headers=dict(handler.headers.items()),
            )
            answered.append(answer.status_code)
            change = f"{handler.command} {handler.path}"
            if handler.command != "GET" and lost[change] < count:
                lost[change] += 1
                handler.close_connection = True
                return
            handler.send_response(answer.status_code)
            for name in ("Content-Type", "Content-Length", "ETag"):
                if name in answer.headers:
                    handler.send_header(name, answer.headers[name])
            handler.end_headers()
            handler.wfile.write(answer.content)

        with answering(passes_on) as (url, _):
            yield url, answered


def test_changes_whose_answers_are_lost_are_made_once_and_answered_correctly(
    tmp_path: Path,
) -> None:
    location = hive.write_events(tmp_path / "events")
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),))

    with (
        running(settings) as upstream,
        losing_answers(upstream, 2) as (url, answered),
        connect(url) as client,
        connect(upstream) as beside,
    ):
        made = client.register_table(
            "events", str(location), columns={"id": "bigint"}, partition_columns={"ds": "date"}
        )
        assert answered == [201] * 3
        assert made == beside.table("events")
        etag = httpx.get(f"{upstream}/tables/events", verify=PLAIN).headers["ETag"]
        files = pa.table(
            {
                "path": ["ds=2026-11-01/a"],
                "size_bytes": pa.array([5], pa.int64()),
                "mtime_ns": pa.array([1], pa.int64()),
                "row_count": pa.array([1], pa.int64()),
            }
        )
        # Without a key, the second attempt would fail, as the version has changed.
        published = client.publish("events", files, if_match=etag)
        assert [snapshot.snapshot_id for snapshot in beside.snapshots("events")] == [1]
        assert published.snapshot_id == 1
        client.delete_table("events")
        with pytest.raises(errors.NotFoundError):
            beside.table("events")


def test_certificates_are_loaded_only_for_https(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing"))

    connect("http://127.0.0.1:1").close()
    for url in ("https://127.0.0.1:1", "HTTPS://127.0.0.1:1"):
        with pytest.raises(FileNotFoundError):
            connect(url)


def test_an_answer_that_cannot_be_decompressed_is_an_error_of_the_coordinator() -> None:
    garbled = sends(200, b"not gzip", Content_Encoding="gzip")
    with (
        answering(garbled) as (url, _),
        connect(url, attempts=1) as client,
        pytest.raises(errors.CoordinatorUnreachableError),
    ):
        client.config()


def test_names_that_would_lead_to_another_path_are_not_sent() -> None:
    with answering(sends(200, INFO)) as (url, seen), connect(url) as client:
        for name in ("a/refresh", "a?b", "a#b", "a b", "é", "", "..", "a\n"):
            with pytest.raises(errors.InvalidArgumentError):
                client.table(name)
            with pytest.raises(errors.InvalidArgumentError):
                client.cache_rule("events", name)

    assert seen == []


@pytest.mark.parametrize(
    "answer",
    [sends(404, problem(404, "table-not-found")), sends(200, b"<html>"), closes],
    ids=["refusal", "another service", "nobody"],
)
def test_a_traceback_has_no_lines_of_the_libraries_below(answer: Answer) -> None:
    with (
        answering(answer) as (url, _),
        connect(url, attempts=1) as client,
        pytest.raises(errors.WindrowError) as caught,
    ):
        client.table("salse.events")

    text = "".join(traceback.format_exception(caught.value))
    assert not re.search("httpx|tenacity|pydantic|During handling|direct cause", text)
    assert len(text.splitlines()) < 12
    line, message = caught.value._render_traceback_()
    assert re.fullmatch(r'line \d+: client.table\("salse.events"\)', line)
    assert message == f"{type(caught.value).__name__}: {caught.value}"


def test_the_client_covers_the_calls_of_the_coordinator(tmp_path: Path) -> None:
    location = hive.write_events(tmp_path / "events")
    settings = Settings(state_dir=tmp_path / "state", allowed_locations=(str(tmp_path),))
    phases: list[str] = []

    with running(settings) as url, connect(url) as client:
        client.register_table("events", str(location), sort_columns=["id"])
        with pytest.raises(errors.TableNotRefreshedError):
            client.plan("events")
        status = client.refresh(
            "events", on_progress=lambda progress: phases.append(progress.phase)
        )
        plan = client.plan("events", filter="ds > '2026-11-01'", columns=["id"], max_split_size=1)
        named = [table.name for table in client.tables()]
        kept = [snapshot.snapshot_id for snapshot in client.snapshots("events")]
        client.delete_plan(plan.info.plan_id)
        with pytest.raises(errors.NotFoundError):
            client.delete_plan(plan.info.plan_id)
        (location / "ds=2026-11-01" / "part-00000.parquet").write_bytes(b"text")
        with pytest.raises(errors.RefreshFailedError, match=r"ds=2026-11-01/part-00000\.parquet"):
            client.refresh("events")
        client.delete_table("events")

    assert status.changed is True
    assert phases[-1] == "done"
    assert (len(plan), plan.summary.files_planned, plan.groups.num_rows) == (4, 4, 4)
    assert (named, kept) == (["events"], [1])
