"""`GET /metrics` on its own port."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

import uvicorn
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from windrow_service.api.connections import ConnectionLimits, bounded_http
from windrow_service.logs import get_logger
from windrow_service.usecases.errors import StartError

# Enough for a scraper or two, and a person.
_LIMITS = ConnectionLimits(
    max_connections=10,
    max_head_bytes=8192,
    max_headers=50,
    head_timeout_s=5,
    body_timeout_s=5,
)
_STOP_TIMEOUT_S = 1
_LOOK_S = 2.0
Look: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
_log = get_logger(__name__)


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = error.strerror or str(error)
        raise StartError(
            f"nothing can listen on port {port} ({reason}): choose another with "
            "WINDROW_METRICS__PORT"
        ) from error


@asynccontextmanager
async def serving_metrics(
    registry: CollectorRegistry, look: Look, host: str, port: int
) -> AsyncIterator[None]:
    """Serve a registry until the end of the block."""

    async def show(request: Request) -> Response:
        # If this takes longer, the answer has the figures that were looked up last.
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(look(), _LOOK_S)
        # In a thread, since thousands of series take long.
        encode, media_type = choose_encoder(request.headers.get("Accept", ""))
        return Response(await asyncio.to_thread(encode, registry), media_type=media_type)

    config = uvicorn.Config(
        Starlette(routes=[Route("/metrics", show)]),
        http=bounded_http(_LIMITS),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=_STOP_TIMEOUT_S,
    )
    config.load()
    # Without uvicorn's own main loop, which would wake up ten times a second.
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    with listening(host, port) as sock:
        await server.startup([sock])
        _log.info("metrics are served", host=host, port=port)
        try:
            yield
        finally:
            await server.shutdown([sock])
