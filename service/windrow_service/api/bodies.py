"""Request bodies: their size is limited, and long ones are parsed off the event loop."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windrow_service.api.html.rendering import is_page
from windrow_service.api.problems import BodyTooLargeError

JSON = b"application/json"
AnyModel = TypeVar("AnyModel", bound=BaseModel)
# Forms of pages are parsed on the event loop.
_MAX_FORM_BYTES = 2**16
# Calls whose body may be a stream of columns.
_STREAMS = re.compile(r"POST /tables/[^/]+/snapshots/?|PUT /tables/[^/]+/partitions/?")


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyLimits:
    """Most bytes of a body: `max_published_bytes` of a stream of columns, else `max_bytes`."""

    max_bytes: int
    max_published_bytes: int

    def of(self, scope: Scope) -> BodyTooLargeError:
        """Return the error for a body that exceeds the limit of its request."""
        media_type = _header(scope, b"content-type")
        is_stream = _STREAMS.fullmatch(
            f"{scope['method']} {scope['path']}"
        ) is not None and not media_type.startswith(JSON)
        limit: tuple[int, str | None]
        if is_page(scope["path"]):
            limit = _MAX_FORM_BYTES, None
        elif is_stream:
            limit = self.max_published_bytes, "WINDROW_LIMITS__MAX_PUBLISH_BYTES"
        else:
            limit = self.max_bytes, "WINDROW_LIMITS__MAX_BODY_BYTES"
        return BodyTooLargeError(*limit)


class BoundedBodies:
    """Middleware that stops reading a body once it exceeds its limit."""

    def __init__(self, app: ASGIApp, limits: BodyLimits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen = 0
        length = _header(scope, b"content-length")
        announced = int(length) if length.isdigit() else 0
        too_large = self._limits.of(scope)

        async def bounded() -> Message:
            nonlocal seen
            if announced > too_large.max_bytes:
                raise too_large
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > too_large.max_bytes:
                raise too_large
            return message

        await self._app(scope, bounded, send)


def read_json(model: type[AnyModel], body: bytes) -> AnyModel:
    """Parse and validate a body as FastAPI would; CPU-bound.

    Raises:
        RequestValidationError: The body does not fit the model.
    """
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
        raise RequestValidationError(
            [issue | {"loc": ("body", *issue["loc"])} for issue in found]
        ) from error


def add_body_schema(document: dict[str, Any], model: type[BaseModel]) -> None:
    """Add the schema of a model whose bodies `read_json` parses to the OpenAPI document."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    document["components"]["schemas"] |= schema.pop("$defs", {}) | {model.__name__: schema}


def _header(scope: Scope, name: bytes) -> bytes:
    value: bytes = dict(scope["headers"]).get(name, b"")
    return value
