"""The process of `tests.support.faults.object_proxy`: an HTTP proxy that counts, delays, limits and fails.

Commands are lines of JSON on its input; each gets one line as its answer. The process ends with its
input.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import parse_qs, unquote

try:
    from uvloop import new_event_loop
except ImportError:
    from asyncio import new_event_loop  # type: ignore[assignment]

_END = b"\r\n\r\n"
_ERROR = '<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'
Answered = Callable[[bytes, bytes], None]


@dataclass(slots=True)
class State:
    """The settings and counts of the proxy; see `ObjectProxy`."""

    upstream: tuple[str, int]
    delay_s: float = 0.0
    limit: float | None = None
    burst: float = 1.0
    rules: list[dict[str, Any]] = field(default_factory=list)
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    sent: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    first_s: float | None = None
    last_s: float | None = None
    in_flight: int = 0
    most_in_flight: int = 0
    tokens: float = 0.0
    filled_s: float = 0.0

    def admits(self) -> bool:
        """Return whether the limit lets one more request through."""
        if self.limit is None:
            return True
        now = time.monotonic()
        self.tokens = min(self.burst, self.tokens + (now - self.filled_s) * self.limit)
        self.filled_s = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    def rule_for(self, method: str, key: str) -> dict[str, Any] | None:
        """Return the rule that spoils a request, if any."""
        for rule in self.rules:
            if rule["key"] in key and method in rule["methods"]:
                if random.random() >= rule["share"]:
                    continue
                if rule["after"] > 0:
                    rule["after"] -= 1
                    continue
                if rule["times"] is None:
                    return rule
                if rule["times"] > 0:
                    rule["times"] -= 1
                    return rule
        return None


class Upstream(asyncio.Protocol):
    """A connection to the server, which sends one request at a time."""

    # uvloop's transports are not instances of asyncio's class.
    transport: Any

    def __init__(self, idle: deque[Upstream]) -> None:
        self._idle = idle
        self._answered: Answered | None = None
        self._lost: Callable[[], None] = lambda: None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def ask(
        self, request: bytes, has_body: bool, on_answer: Answered, on_loss: Callable[[], None]
    ) -> None:
        """Send a request; call `on_answer` with the head and body of its answer, or `on_loss`."""
        self._got = bytearray()
        self._head = b""
        self._has_body = has_body
        self._answered, self._lost = on_answer, on_loss
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._got += data
        if not self._head:
            while True:
                end = self._got.find(_END)
                if end < 0:
                    return
                self._head = bytes(self._got[: end + 4])
                del self._got[: end + 4]
                if not self._head.startswith(b"HTTP/1.1 100"):
                    break
                # The client has sent its body without waiting for the server's permission.
                self._head = b""
            length = header(self._head, b"content-length")
            is_chunked = b"chunked" in (header(self._head, b"transfer-encoding") or b"")
            status = int(self._head[9:12])
            if not self._has_body or status in (204, 304):
                self._wanted: int | None = 0
            else:
                self._wanted = int(length) if length is not None and not is_chunked else None
            self._chunked = is_chunked
        if self._wanted is not None:
            if len(self._got) >= self._wanted:
                self._complete(bytes(self._got))
        elif self._chunked and (body := unchunked(self._got)) is not None:
            self._complete(body)

    def _complete(self, body: bytes) -> None:
        on_answer, self._answered = self._answered, None
        assert on_answer is not None
        closes = b"close" in (header(self._head, b"connection") or b"").lower()
        if closes or self._head.startswith(b"HTTP/1.0"):
            self.transport.close()
        else:
            self._idle.append(self)
        on_answer(self._head, body)

    def connection_lost(self, exc: Exception | None) -> None:
        if self in self._idle:
            self._idle.remove(self)
        if self._answered is None:
            return
        if self._head and self._wanted is None and not self._chunked:
            # Neither length nor chunks: the end of the connection is the end of the body.
            self._answered(self._head, bytes(self._got))
        else:
            self._lost()


class Client(asyncio.Protocol):
    """A connection of a client, which sends the next request after an answer."""

    transport: Any

    def __init__(self, proxy: Proxying) -> None:
        self._proxy = proxy
        self._got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._proxy.clients.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._proxy.clients.discard(self)

    def data_received(self, data: bytes) -> None:
        self._got = self._got + data if self._got else data
        end = self._got.find(_END)
        if end < 0:
            return
        head = self._got[: end + 4]
        if b"\r\nexpect: 100-continue" in head.lower() and len(self._got) == len(head):
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        length = int(header(head, b"content-length") or 0)
        if len(self._got) < len(head) + length:
            return
        request = self._got[: len(head) + length]
        self._got = self._got[len(head) + length :]
        self._proxy.pass_on(self, request)


class Proxying:
    """Passes requests on, and answers back."""

    def __init__(self, state: State, loop: asyncio.AbstractEventLoop) -> None:
        self.state = state
        self._loop = loop
        self._idle: deque[Upstream] = deque()
        self.clients: set[Client] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def listen(self) -> None:
        """Listen on a port, each time on the same one."""
        self._server = await self._loop.create_server(
            lambda: Client(self), "127.0.0.1", self.port, backlog=1024
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop_listening(self) -> None:
        """Refuse connections, and cut those that are open."""
        assert self._server is not None
        self._server.close()
        for client in list(self.clients):
            client.transport.abort()
        await asyncio.sleep(0)

    def pass_on(self, client: Client, request: bytes) -> None:
        """Count a request, and answer it from the server, from a rule or from the limit."""
        state, began_s = self.state, self._loop.time()
        line = request[: request.index(b"\r\n")].decode("latin-1")
        method, target, _ = line.split(" ", 2)
        key = key_of(target)
        state.requests[method, key] += 1
        state.in_flight += 1
        state.most_in_flight = max(state.most_in_flight, state.in_flight)
        now = time.monotonic()
        state.first_s = now if state.first_s is None else state.first_s
        state.last_s = now
        rule = state.rule_for(method, key)

        def answered(head: bytes, body: bytes) -> None:
            if head[9:12] == b"416" and b"=-" in (header(request, b"range") or b""):
                # S3 answers with the whole object if it is shorter than the requested suffix;
                # rclone does not.
                self._ask(without_header(request, b"range"), True, partial(in_full, answered))
                return
            # A rule that stalls delays the first byte further.
            due_s = began_s + state.delay_s + (rule.get("stall_s", 0.0) if rule else 0.0)
            wait_s = due_s - self._loop.time()
            if wait_s > 0:
                self._loop.call_later(wait_s, self._answer, client, key, head, body, rule)
            else:
                self._answer(client, key, head, body, rule)

        if rule and rule["fault"] == "status":
            answered(*error_answer(rule["status"], rule["code"], rule.get("headers", {})))
        elif not state.admits():
            answered(*error_answer(503, "SlowDown", {}))
        else:
            self._ask(request, method != "HEAD", answered)

    def _ask(self, request: bytes, has_body: bool, on_answer: Answered) -> None:
        while self._idle:
            upstream = self._idle.pop()
            if not upstream.transport.is_closing():
                # The server may be closing the connection right now.
                again = partial(self._connect, request, has_body, on_answer)
                upstream.ask(request, has_body, on_answer, again)
                return
        self._connect(request, has_body, on_answer)

    def _connect(self, request: bytes, has_body: bool, on_answer: Answered) -> None:
        unavailable = partial(on_answer, *error_answer(502, "BadGateway", {}))

        async def connect() -> None:
            try:
                _, upstream = await self._loop.create_connection(
                    lambda: Upstream(self._idle), *self.state.upstream
                )
            except OSError:
                unavailable()
                return
            upstream.ask(request, has_body, on_answer, unavailable)

        task = self._loop.create_task(connect())
        task.add_done_callback(lambda done: done.result())

    def _answer(
        self, client: Client, key: str, head: bytes, body: bytes, rule: dict[str, Any] | None
    ) -> None:
        state = self.state
        state.in_flight -= 1
        state.statuses[int(head[9:12])] += 1
        if client.transport.is_closing():
            return
        cut = False
        if rule is not None:
            head, body, cut = spoilt(rule, head, body)
        state.sent[key] += len(body)
        client.transport.write(framed(head, body))
        if cut:
            client.transport.close()


def in_full(on_answer: Answered, head: bytes, body: bytes) -> None:
    """Pass a whole object on as the part that was asked for."""
    if head[9:12] == b"200":
        size = len(body)
        head = with_header(head, b"Content-Range", f"bytes 0-{size - 1}/{size}")
    on_answer(head, body)


def spoilt(rule: dict[str, Any], head: bytes, body: bytes) -> tuple[bytes, bytes, bool]:
    """Return head and body as a rule changes them, and whether the connection ends there."""
    fault = rule["fault"]
    if fault == "cut":
        return with_header(head, b"Content-Length", len(body)), body[: len(body) // 2], True
    if fault == "longer":
        return with_header(head, b"Content-Length", len(body) + 10), body, True
    if fault == "shorter":
        return with_header(head, b"Content-Length", len(body) - 10), body[:-10], False
    if fault == "etag":
        return with_header(head, b"ETag", '"0123456789abcdef0123456789abcdef"'), body, False
    return head, body, False


def error_answer(status: int, code: str, headers: dict[str, str]) -> tuple[bytes, bytes]:
    """Return head and body of an error as S3 words it."""
    lines = [f"HTTP/1.1 {status} {code}", "Content-Type: application/xml"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode(), _ERROR.format(code=code).encode()


def framed(head: bytes, body: bytes) -> bytes:
    """Return an answer that keeps the connection open, even if the server closes its own."""
    if not head.startswith(b"HTTP/1.1"):
        head = b"HTTP/1.1" + head[8:]
    if head[9:12] == b"200" and header(head, b"content-range") is not None:
        # rclone answers a range with 200, which clients refuse.
        head = b"HTTP/1.1 206 Partial Content" + head[head.index(b"\r\n") :]
    if header(head, b"connection") is not None:
        head = without_header(head, b"connection")
    if header(head, b"transfer-encoding") is not None:
        head = without_header(head, b"transfer-encoding")
    if header(head, b"content-length") is None:
        head = with_header(head, b"Content-Length", len(body))
    return head + body


def header(head: bytes, name: bytes) -> bytes | None:
    """Return the value of a header; its name is given in lower case."""
    # Two spellings are tried before the whole head is put into lower case.
    for spelling in (name.title(), name):
        at = head.find(b"\r\n" + spelling + b":")
        if at >= 0:
            begin = at + len(name) + 3
            return head[begin : head.index(b"\r\n", begin)].strip()
    at = head.lower().find(b"\r\n" + name + b":")
    if at < 0:
        return None
    begin = at + len(name) + 3
    return head[begin : head.index(b"\r\n", begin)].strip()


def without_header(head: bytes, name: bytes) -> bytes:
    """Return a head without a header."""
    at = head.lower().find(b"\r\n" + name + b":")
    return head if at < 0 else head[:at] + head[head.index(b"\r\n", at + 2) :]


def with_header(head: bytes, name: bytes, value: object) -> bytes:
    """Return a head with a new value of a header."""
    rest = without_header(head, name.lower())
    return rest[:-2] + name + b": " + str(value).encode() + b"\r\n\r\n"


def unchunked(stream: bytearray) -> bytes | None:
    """Return a body that came in chunks; None while it is not complete."""
    parts: list[bytes] = []
    at = 0
    while (end := stream.find(b"\r\n", at)) >= 0:
        size = int(bytes(stream[at:end]).split(b";")[0], 16)
        at = end + 2
        if size == 0:
            return b"".join(parts) if stream.find(b"\r\n", at) >= 0 else None
        if len(stream) < at + size + 2:
            return None
        parts.append(bytes(stream[at : at + size]))
        at += size + 2
    return None


def key_of(target: str) -> str:
    """Return `bucket/key` of a request, or `bucket/?prefix` of a listing."""
    path, _, query = target.partition("?")
    name = unquote(path).lstrip("/")
    bucket, _, key = name.partition("/")
    if key:
        return name
    return f"{bucket}/?{parse_qs(query).get('prefix', [''])[0]}"


async def commanded(proxy: Proxying, state: State, command: dict[str, Any]) -> Any:
    """Carry out a command, and return its answer."""
    if command["do"] == "set":
        for name in ("delay_s", "limit", "burst", "rules"):
            if name in command:
                setattr(state, name, command[name])
        state.tokens, state.filled_s = state.burst, time.monotonic()
    elif command["do"] == "clear":
        for counter in (state.requests, state.sent, state.statuses):
            counter.clear()
        state.first_s = state.last_s = None
        state.most_in_flight = state.in_flight
    elif command["do"] == "stop":
        await proxy.stop_listening()
    elif command["do"] == "listen":
        await proxy.listen()
    elif command["do"] == "counts":
        return {
            "requests": [[*what, count] for what, count in state.requests.items()],
            "sent": dict(state.sent),
            "statuses": dict(state.statuses),
            "seconds": (state.last_s or 0.0) - (state.first_s or 0.0),
            "most_in_flight": state.most_in_flight,
        }
    return None


def say(answer: Any) -> None:
    """Write an answer to a command as a line."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main(host: str, port: str) -> None:
    """Run until the input ends."""
    loop = new_event_loop()
    state = State((host, int(port)))
    proxy = Proxying(state, loop)
    waiting = bytearray()

    async def run() -> None:
        await proxy.listen()
        say(proxy.port)
        end_of_input = asyncio.Event()
        commands: asyncio.Queue[bytes] = asyncio.Queue()

        class Input(asyncio.Protocol):
            def data_received(self, data: bytes) -> None:
                waiting.extend(data)
                while (end := waiting.find(b"\n")) >= 0:
                    commands.put_nowait(bytes(waiting[:end]))
                    del waiting[: end + 1]

            def connection_lost(self, exc: Exception | None) -> None:
                end_of_input.set()

        async def serve() -> None:
            while True:
                answer = await commanded(proxy, state, json.loads(await commands.get()))
                say(answer)

        await loop.connect_read_pipe(Input, sys.stdin)
        serving = loop.create_task(serve())

        def end(task: asyncio.Task[None]) -> None:
            if not task.cancelled():
                end_of_input.set()

        serving.add_done_callback(end)
        await end_of_input.wait()
        if serving.done():
            serving.result()
        serving.cancel()

    loop.run_until_complete(run())


if __name__ == "__main__":
    main(*sys.argv[1:])
