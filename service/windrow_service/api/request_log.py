"""Gives each request an id, a line in the log and, if it fails, an answer."""

from __future__ import annotations

import re
import secrets
import time
from typing import Any

from fastapi import Request
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from windrow_service.api.problems import problem_answer
from windrow_service.api.services import services_of
from windrow_service.logs import get_logger
from windrow_service.usecases.audit import Actor, acting

_REQUEST_ID_HEADER = b"x-request-id"
# Browsers must not guess a content type other than the declared one.
_NOSNIFF = (b"x-content-type-options", b"nosniff")
# Request ids that callers may choose; any other is replaced.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:=+/@-]{1,128}")
# nginx's status for a client that disconnected before there was an answer.
_CLIENT_CLOSED = 499
_FAILED = 500
_log = get_logger(__name__)


class RequestLog:
    """The outermost middleware: it gives requests their ids, and logs and measures each.

    Unhandled errors end here, so that the server does not log them again.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = _request_id(scope)
        scope["state"]["request_id"] = request_id
        status = 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = (_NOSNIFF, (_REQUEST_ID_HEADER, request_id.encode()))
                message = {**message, "headers": [*message.get("headers", ()), *headers]}
            await send(message)

        spans = services_of(Request(scope)).operations.spans
        with (
            spans.request(scope["method"], scope["headers"], request_id) as record_answer,
            bound_contextvars(request_id=request_id),
            acting(lambda: _actor(scope)),
        ):
            try:
                await self._app(scope, receive, noting)
            except ClientDisconnect:
                status = _CLIENT_CLOSED
            except Exception as error:
                if status:
                    # Part of an answer is sent: the server logs the error and disconnects.
                    raise
                _log.error("request failed", exc_info=error)
                await problem_answer(Request(scope), error)(scope, receive, noting)
            finally:
                status = status or _CLIENT_CLOSED
                record_answer(_route(scope) or "", status)
                _note(scope, status, time.perf_counter() - began)


def _request_id(scope: Scope) -> str:
    header = Headers(scope=scope).get("X-Request-Id", "")
    return header if _REQUEST_ID.fullmatch(header) else secrets.token_hex(8)


def _actor(scope: Scope) -> Actor:
    state, route = scope["state"], scope["route"]
    return Actor(state["principal"].name, route.operation_id, state["request_id"])


def _route(scope: Scope) -> str | None:
    return getattr(scope.get("route"), "path", None)


def _note(scope: Scope, status: int, seconds: float) -> None:
    route = _route(scope)
    principal = scope["state"].get("principal")
    fields: dict[str, Any] = {
        "method": scope["method"],
        # A request without a route has only its path.
        **({"path": scope["path"]} if route is None else {"route": route}),
        "status": status,
        "principal": None if principal is None else principal.name,
        "ms": round(seconds * 1000, 1),
    }
    problem = scope["state"].get("problem")
    if problem is not None and status >= _FAILED:
        # What the coordinator could not do, its operators must learn without asking the caller.
        fields |= {
            "problem": problem["type"].rpartition(":")[2],
            "reason": problem["detail"],
        }
    meters = services_of(Request(scope)).operations.meters
    meters.request(scope["method"], route or "", status, seconds)
    if scope["path"].startswith("/health/"):
        _log.debug("request", **fields)
    else:
        _log.info("request", **fields)
