"""`GET /metrics` on a port of its own, from a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
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

# A scraper or two, and someone who looks.
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


@contextmanager
def serving_metrics(
    registry: CollectorRegistry, look: Look, host: str, port: int
) -> Iterator[None]:
    """Serve a registry until the end of the block; call this on the event loop of the coordinator.

    In a thread with an event loop of its own, writing thousands of series delays no call.

    Args:
        registry: What is shown.
        look: Called on the coordinator's event loop before it is shown.
        host: Address to listen on.
        port: Port to listen on.

    Raises:
        OSError: Nothing can listen there.
    """
    loop = asyncio.get_running_loop()

    async def show(request: Request) -> Response:
        looked = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(look(), loop))
        # If it takes longer, what was seen last is shown.
        await asyncio.wait([looked], timeout=_LOOK_S)
        encode, media_type = choose_encoder(request.headers.get("Accept", ""))
        return Response(encode(registry), media_type=media_type)

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listening:
        config = uvicorn.Config(
            Starlette(routes=[Route("/metrics", show)]),
            http=bounded_http(_LIMITS),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=_STOP_TIMEOUT_S,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(
            target=server.run, args=([listening],), name="metrics", daemon=True
        )
        thread.start()
        _log.info("metrics are served", host=host, port=listening.getsockname()[1])
        try:
            yield
        finally:
            server.should_exit = True
            thread.join()
