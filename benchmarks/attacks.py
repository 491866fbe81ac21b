"""Attack a running coordinator; report its answers, peak memory and longest silence.

    python benchmarks/attacks.py [--quick] [--json FILE] [--only NAME,…]

Each attack gets its own fresh coordinator on loopback. Meanwhile another process keeps sending
`GET /health/live`, on a new connection each time, like a kubelet. The peer is the same coordinator
before the attack. Attacks are functions listed in `ATTACKS`.
"""

from __future__ import annotations

import http.client
import multiprocessing
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from common import Result, arguments, console, write_json
from rich.table import Table
from servers import CoordinatorProcess, coordinator_process
from tests.support.api.arrow_bombs import BOMBS
from tests.support.api.json_bombs import KINDS, calls_with_json
from tests.support.servers.coordinators import peak_bytes

_POLL_S = 0.01
_IDLE_S = 1.0
_GIVE_UP_S = 60.0
# How long half-sent requests are kept open.
_PATIENCE_S = 40.0
_CHUNK = b"a" * 65_536
_BLANKS = b" " * 2**20
# A little less than a coordinator accepts.
_JSON_BYTES = 15 * 2**20


@dataclass(frozen=True, slots=True)
class Target:
    """The coordinator that is attacked.

    Attributes:
        url: URL of the coordinator.
        folder: Folder that may hold tables.
        quick: Whether a small attack is enough.
    """

    url: str
    folder: Path
    quick: bool

    def connect(self) -> socket.socket:
        """Return a connection to the coordinator."""
        where = urlsplit(self.url)
        return socket.create_connection((where.hostname, where.port), _GIVE_UP_S)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one attack; silences are in milliseconds."""

    attack: str
    answer: str
    idle_bytes: int
    peak_bytes: int
    idle_silence_ms: float
    silence_ms: float


def endless_header(target: Target) -> str:
    """Send one header that never ends."""
    with target.connect() as connection:
        connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\nX-Long: ")
        return _flood(connection, _CHUNK, (20 if target.quick else 160) * 2**20)


def endless_trailer(target: Target) -> str:
    """Send a chunked body whose trailer never ends."""
    with target.connect() as connection:
        connection.sendall(b"POST /plans HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.sendall(b"2\r\n{}\r\n0\r\nX-Long: ")
        return _flood(connection, _CHUNK, (20 if target.quick else 160) * 2**20)


def many_headers(target: Target) -> str:
    """Send 20,000 headers."""
    with target.connect() as connection:
        connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\n")
        return _flood(connection, b"".join(b"x%d:y\r\n" % at for at in range(20_000)) + b"\r\n", 1)


def half_sent_heads(target: Target) -> str:
    """Keep 800 requests open without finishing their headers."""
    return _keep_open(target, b"GET /health/live HTTP/1.1\r\nHost: x\r\n", b"X: y\r\n")


def half_sent_bodies(target: Target) -> str:
    """Keep 800 requests open in the middle of their bodies, sending a byte now and then."""
    head = b"POST /plans HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    return _keep_open(target, head + b"Content-Length: 1000000\r\n\r\n{", b" ")


def idle_connections(target: Target) -> str:
    """Open 800 connections and send nothing."""
    return _keep_open(target, b"", b"")


def arrow_bombs(target: Target) -> str:
    """Publish small streams that decode to gigabytes, one after another."""
    httpx.put(f"{target.url}/tables/bombed", json={"location": str(target.folder)})
    return _statuses(
        httpx.post(
            f"{target.url}/tables/bombed/snapshots",
            content=bomb(),
            headers={"Content-Type": "application/vnd.apache.arrow.stream"},
            timeout=_GIVE_UP_S,
        )
        for bomb in BOMBS
    )


def json_bombs(kind: Callable[[int], bytes]) -> Callable[[Target], str]:
    """Return the attack that sends a kind of JSON to every call that takes JSON."""

    def attack(target: Target) -> str:
        size_bytes = _JSON_BYTES // 10 if target.quick else _JSON_BYTES
        # The first is within most limits, so that it is decoded.
        bodies = (kind(9_000), kind(10_000 * size_bytes // len(kind(10_000))))
        httpx.put(f"{target.url}/tables/attacked", json={"location": str(target.folder)})
        return _statuses(
            httpx.request(
                method,
                target.url + path,
                content=body,
                headers={"Content-Type": "application/json"},
                timeout=_GIVE_UP_S,
            )
            for body in bodies
            for method, path in calls_with_json()
        )

    return attack


def many_bodies(target: Target) -> str:
    """Send 60 long JSON bodies and six long streams at the same time; half of them stop."""
    httpx.put(f"{target.url}/tables/filled", json={"location": str(target.folder)})
    scale = 10 if target.quick else 1
    bodies = [("/plans", "application/json", _JSON_BYTES)] * (60 // scale)
    stream = ("/tables/filled/snapshots", "application/vnd.apache.arrow.stream", 400 * 2**20)
    bodies += [stream] * (6 // scale)
    with ThreadPoolExecutor(len(bodies)) as threads:
        answers = threads.map(
            lambda body: _half_sent(target, *body[1], stops=body[0] % 2 == 0), enumerate(bodies)
        )
        return _counted(answers)


def _half_sent(target: Target, path: str, media_type: str, size_bytes: int, *, stops: bool) -> str:
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {media_type}\r\n"
    left = size_bytes - stops
    with target.connect() as connection:
        try:
            connection.sendall(f"{head}Content-Length: {size_bytes}\r\n\r\n".encode())
            while left > 0:
                left -= connection.send(_BLANKS[: min(left, len(_BLANKS))])
        except OSError:
            pass
        return _answer(connection, wait_s=10.0 if stops else _GIVE_UP_S)


def column_types(target: Target) -> str:
    """Register tables with types of columns that take long to read."""
    length = 6_500 if target.quick else 65_000
    types = (
        "a" * length,
        "array<" * (length // 6),
        "array<" * 190 + "int" + ">" * 190,
        "struct<" + ",".join(f"f{at}:int" for at in range(length // 10)) + ">",
        "'" + "\\'" * (length // 2),
    )
    return _statuses(
        httpx.put(
            f"{target.url}/tables/typed",
            json={
                "location": str(target.folder),
                "columns": [{"name": f"c{at}", "type": type_} for at in range(count)],
            },
            timeout=_GIVE_UP_S,
        )
        for type_ in types
        for count in (1, 60)
    )


def wide_tables(target: Target) -> str:
    """List tables of 10,000 columns, and show pages about them."""
    columns = [{"name": f"column_{at:05}", "type": "decimal(38,10)"} for at in range(10_000)]
    body = {"location": str(target.folder), "columns": columns}
    count = 10 if target.quick else 300
    for at in range(count):
        httpx.put(f"{target.url}/tables/wide.t{at:04}", json=body, timeout=_GIVE_UP_S)
    file = {"path": "a.parquet", "size_bytes": 1, "mtime_ns": 1, "row_count": 1}
    first = f"{target.url}/tables/wide.t0000"
    httpx.post(f"{first}/snapshots", json={"added": [file]}, timeout=_GIVE_UP_S)
    unknown = {"table": "wide.t0000", "filter": "colunm_00001 = 1"}
    return _statuses(
        [
            httpx.post(f"{target.url}/plans", json=unknown, timeout=_GIVE_UP_S),
            *(
                httpx.get(target.url + path, timeout=_GIVE_UP_S)
                for path in (
                    "/tables?page_size=1000",
                    "/tables/wide.t0000/snapshots",
                    "/dashboard/tables",
                    "/dashboard/tables/wide.t0000",
                    "/dashboard/work",
                )
            ),
        ]
    )


def long_filters(target: Target) -> str:
    """Plan 10,000 groups with filters of up to a megabyte."""
    count = 1_000 if target.quick else 10_000
    files = [
        {"path": f"{at}.parquet", "size_bytes": 2**30, "mtime_ns": 1, "row_count": 1}
        for at in range(count)
    ]
    columns = [{"name": "s", "type": "string"}, {"name": "i", "type": "bigint"}]
    table = f"{target.url}/tables/filtered"
    httpx.put(table, json={"location": str(target.folder), "columns": columns})
    httpx.post(f"{table}/snapshots", json={"added": files}, timeout=_GIVE_UP_S)
    filters = (
        f"s = '{'x' * 1_000_000}'",
        f"s LIKE '{'%' * 1_000_000}'",
        f"s LIKE '{'x%' * 500_000}'",
        f"i IN ({','.join(map(str, range(10_000)))})",
        " AND ".join(f"i <> {at}" for at in range(1_900)),
        "not " * 200_000,
        "'\\" * 300_000,
    )
    return _statuses(
        httpx.post(
            f"{target.url}/plans",
            json={"table": "filtered", "filter": filter_},
            timeout=_GIVE_UP_S,
        )
        for filter_ in filters
    )


def footer_bombs(target: Target) -> str:
    """Refresh a table with a sparse file of 8 GiB whose footer claims to take 4 GB."""
    with (target.folder / "bomb.parquet").open("wb") as file:
        file.write(b"PAR1")
        file.seek(2**33)
        file.write((2**32 - 9).to_bytes(4, "little") + b"PAR1")
    httpx.put(f"{target.url}/tables/bombed", json={"location": str(target.folder)})
    refreshed = httpx.post(f"{target.url}/tables/bombed/refresh", timeout=_GIVE_UP_S)
    return _statuses([refreshed])


def _statuses(answers: Iterable[httpx.Response]) -> str:
    return _counted(str(answer.status_code) for answer in answers)


def _counted(answers: Iterable[str]) -> str:
    counts = Counter(answers).most_common()
    return ", ".join(f"{count} times {answer}" for answer, count in counts)


def _flood(connection: socket.socket, content: bytes, size_bytes: int) -> str:
    """Send the content repeatedly, up to a size or until nobody reads it; return the answer."""
    sent = 0
    try:
        while sent < size_bytes:
            connection.sendall(content)
            sent += len(content)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    return f"{_answer(connection)} after {sent / 2**20:,.1f} MB"


def _keep_open(target: Target, begin: bytes, trickle: bytes) -> str:
    """Open many connections, send a beginning and then a trickle; return the counted answers."""
    count = 100 if target.quick else 800
    patience_s = 2.0 if target.quick else _PATIENCE_S
    with ExitStack() as stack:
        connections = []
        for _ in range(count):
            connection = stack.enter_context(target.connect())
            _try_to_send(connection, begin)
            connections.append(connection)
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            for connection in connections:
                _try_to_send(connection, trickle)
            time.sleep(1.0)
        answers = Counter(_answer(connection, wait_s=0.0) for connection in connections)
    counted = ", ".join(f"{number} times {answer}" for answer, number in answers.most_common())
    return f"{counted} after {patience_s:.0f} s"


def _try_to_send(connection: socket.socket, content: bytes) -> None:
    try:
        connection.sendall(content)
    except OSError:
        return


def _answer(connection: socket.socket, wait_s: float = _GIVE_UP_S) -> str:
    connection.settimeout(wait_s)
    try:
        line = connection.recv(65_536).partition(b"\r\n")[0]
    except (BlockingIOError, TimeoutError):
        return "still open"
    except OSError:
        return "closed"
    return line.decode("latin-1").partition(" ")[2] or "closed"


ATTACKS: dict[str, Callable[[Target], str]] = {
    "endless header": endless_header,
    "endless trailer": endless_trailer,
    "20,000 headers": many_headers,
    "half-sent heads": half_sent_heads,
    "half-sent bodies": half_sent_bodies,
    "idle connections": idle_connections,
    "Arrow bombs": arrow_bombs,
    "footer bombs": footer_bombs,
    "many bodies": many_bodies,
    "column types": column_types,
    "wide tables": wide_tables,
    "long filters": long_filters,
    **{f"JSON: {kind.__name__.replace('_', ' ')}": json_bombs(kind) for kind in KINDS},
}


# --- measuring ------------------------------------------------------------------


def main() -> None:
    """Attack, print a table, and write the JSON if asked to."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--only", help="names of attacks, joined by ','")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(ATTACKS)
    outcomes = [_attack(name, quick=options.quick) for name in names]
    table = Table("attack", "answer", "peak MB", "MB before", "longest silence ms", "ms before")
    for one in outcomes:
        table.add_row(
            one.attack,
            one.answer,
            f"{one.peak_bytes / 2**20:,.0f}",
            f"{one.idle_bytes / 2**20:,.0f}",
            f"{one.silence_ms:,.0f}",
            f"{one.idle_silence_ms:,.0f}",
        )
    console.print(table)
    if options.json:
        write_json(
            options.json,
            "attacks",
            [result for one in outcomes for result in _results(one)],
            answers={one.attack: one.answer for one in outcomes},
        )


