"""Limits on unparsed input, slow senders and the number of connections."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi.responses import StreamingResponse

from tests.support.servers.coordinators import PLAIN, running, serving
from windrow_service.bootstrap import build_app
from windrow_service.settings import LimitSettings, Settings

LIVE = b"GET /health/live HTTP/1.1\r\nHost: x\r\n"
POST = b"POST /plans HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
MOST = 10
CHUNK = b"a" * 65_536


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A coordinator with short timeouts and few connections."""
    limits = LimitSettings(
        max_connections=MOST,
        max_head_bytes=8192,
        max_headers=20,
        head_timeout=timedelta(seconds=1),
        body_timeout=timedelta(seconds=1),
    )
    with running(Settings(state_dir=tmp_path_factory.mktemp("state"), limits=limits)) as url:
        yield url


@pytest.fixture
def connections(url: str) -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connect(url: str) -> socket.socket:
    where = urlsplit(url)
    return socket.create_connection((where.hostname, where.port), 30)


def answer_to(url: str, *parts: bytes) -> tuple[int, dict[str, object]]:
    """Send the parts; return the status and body of the first answer."""
    with connect(url) as connection:
        for part in parts:
            try:
                connection.sendall(part)
            except OSError:
                break
        return read_answer(connection)


def read_answer(connection: socket.socket) -> tuple[int, dict[str, object]]:
    received = b""
    while b"\r\n\r\n" not in received or len(received) < _end_of(received):
        part = connection.recv(65_536)
        assert part, f"hung up after {received!r}"
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    content: dict[str, object] = json.loads(body)
    return int(head.split()[1]), content


def _end_of(received: bytes) -> int:
    head, _, _ = received.partition(b"\r\n\r\n")
    (line,) = (one for one in head.lower().split(b"\r\n") if one.startswith(b"content-length"))
    return len(head) + 4 + int(line.split(b":")[1])


def is_live(url: str) -> bool:
    return httpx.get(f"{url}/health/live", verify=PLAIN, timeout=30).is_success


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param((LIVE, b"X-Long: ", *[CHUNK] * 40), id="endless header"),
        pytest.param((LIVE + b"X-Long: " + CHUNK + b"\r\n\r\n",), id="long header at once"),
        pytest.param((b"GET /?" + CHUNK + b" HTTP/1.1\r\nHost: x\r\n\r\n",), id="long path"),
        pytest.param((b"GET /?", *[CHUNK] * 40), id="endless path"),
        pytest.param((CHUNK, CHUNK), id="endless method"),
        pytest.param((LIVE, *[b"x%d: y\r\n" % at for at in range(20)], b"\r\n"), id="many headers"),
        pytest.param(
            (POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: ", *[CHUNK] * 40),
            id="endless trailer",
        ),
        pytest.param(
            (POST + b"Transfer-Encoding: chunked\r\n\r\n2;x=", *[CHUNK] * 40),
            id="endless chunk extension",
        ),
    ],
)
def test_everything_before_the_body_is_bounded(url: str, parts: tuple[bytes, ...]) -> None:
    status, problem = answer_to(url, *parts)

    if parts[0] == CHUNK:
        assert (status, problem["type"]) == (400, "urn:windrow:problem:malformed-request")
    else:
        assert (status, problem["type"]) == (431, "urn:windrow:problem:head-too-large")
        assert "20 headers and 8,192 bytes" in str(problem["detail"])
    assert is_live(url)


def test_input_that_is_not_http_gets_a_problem_too(url: str) -> None:
    status, problem = answer_to(url, b"\x16\x03\x01\x02\x00\x01\x00")

    assert (status, problem["type"]) == (400, "urn:windrow:problem:malformed-request")


