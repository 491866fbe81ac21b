"""Connections: limited in number, and in the data that each may send before it is parsed.

With httptools, uvicorn sets none of these limits; with h11, it only limits the bytes of a head.
"""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from windrow_service.api.problems import MEDIA_TYPE, PREFIX, ProblemType
from windrow_service.logs import get_logger

# Lowest rate of a body, on average, once `body_timeout_s` is used up.
MIN_BODY_BYTES_PER_S = 1024
_LOOK_EVERY_S = 1.0
# How long to discard data that arrives after a refusal, so that the client can read the answer.
_LINGER_S = 2.0
# A client that reads nothing for this long may have to make room for another.
_STALLED_S = 2.0
_RETRY_AFTER_S = 1
_log = get_logger(__name__)
# Of our own, so that the numbers that an application draws do not depend on its connections.
_jitter = random.Random()

MALFORMED = ProblemType(HTTPStatus.BAD_REQUEST, "malformed-request", "Request is not HTTP")
TOO_SLOW = ProblemType(HTTPStatus.REQUEST_TIMEOUT, "request-too-slow", "Request arrives too slowly")
HEAD_TOO_LARGE = ProblemType(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "head-too-large", "Request head is too long"
)
TOO_MANY = ProblemType(
    HTTPStatus.SERVICE_UNAVAILABLE, "too-many-connections", "Coordinator has too many connections"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits of connections.

    Attributes:
        max_connections: Most connections at the same time. When one more arrives, the coordinator
            closes the one that has waited longest without sending a whole request; else the one
            that is furthest behind with sending its body or reading its answer. A body at full
            speed is not behind, but it is closed if no other connection is. The new connection is
            refused only if no connection waits for its client.
        max_head_bytes: Most bytes of the request line and all headers.
        max_headers: Most headers.
        head_timeout_s: Longest time from the first byte, or from the connection, to the end of
            the head.
        body_timeout_s: Total time for which a body may be slower than `MIN_BODY_BYTES_PER_S`.
    """

    max_connections: int
    max_head_bytes: int
    max_headers: int
    head_timeout_s: float
    body_timeout_s: float


def bounded_http(bounds: ConnectionLimits) -> type[asyncio.Protocol]:
    """Return the protocol for connections within these limits."""

    class Bounded(_BoundedHttp):
        limits = bounds

    return Bounded


class _Expects(Enum):
    """The part that the client has to send next."""

    REQUEST = auto()
    HEAD = auto()
    BODY = auto()
    NOTHING = auto()


class _TooLargeError(Exception):
    """The head, or the data between parts of a chunked body, is too large."""


class _BoundedHttp(HttpToolsProtocol):
    """HTTP with limits on the bytes outside bodies, on headers, and on the time to send them."""

    limits: ClassVar[ConnectionLimits]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, if there is room for one more connection."""
        super().connection_made(transport)
        self._expects = _Expects.REQUEST
        self._refused = False
        self._dropped = False
        self._unread_since: float | None = None
        self._under_way = 0
        self._not_body_bytes = 0
        self._head_bytes = 0
        self._header_count = 0
        self._body_bytes = 0
        self._patience_s = 0.0
        self._look_s = _LOOK_EVERY_S
        self._waits_since = self.loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._timed = _Expects.NOTHING
        if len(self.connections) > self.limits.max_connections and not self._make_room():
            self._refuse(
                TOO_MANY,
                f"all {self.limits.max_connections:,} connections are in use: try again later, "
                "or raise WINDROW_LIMITS__MAX_CONNECTIONS",
            )
        else:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse more data, within the limits."""
        if self._refused:
            return
        self._not_body_bytes += len(data)
        super().data_received(data)
        if self._not_body_bytes > self.limits.max_head_bytes:
            self._refuse_head()
        if not self._refused:
            self._watch()

    def pause_writing(self) -> None:
        """Note since when the client has not been reading."""
        self._unread_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that the client reads again."""
        self._unread_since = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse data that is not HTTP, or that exceeds a limit."""
        if self._is_large():
            self._refuse_head()
        else:
            self._refuse(MALFORMED, "the data sent is not an HTTP request")

    def shutdown(self) -> None:
        """Close the connection, or let the answer that is under way be its last."""
        if self._refused:
            # Nothing else will close it, and the loop cannot end before it is closed.
            self.transport.close()
        else:
            super().shutdown()

    # --- callbacks of the parser

    def on_message_begin(self) -> None:
        """Expect the rest of a head."""
        super().on_message_begin()
        self._expects = _Expects.HEAD
        self._head_bytes = self._header_count = 0

    def on_url(self, url: bytes) -> None:
        """Count a part of the request line."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header, or a trailer of a chunked body."""
        self._header_count += 1
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Expect the body, unless the request line has no path."""
        super().on_headers_complete()
        self._expects = _Expects.BODY
        self._under_way += 1

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._body_bytes += len(body)
        self._not_body_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Expect nothing until the answer is sent."""
        self._expects = _Expects.NOTHING if self._under_way else _Expects.REQUEST
        self._not_body_bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Expect another request, or the rest of a body that was not read."""
        self._under_way -= 1
        super().on_response_complete()
        self._waits_since = self.loop.time()
        if self._expects is _Expects.NOTHING and not self._under_way:
            self._expects = _Expects.REQUEST
        elif self._expects is _Expects.BODY:
            self._stop_timer()
            self._timed = _Expects.BODY
            self._timer = self.loop.call_later(_LINGER_S, self.transport.close)

    # --- limits

    def _count(self, count_bytes: int) -> None:
        self._head_bytes += count_bytes
        if self._is_large():
            raise _TooLargeError

    def _is_large(self) -> bool:
        limits = self.limits
        return self._head_bytes > limits.max_head_bytes or self._header_count > limits.max_headers

    def _refuse_head(self) -> None:
        self._refuse(
            HEAD_TOO_LARGE,
            f"a request may have at most {self.limits.max_headers:,} headers and "
            f"{self.limits.max_head_bytes:,} bytes before its body: send less, or raise "
            "WINDROW_LIMITS__MAX_HEADERS or WINDROW_LIMITS__MAX_HEAD_BYTES",
        )

    def _make_room(self) -> bool:
        """Close the slowest connection; tell whether there was one.

        Of the connections without a whole request, the one that has waited longest is closed. If
        there are none, it is the one in the middle of a body or an answer that is furthest behind;
        if none of them is behind, it is the body of which the fewest bytes arrived recently.
        """
        others = [
            other
            for other in self.connections
            if isinstance(other, _BoundedHttp) and other is not self and not other._dropped
        ]
        idle = [other for other in others if not other._under_way]
        behind = [(other._behind_s(), -other._body_bytes, other) for other in others]
        slow = [(seconds, order, other) for seconds, order, other in behind if seconds is not None]
        if idle:
            min(idle, key=lambda other: other._waits_since)._drop()
        elif slow:
            max(slow, key=lambda one: one[:2])[2]._drop()
        return bool(idle or slow)

    def _behind_s(self) -> float | None:
        """Return how long a body or answer has waited for the client; None if it does not wait.

        A body that is not complete always waits for its client: for 0 seconds at full speed.
        """
        if self._expects is _Expects.BODY:
            return self.limits.body_timeout_s - self._patience_s
        if self._unread_since is not None:
            unread_s = self.loop.time() - self._unread_since
            return unread_s if unread_s >= _STALLED_S else None
        return None

    def _drop(self) -> None:
        self._dropped = True
        self.transport.abort()

    # --- deadlines

    def _watch(self) -> None:
        """Start the deadline for what is expected next."""
        is_head = self._expects in (_Expects.REQUEST, _Expects.HEAD)
        part = _Expects.HEAD if is_head else self._expects
        if part is self._timed:
            return
        self._stop_timer()
        self._timed = part
        if part is _Expects.HEAD:
            self._timer = self.loop.call_later(self.limits.head_timeout_s, self._head_is_late)
        elif part is _Expects.BODY:
            self._patience_s = self.limits.body_timeout_s
            self._look_again()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timed = _Expects.NOTHING

    def _head_is_late(self) -> None:
        self._stop_timer()
        if not self._under_way:
            self._refuse(
                TOO_SLOW,
                f"a request's head must arrive within {self.limits.head_timeout_s:g} s",
            )
        else:
            # The answer to an earlier request on this connection is still under way.
            self._watch()

    def _look_again(self) -> None:
        self._body_bytes = 0
        # Spread, since refusing hundreds of connections at once would keep all others waiting.
        self._look_s = _LOOK_EVERY_S * _jitter.uniform(0.5, 1.5)
        self._timer = self.loop.call_later(self._look_s, self._look_at_body)

    def _look_at_body(self) -> None:
        # The client cannot send while the coordinator does not read.
        if not self.flow.read_paused:
            gained_s = self._body_bytes / MIN_BODY_BYTES_PER_S
            patience_s = self._patience_s + min(gained_s, self._look_s) - self._look_s
            self._patience_s = patience_s
        if self._patience_s <= 0:
            self._refuse(
                TOO_SLOW,
                f"a body may be slower than {MIN_BODY_BYTES_PER_S:,} bytes a second for at most "
                f"{self.limits.body_timeout_s:g} s: send it faster",
            )
        else:
            self._look_again()

    def _refuse(self, kind: ProblemType, detail: str) -> None:
        """Answer with a problem unless an answer has begun, and close the connection."""
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        self._stop_timer()
        self._unset_keepalive_if_required()
        _log.info("connection refused", reason=kind.slug, client=self.client)
        is_in_body = self._under_way == 1 and self._expects is _Expects.BODY
        if not self._under_way or (is_in_body and not self.cycle.response_started):
            self.transport.write(_answer(kind, detail))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        if self._under_way:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        # If closed at once, unread bytes would make the client lose the answer.
        self._timer = self.loop.call_later(_LINGER_S, self.transport.close)


def _answer(kind: ProblemType, detail: str) -> bytes:
    body = {
        "type": PREFIX + kind.slug,
        "title": kind.title,
        "status": int(kind.status),
        "detail": detail,
    }
    content = json.dumps(body).encode()
    retry = (f"Retry-After: {_RETRY_AFTER_S}",) if kind is TOO_MANY else ()
    lines = (
        f"HTTP/1.1 {int(kind.status)} {kind.status.phrase}",
        f"Content-Type: {MEDIA_TYPE}",
        f"Content-Length: {len(content)}",
        "Connection: close",
        *retry,
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content