def _attack(name: str, *, quick: bool) -> Outcome:
    with tempfile.TemporaryDirectory() as folder_name, ExitStack() as stack:
        folder = Path(folder_name)
        (folder / "tables").mkdir()
        coordinator = stack.enter_context(coordinator_process(folder / "state", folder / "tables"))
        with _watching(coordinator) as idle:
            time.sleep(_IDLE_S)
        before = peak_bytes(coordinator)
        with _watching(coordinator) as watched:
            answer = ATTACKS[name](Target(coordinator.url, folder / "tables", quick))
        return Outcome(name, answer, before, peak_bytes(coordinator), idle[0], watched[0])


def _results(one: Outcome) -> list[Result]:
    figures = (
        ("peak memory", "MB", one.peak_bytes / 2**20, one.idle_bytes / 2**20),
        ("longest silence of GET /health/live", "ms", one.silence_ms, one.idle_silence_ms),
    )
    return [
        Result(
            case=one.attack,
            metric=metric,
            unit=unit,
            windrow=figure,
            peer="before the attack",
            peer_value=before,
        )
        for metric, unit, figure, before in figures
    ]


@contextmanager
def _watching(coordinator: CoordinatorProcess) -> Iterator[list[float]]:
    """Check health until the end of the block; then the list holds the longest silence."""
    # A separate process, since building an attack here would delay a thread.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    watcher = context.Process(target=_watch, args=(coordinator.url, theirs))
    watcher.start()
    silence_ms: list[float] = []
    try:
        ours.recv()
        yield silence_ms
        ours.send(None)
        silence_ms.append(ours.recv())
    finally:
        watcher.kill()
        watcher.join()


def _watch(url: str, pipe: Connection) -> None:
    address = urlsplit(url).netloc
    pipe.send(None)
    longest_s = 0.0
    heard = time.monotonic()
    while not pipe.poll():
        answered = _is_live(address)
        now = time.monotonic()
        longest_s = max(longest_s, now - heard)
        if answered:
            heard = now
        time.sleep(_POLL_S)
    pipe.send(longest_s * 1000)


def _is_live(address: str) -> bool:
    connection = http.client.HTTPConnection(address, timeout=_GIVE_UP_S)
    try:
        connection.request("GET", "/health/live")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    main()
