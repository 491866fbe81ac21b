"""Request bodies: their size and shape are limited, and long ones are parsed off the event loop."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windrow_core.cards import count_text
from windrow_core.models.base import MAX_DIGITS
from windrow_service.api.body_budget import BodyBudget
from windrow_service.api.errors import BodyTooComplexError, BodyTooLargeError
from windrow_service.api.html.rendering import is_page
from windrow_service.api.json_shapes import (
    COLUMNS,
    ORDINARY,
    ShapeLimits,
    check_shape,
)
from windrow_service.usecases.ports import Runner

JSON = b"application/json"
ARROW_STREAM = "application/vnd.apache.arrow.stream"
AnyModel = TypeVar("AnyModel", bound=BaseModel)
T = TypeVar("T")
# Forms of pages are parsed on the event loop.
_MAX_FORM_BYTES = 2**16
# What OpenAPI says about an answer that may be a stream.
STREAM: dict[str, Any] = {
    "content": {ARROW_STREAM: {"schema": {"type": "string", "format": "binary"}}}
}
# Longer JSON is parsed in a thread.
_SHORT_BYTES = 2**16
# Longer JSON is parsed one after another: it takes many times its size in memory, and holds the
# interpreter lock while it is decoded.
_LONG_BYTES = 2**20
_ONE_LONG_BODY = threading.Lock()
# Those that wait for their turn on an event loop, so that they occupy no thread meanwhile.
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
_MOST_ERRORS = 1_000
# Calls whose body may be a stream of columns.
_STREAMS = re.compile(
    r"POST /tables/[^/]+/(snapshots|packs|erasure-plans)/?|PUT /tables/[^/]+/partitions/?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyLimits:
    """Limits of bodies.

    Attributes:
        max_bytes: Most bytes of a body that is no stream of columns.
        max_published_bytes: Most bytes of a stream of columns, and of all streams that are held at
            the same time.
        max_held_bytes: Most bytes of all other bodies that are held at the same time, beyond the
            first `FREE_BYTES` of each.
    """

    max_bytes: int
    max_published_bytes: int
    max_held_bytes: int

    def of(self, scope: Scope) -> BodyTooLargeError:
        """Return the error for a body that exceeds the limit of its request."""
        if is_page(scope["path"]):
            return BodyTooLargeError(_MAX_FORM_BYTES, None)
        if _is_stream(scope):
            return BodyTooLargeError(self.max_published_bytes, "WINDROW_LIMITS__MAX_PUBLISH_BYTES")
        return BodyTooLargeError(
            self.max_bytes, "WINDROW_LIMITS__MAX_BODY_BYTES", takes_arrow=_takes_arrow(scope)
        )


class BoundedBodies:
    """Middleware that stops reading a body once it, or all bodies together, exceed a limit."""

    def __init__(self, app: ASGIApp, limits: BodyLimits) -> None:
        self._app = app
        self._limits = limits
        self._streams = BodyBudget(limits.max_published_bytes)
        # Apart from streams, since one of these may take all of its room.
        self._others = BodyBudget(limits.max_held_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        size_bytes = 0
        length = _header(scope, b"content-length")
        length_bytes = int(length) if length.isdigit() else 0
        too_large = self._limits.of(scope)
        with (self._streams if _is_stream(scope) else self._others).body() as body:

            async def bounded() -> Message:
                nonlocal size_bytes
                if length_bytes > too_large.max_bytes:
                    raise too_large
                message = await body.part(receive)
                size_bytes += len(message.get("body", b""))
                if size_bytes > too_large.max_bytes:
                    raise too_large
                return message

            await self._app(scope, bounded, send)


class BoundedRoute(APIRoute):
    """A route whose JSON bodies are bounded, and parsed off the event loop if they are long."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of one request."""
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            return await handle(_BoundedRequest(request.scope, request.receive))

        return handler


