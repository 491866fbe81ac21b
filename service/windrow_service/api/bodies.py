"""Bound the size of request bodies, whether they say their size beforehand or not."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windrow_service.api.problems import BodyTooLargeError


class BoundedBodies:
    """Middleware that stops reading a body when it is larger than `max_bytes`."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        seen = 0
        announced = _content_length(scope)

        async def bounded() -> Message:
            nonlocal seen
            if announced > self._max_bytes:
                raise BodyTooLargeError(self._max_bytes)
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._max_bytes:
                raise BodyTooLargeError(self._max_bytes)
            return message

        await self._app(scope, bounded if scope["type"] == "http" else receive, send)


def _content_length(scope: Scope) -> int:
    value = dict(scope.get("headers", ())).get(b"content-length", b"")
    return int(value) if value.isdigit() else 0