@pytest.mark.parametrize("line", [b"CONNECT x:1", b"GET http://[", b"GET http://x"])
def test_a_request_without_a_path_is_refused_with_a_single_answer(
    url: str, caplog: pytest.LogCaptureFixture, line: bytes
) -> None:
    request = line + b" HTTP/1.1\r\nHost: x\r\n\r\n"

    status, problem = answer_to(url, request)
    with connect(url) as connection:
        connection.sendall(LIVE + b"\r\n" + request)
        received = _all_of(connection)

    assert (status, problem["type"]) == (400, "urn:windrow:problem:malformed-request")
    # An error sent first would be mistaken for the answer to the first request.
    assert received.count(b"HTTP/1.1") - received.count(b"HTTP/1.1 200") == 0
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize(
    ("begin", "trickle"),
    [
        pytest.param(b"", b"", id="nothing"),
        pytest.param(b"", b"\r\n", id="empty lines"),
        pytest.param(LIVE, b"X: y\r\n", id="a header now and then"),
        pytest.param(LIVE + b"\r\n", b"\r\n", id="empty lines after an answer"),
        pytest.param(POST + b"Content-Length: 99999\r\n\r\n{", b" ", id="a byte of a body"),
        pytest.param(
            POST + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n{\r\n", id="a chunk now and then"
        ),
    ],
)
def test_slow_senders_are_disconnected(url: str, begin: bytes, trickle: bytes) -> None:
    with connect(url) as connection:
        connection.sendall(begin)
        connection.settimeout(0.2)
        received = b""
        hung_up = False
        while not hung_up:
            try:
                connection.sendall(trickle)
                part = connection.recv(65_536)
            except TimeoutError:
                continue
            except OSError:
                break
            received += part
            hung_up = not part

    assert b" 408 " in received
    assert b"request-too-slow" in received


def test_a_body_that_arrives_steadily_has_unlimited_time(url: str) -> None:
    body = json.dumps({"table": "none", "filter": "x = '" + "y" * 24_000 + "'"}).encode()
    with connect(url) as connection:
        connection.sendall(POST + b"Content-Length: %d\r\n\r\n" % len(body))
        for at in range(0, len(body), 2000):
            connection.sendall(body[at : at + 2000])
            time.sleep(0.15)
        status, problem = read_answer(connection)

    assert (status, problem["type"]) == (404, "urn:windrow:problem:table-not-found")


def test_requests_on_one_connection_are_answered_in_turn(url: str) -> None:
    with connect(url) as connection:
        connection.sendall((LIVE + b"\r\n") * 3 + LIVE)
        statuses = [read_answers(connection, 3)]
        connection.sendall(b"\r\n")
        statuses.append(read_answers(connection, 1))

    assert statuses == [3, 1]


def read_answers(connection: socket.socket, count: int) -> int:
    received = b""
    while received.count(b'"status":"ok"') < count:
        part = connection.recv(65_536)
        assert part
        received += part
    return received.count(b"HTTP/1.1 200 OK")


def test_idle_connections_are_closed_for_new_requests(
    tmp_path: Path, connections: ExitStack
) -> None:
    # None of them may be told before that its request is late.
    limits = LimitSettings(max_connections=MOST, head_timeout=timedelta(minutes=10))
    with running(Settings(state_dir=tmp_path, limits=limits)) as url:
        idle = [connections.enter_context(connect(url)) for _ in range(3 * MOST)]

        assert all(is_live(url) for _ in range(MOST))
        # The oldest connection was closed for the newest.
        idle[0].settimeout(30)
        assert _is_hung_up_on(idle[0])


def test_an_idle_connection_is_kept_for_longer_than_clients_keep_it(url: str) -> None:
    with connect(url) as connection:
        connection.sendall(LIVE + b"\r\n")
        assert read_answers(connection, 1)
        # HTTPX keeps idle connections for five seconds.
        time.sleep(6)
        connection.sendall(LIVE + b"\r\n")
        assert read_answers(connection, 1)


def test_half_sent_bodies_are_dropped_for_new_requests(
    tmp_path: Path, connections: ExitStack
) -> None:
    limits = LimitSettings(max_connections=MOST, body_timeout=timedelta(minutes=10))
    with running(Settings(state_dir=tmp_path, limits=limits)) as url:
        begun = [connections.enter_context(connect(url)) for _ in range(MOST)]
        for connection in begun:
            connection.sendall(POST + b"Expect: 100-continue\r\nContent-Length: 20000\r\n\r\n")
            assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"

        assert is_live(url)

        readable, _, _ = select.select(begun, [], [], 0)
        assert len(readable) == 1
        assert _is_hung_up_on(readable[0])


def test_stuck_readers_are_dropped_and_slow_readers_kept(tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path, limits=LimitSettings(max_connections=MOST))
    app = build_app(settings)
    size = 40 * 2**20

    @app.get("/long", include_in_schema=False)
    async def long() -> StreamingResponse:
        return StreamingResponse(b"x" * 2**20 for _ in range(size // 2**20))

    with serving(app, settings) as url, ExitStack() as connections:
        reading = connections.enter_context(connect(url))
        reading.sendall(b"GET /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        count = len(reading.recv(65_536))
        for _ in range(MOST - 1):
            stalled = connections.enter_context(connect(url))
            stalled.sendall(b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
        deadline = time.monotonic() + 30
        answers = []
        while 200 not in answers and time.monotonic() < deadline:
            answers.append(answer_to(url, LIVE + b"\r\n")[0])
            count += len(reading.recv(2**20))
            time.sleep(0.1)
        while part := reading.recv(2**20):
            count += len(part)

    assert set(answers) <= {200, 503}
    assert 200 in answers
    assert count > size


def test_connections_with_running_requests_are_not_closed(
    tmp_path: Path, connections: ExitStack
) -> None:
    settings = Settings(state_dir=tmp_path, limits=LimitSettings(max_connections=MOST))
    app = build_app(settings)
    begun, go_on = threading.Semaphore(0), threading.Event()

    @app.get("/hold", include_in_schema=False)
    async def hold() -> None:
        begun.release()
        while not go_on.is_set():
            await asyncio.sleep(0.01)

    with serving(app, settings) as url:
        busy = [connections.enter_context(connect(url)) for _ in range(MOST)]
        for connection in busy:
            connection.sendall(b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n")
            begun.acquire()

        status, problem = answer_to(url, LIVE + b"\r\n")
        go_on.set()
        answers = [connection.recv(65_536) for connection in busy]

    assert (status, problem["type"]) == (503, "urn:windrow:problem:too-many-connections")
    assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)


def _all_of(connection: socket.socket) -> bytes:
    received = b""
    while part := connection.recv(65_536):
        received += part
    return received


def _is_hung_up_on(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1)
    except ConnectionError:
        return True


def test_a_coordinator_ends_while_refused_connections_are_still_open(tmp_path: Path) -> None:
    limits = LimitSettings(body_timeout=timedelta(seconds=1))
    with ExitStack() as stack:
        with running(Settings(state_dir=tmp_path, limits=limits)) as url:
            connection = stack.enter_context(connect(url))
            connection.sendall(POST + b"Content-Length: 9\r\n\r\n{")
            assert read_answer(connection)[0] == 408
        # Here the coordinator has ended.
        assert connection.recv(1) == b""