class _BoundedRequest(Request):
    async def body(self) -> bytes:
        """Return the body; a long one is joined in a thread."""
        if not hasattr(self, "_body"):
            parts = [part async for part in self.stream()]
            is_long = sum(map(len, parts)) > _LONG_BYTES
            self._body = await asyncio.to_thread(b"".join, parts) if is_long else b"".join(parts)
        return self._body

    async def json(self) -> Any:
        """Return the parsed body."""
        body = await self.body()
        if len(body) <= _SHORT_BYTES:
            return _parsed(body)
        async with _turn_of(body):
            return await asyncio.to_thread(_alone, body, lambda: _parsed(body))


async def read_json(
    runner: Runner, model: type[AnyModel], body: bytes, limits: ShapeLimits = COLUMNS
) -> AnyModel:
    """Parse and validate a body as FastAPI would, in a thread of a runner."""
    async with _turn_of(body):
        return await runner.run(lambda: _alone(body, lambda: _validated(model, body, limits)))


async def read_columns_or_json(
    request: Request, runner: Runner, model: type[AnyModel], limits: ShapeLimits
) -> bytes | AnyModel:
    """Return the body of a call that takes a stream of columns, or the same as JSON."""
    body = await request.body()
    if request.headers.get("content-type", "").lower().startswith(JSON.decode()):
        return await read_json(runner, model, body, limits)
    return body


def _turn_of(body: bytes) -> AbstractAsyncContextManager[Any]:
    if len(body) <= _LONG_BYTES:
        return nullcontext()
    return _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())


def _alone(body: bytes, parse: Callable[[], T]) -> T:
    # Embedded coordinators of one process have several event loops.
    with _ONE_LONG_BODY if len(body) > _LONG_BYTES else nullcontext():
        return parse()


def _parsed(body: bytes) -> Any:
    check_shape(body, ORDINARY)
    try:
        return json.loads(body)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # A whole number is too long for Python. As a double it is infinite: its field refuses it.
        return json.loads(body, parse_int=_number)
    except RecursionError:
        raise BodyTooComplexError(ORDINARY.depth, "levels of lists and objects") from None


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)


def _validated(model: type[AnyModel], body: bytes, limits: ShapeLimits) -> AnyModel:
    check_shape(body, limits)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        if error.error_count() > _MOST_ERRORS:
            # Listing all of them, in order to show ten, would take as long as finding them.
            errors = count_text(error.error_count(), "error")
            problem = f"{errors}, such as unknown keys; /docs has the fields"
            issues: list[Any] = [{"loc": (), "msg": problem, "type": "too_many_errors"}]
        else:
            issues = list(
                error.errors(include_url=False, include_context=False, include_input=False)
            )
        raise RequestValidationError(
            [issue | {"loc": ("body", *issue["loc"])} for issue in issues]
        ) from error


def json_body(model: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI entry of a call whose body `read_json` parses."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {JSON.decode(): {"schema": schema}}}}


def columns_or_json(model: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI entry of a call whose body `read_columns_or_json` reads."""
    entry = json_body(model)
    stream = {ARROW_STREAM: {"schema": {"type": "string", "format": "binary"}}}
    entry["requestBody"]["content"] = stream | entry["requestBody"]["content"]
    return entry


def add_body_schema(document: dict[str, Any], model: type[BaseModel]) -> None:
    """Add the schema of a model whose bodies `read_json` parses to the OpenAPI document."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas = document["components"]["schemas"]
    # Those that other calls have too are written as FastAPI does.
    schemas |= {
        name: one for name, one in schema.pop("$defs", {}).items() if name not in schemas
    } | {model.__name__: schema}


def _takes_arrow(scope: Scope) -> bool:
    return _STREAMS.fullmatch(f"{scope['method']} {scope['path']}") is not None


def _is_stream(scope: Scope) -> bool:
    return _takes_arrow(scope) and not _header(scope, b"content-type").startswith(JSON)


def _header(scope: Scope, name: bytes) -> bytes:
    value: bytes = dict(scope["headers"]).get(name, b"")
    return value
